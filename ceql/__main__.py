"""`python -m ceql`: the `ceql` command."""

from __future__ import annotations

import sys

from ceql.cli import main

sys.exit(main())
