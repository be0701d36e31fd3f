"""`python -m spaseq`: the `spaseq` command."""

from __future__ import annotations

from spaseq.tools.start import spaseq

spaseq()
