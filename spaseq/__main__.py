"""`python -m spaseq`: the `spaseq` command."""

from __future__ import annotations

import sys

from spaseq.cli.main import main

sys.exit(main())
