# Everything a developer does.  Each target sets up what it needs in a virtual environment of its
# own: a machine needs nothing but Python 3.10, 3.11 or 3.12 and make.
#
#   make venv       the command htvm, for one's own models: . .venv/bin/activate
#   make demo       handwritten digits on the simulated DIANA, beside plain TVM
#   make test       lint and the everyday tests
#   make test-slow  the tests a developer does not wait for
#   make test-rtl   the simulated core against its RTL, cycle for cycle
#   make test-torch what needs torch, in an environment of its own: .venv-torch
#   make lint       ruff, mypy and the import contracts
#   make notebooks  executes the notebooks
#   make docs       the site of the documentation, notebooks executed: build/site/index.html
#   make docs-fast  the same without executing notebooks
#   make bench      every published table and figure beside ours: docs/results.md
#   make peers      other compilers on the same files, each installed apart: docs/peers.md
#   make wheel      dist/*.whl
#   make clean      removes what these targets made, the virtual environment too
#
# Variables: PYTHON (interpreter to build the environment with), VENV (its folder), WORKERS
# (parallel test processes), TESTS (what to test), OPTIONS (more of pytest's, such as
# --time-budget SECONDS for as many tests as fit, see tests/rotation.py), MODEL (a .tflite or .onnx
# file, or zoo:NAME, to demo).

PYTHON  ?=
VENV    ?= .venv
WORKERS ?= 2
TESTS   ?= tests
OPTIONS ?=
MODEL   ?= zoo:digits

TORCH_VENV  ?= .venv-torch
TORCH_TESTS ?= tests/torch tests/frontend/test_torch_exports.py \
  tests/frontend/test_torch_converters.py

BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
# By a path instead of an import hook: a folder named htvm beside a script, such as that of a clone,
# would hide the package from the hook.
INSTALL := $(PIP) install --quiet --config-settings editable_mode=compat --editable
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

.PHONY: venv demo test test-slow test-rtl test-torch torch-tests lint notebooks docs docs-fast bench peers wheel clean
.DELETE_ON_ERROR:

venv: $(VENV)/.demo
	@echo "htvm is set up; for this shell: . $(VENV)/bin/activate"

demo: $(VENV)/.demo
	$(BIN)/python -m htvm.tools.cli.demo $(MODEL)

test: lint
	$(PYTEST) $(OPTIONS) $(TESTS)

test-slow: $(VENV)/.dev
	$(PYTEST) -m "slow and not rtl" $(OPTIONS) $(TESTS)

test-rtl: $(VENV)/.rtl
	$(BIN)/python -m pytest -m rtl $(TESTS)

test-torch:
	$(MAKE) --no-print-directory VENV=$(TORCH_VENV) torch-tests

torch-tests: $(VENV)/.torch
	$(BIN)/python -m pytest $(OPTIONS) $(TORCH_TESTS)

lint: $(VENV)/.dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports --no-logo

notebooks: $(VENV)/.dev
	$(BIN)/python -m pytest -m "" --durations 0 tests/notebooks

docs: $(VENV)/.dev
	$(BIN)/python docs/site/notebooks.py
	$(BIN)/python -m mkdocs build --strict

docs-fast: $(VENV)/.docs
	$(BIN)/python -m mkdocs build --strict

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.results

peers: $(VENV)/.dev
	$(BIN)/python -m benchmarks.peers

wheel: $(VENV)/.run
	rm -rf build
	$(PIP) wheel --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) $(TORCH_VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find htvm patterns byoc_dory runtime_c tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the environment -------------------------------------------------------------------------
# The first interpreter in range is taken; with PYTHON=... that one or none.

SUPPORTED := import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))
CANDIDATES := $(if $(PYTHON),"$(PYTHON)",python3 python3.12 python3.11 python3.10 python)

$(VENV)/bin/python:
	@for candidate in $(CANDIDATES); do \
	  if "$$candidate" -c '$(SUPPORTED)' >/dev/null 2>&1; then found=$$candidate; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "htvm needs Python 3.10, 3.11 or 3.12, and none of these is one: "$(CANDIDATES) >&2; \
	  echo "install one of them, or say which to use: make PYTHON=/path/to/python3.12 ..." >&2; \
	  exit 1; \
	fi; \
	echo "setting up $(VENV) with $$("$$found" --version); the first time, packages are downloaded"; \
	"$$found" -m venv --clear $(VENV) || { rm -rf $(VENV); \
	  echo "$$found cannot make virtual environments; its venv module is missing or broken" >&2; \
	  exit 1; }

$(VENV)/.run: $(VENV)/bin/python setup.py pyproject.toml
	$(INSTALL) .
	@touch $@

$(VENV)/.demo: $(VENV)/.run
	$(INSTALL) ".[digits]"
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	$(INSTALL) ".[test,dev]"
	@touch $@

$(VENV)/.docs: $(VENV)/.run
	$(INSTALL) ".[docs]"
	@touch $@

$(VENV)/.rtl: $(VENV)/.dev
	$(INSTALL) ".[rtl]"
	@touch $@

$(VENV)/.torch: $(VENV)/.run
	$(INSTALL) ".[test,torch]"
	@touch $@
