# Works with GNU Make 3.81, Python >= 3.11 and git; no root. Everything lives in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
RUN_STAMP := $(VENV)/.run-$(shell cksum < pyproject.toml | cut -d' ' -f1)-$(shell cksum < constraints.txt | cut -d' ' -f1)
DEV_STAMP := $(subst .run-,.dev-,$(RUN_STAMP))
WORKERS ?= 2

.PHONY: help demo test check golden clean

help:
	@echo "make demo    install into .venv and run the whole story on a simulated SD3 model"
	@echo "make test    install the development tools and run the test suite"
	@echo "make check   lint, types, import layers, spelling"
	@echo "make golden  re-make the golden files"
	@echo "make clean   remove .venv and caches"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than 3.11. Allowed: Python 3.11 or newer. Do: make PYTHON=python3.11 (or newer)"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) has no venv module. Do: install it (Debian, Ubuntu: the package python3-venv), or make PYTHON=/path/to/another/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(RUN_STAMP): $(BIN)/python
	$(PIP) install --quiet -c constraints.txt -e .
	@touch $@

$(DEV_STAMP): $(BIN)/python
	$(PIP) install --quiet -c constraints.txt -e '.[dev]'
	@touch $@ $(RUN_STAMP)

demo: $(RUN_STAMP)
	$(BIN)/kb demo

test: $(DEV_STAMP)
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile -m "not browser and not peers and not transformers"

check: $(DEV_STAMP)
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=.:cli $(BIN)/lint-imports --no-cache
	$(BIN)/codespell

golden: $(DEV_STAMP)
	$(BIN)/python -m pytest -q --remake-golden -m "not browser and not peers and not transformers"

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
