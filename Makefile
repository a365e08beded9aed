# OpBoost. `make` alone lists the verbs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test check claims lock clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY) ## a first look, on bundled data
	$(BIN)/opboost demo

test: $(READY) ## the whole test suite, doctests included
	$(BIN)/pytest -n auto

check: $(READY) ## lint, format, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

claims: $(READY) ## recompute every figure that the project states -> docs/claims.json
	$(BIN)/python -m claims

lock: $(READY) ## renew requirements/dev.txt
	$(BIN)/pip install --quiet pip-tools
	$(BIN)/pip-compile --quiet --extra dev --allow-unsafe --strip-extras --no-emit-index-url \
	    --no-emit-find-links --no-header --no-annotate --upgrade --output-file requirements/dev.txt pyproject.toml

clean: ## remove what the other verbs made
	rm -rf $(VENV) demo-out .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(READY): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "OpBoost needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
