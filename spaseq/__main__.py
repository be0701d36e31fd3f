"""`python -m spaseq`: the `spaseq` command."""

from __future__ import annotations

from spaseq.start import spaseq

spaseq()
