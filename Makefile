# Fresh machine: Python 3.11+, Java 17, make and git are all that is needed; every target sets up .venv by itself.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/installed
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
SHELL  := /bin/bash
# Tests start many processes; each is half a second slower if it compiles all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test test-slow test-bounds fuzz coverage lint ruff bench bench-peers clean check-python check-java

help:
	@echo "make run        the smart-grid query through Spark in local mode: a progress bar and a table of matches"
	@echo "make test       ruff, mypy and the test suite"
	@echo "make test-slow  all tests, with all random cases and long runs, and kernels with bounds checks and without JIT"
	@echo "make test-bounds  a base install of the oldest dependencies that pyproject.toml allows, tried (PYTHONS=\"python3.12 …\" for others), and older versions of PySpark"
	@echo "make fuzz       mutated queries, files, options and snapshots for two minutes; FUZZ_SECONDS, FUZZ_SEED, FUZZ_KINDS"
	@echo "make coverage   the test suite in one process, and which lines it runs; takes twice as long as by itself"
	@echo "make lint       ruff and mypy alone"
	@echo "make docs       the documentation as a site, in build/site; first all of its blocks are run"
	@echo "make bench      the benchmarks, see benchmarks/"
	@echo "make bench-peers  fetch and compile the other engines that make bench then runs too (Maven)"
	@echo "make clean      remove .venv and everything generated"

GRID := examples/smart-grid
run: $(VENV)/kernels check-java
	$(BIN)/spaseq run $(GRID)/query.rq --engine spark \
		--stream S1=$(GRID)/power.nq --stream S2=$(GRID)/weather.nq --stream S3=$(GRID)/storage.nq \
		--kb http://smartgrid.org/db=$(GRID)/kb.ttl

# Several processes at a time; tests/conftest.py says which of them runs what. One more than there are processors, as
# tests of Spark wait for a third of their time.
PROCESSES ?= $(shell $(PYTHON) -c "import os; print(min(4, (os.cpu_count() or 1) + 1))")
# mypy takes one and a half minutes of one processor, beside the tests; what it says comes behind them.
test: $(STAMP) check-java ruff
	@echo "$(BIN)/python -m pytest -q -n $(PROCESSES)"; \
	$(BIN)/mypy >$(VENV)/mypy.log 2>&1 & types=$$!; trap 'kill $$types' INT TERM; \
	$(BIN)/python -m pytest -q -n $(PROCESSES); tests=$$?; \
	wait $$types; typed=$$?; echo "$(BIN)/mypy"; cat $(VENV)/mypy.log; \
	exit $$(( tests ? tests : typed ))

test-slow: $(STAMP) check-java
	SPASEQ_SHARE=1 $(BIN)/python -m pytest -q -n $(PROCESSES) -m "not kill"
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(VENV)/boundscheck $(BIN)/python -m pytest -q tests/core/engine tests/core/tecs tests/rdf
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q tests/rdf/test_columns_scan.py
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q tests/core/engine tests/core/tecs -k "not memory and not compacted and not handed"

PYTHONS ?= $(PYTHON)
test-bounds: check-python $(STAMP) check-java
	@for python in $(PYTHONS); do $$python -m tests.bounds || exit 1; done
	$(BIN)/python -m tests.spark_bounds

# A find is a file in .fuzz, which `python -m tests.fuzz --again FILE` runs again. FUZZ_MORE=--bounds checks kernels' bounds.
FUZZ_SECONDS ?= 120
FUZZ_SEED ?= $(shell date +%s)
FUZZ_KINDS ?=
fuzz: $(STAMP)
	@echo "FUZZ_SEED=$(FUZZ_SEED)"
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) --first $(FUZZ_SEED) --kinds "$(FUZZ_KINDS)" --into .fuzz $(FUZZ_MORE)

coverage: $(STAMP) check-java
	$(BIN)/python -m coverage run -m pytest -q $(TESTS)
	$(BIN)/python -m coverage report

lint: ruff
	$(BIN)/mypy

ruff: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .

docs: $(VENV)/docs-installed
	$(BIN)/python -m tests.support.railroad
	$(BIN)/python -m tests.support.gallery
	$(BIN)/python -m tests.support.notebooks
	$(BIN)/python -m pytest -q tests/docs
	PYTHONPATH=. $(BIN)/zensical build --strict
	$(BIN)/python -m tests.support.site

$(VENV)/docs-installed: $(STAMP)
	@$(PIP) --group docs
	@touch $@

bench: $(STAMP)
	$(BIN)/python -m benchmarks

bench-peers: check-java
	cd benchmarks/peers && mvn --quiet dependency:build-classpath -Dmdep.outputFile=target/classpath && javac -d target -cp "$$(cat target/classpath)" *.java

clean:
	rm -rf $(VENV) benchmarks/peers/target build dist *.egg-info .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis .fuzz spark-warehouse metastore_db derby.log
	find spaseq ceql tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

# One environment for everything, with all extras; made again when pyproject.toml changes. Groups need pip 25.1.
# Python compiles a module when it is first imported; pip would compile all, which takes half a minute.
$(STAMP): pyproject.toml | check-python
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "make: cannot create $(VENV); on Debian and Ubuntu: apt install python3-venv" >&2; rm -rf $(VENV); exit 1; }
	@echo "installing into $(VENV) (a few minutes the first time)"
	@$(PIP) --upgrade 'pip>=25.1'
	@PYTHONWARNINGS=ignore $(PIP) --no-compile --editable '.[connect,live,lsp,owl,studio]' --group dev
	@touch $@

# Kernels compiled for this machine: again when one of them changes. Without it, a query compiles its own.
$(VENV)/kernels: $(STAMP) spaseq/core/jit.py spaseq/core/compiling.py $(shell find spaseq -path '*/kernels*' -name '*.py')
	@echo "compiling kernels for this machine (a minute or two, once)"
	@$(BIN)/python -m spaseq.tools.kernels && touch $@ || echo "kernels are compiled when they are needed"

check-python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "make: Python 3.11 or later is needed, $(PYTHON) is $$($(PYTHON) --version 2>&1 | tail -1); name another with make PYTHON=..." >&2; exit 1; }

# Spark takes Java from JAVA_HOME or from the path.
check-java:
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	found=$$("$$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -1); \
	test "$${found:-0}" -ge 17 || { echo "make: Java 17 or later is needed for Spark, $$java is $${found:-missing}; set JAVA_HOME or install it" >&2; exit 1; }
