"""Tables of tuples with the older versions of PySpark that pyproject.toml allows: `python -m tests.spark_bounds`.

Claim: batches run with PySpark 3.5.0 and later, streams with 4.0.0 and later, and give the rows of the local engine.
Each version is installed into a folder of its own, in front of the environment that this runs in; it needs a package
index.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
BATCHES: Final = ("tests/spark/test_tuple_rows.py", "tests/spark/test_tuples.py")
STREAMS: Final = (*BATCHES, "tests/spark/test_tuple_streams.py")
VERSIONS: Final = {
    "3.5.0": (
        "0.10.9.7",
        BATCHES,
        "local_engine or sparks_types or no_match or random or hot or several or the_key or shipped",
    ),
    "4.0.0": ("0.10.9.9", STREAMS, "local_engine or sparks_types or random or several or the_key or restart or lists"),
    "4.1.0": (
        "0.10.9.9",
        (*STREAMS, "tests/spark/test_sql.py"),
        "local_engine or random or several or restart or of_match",
    ),
}
"""By version its py4j, the tests, and which of them."""


def main() -> None:
    """Installs each version and runs the tests with it. Ends with pytest's code if some fail."""
    parser = argparse.ArgumentParser(prog="tests.spark_bounds", description="Try older versions of PySpark.")
    parser.add_argument("--into", metavar="FOLDER", help="keep the versions there, and take those that are there")
    parser.add_argument("--only", metavar="VERSION", choices=VERSIONS, help="try this one alone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for version, (py4j, tests, some) in VERSIONS.items():
            if options.only in (None, version):
                folder = Path(options.into or scratch) / version
                if not folder.exists():
                    wanted = [f"pyspark=={version}", f"py4j=={py4j}"]
                    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
                    subprocess.run([*pip, *wanted], check=True)
                words = {"PYTHONPATH": f"{folder}:{ROOT}", "PYSPARK_PYTHON": sys.executable}
                own = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
                pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "spark or slow"]
                done = subprocess.run([*pytest, *tests, "-k", some], cwd=ROOT, env=own | words, check=False)
                if done.returncode:
                    sys.exit(done.returncode)
                print(f"PySpark {version}: tried, and right", flush=True)


if __name__ == "__main__":
    main()
