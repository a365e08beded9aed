# OpBoost. `make` alone lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS := $(VENV)/.docs
UV := 0.13.7
# Tests of real processes wait more than they work: one more than there are cores.
WORKERS = $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
UPGRADE := --upgrade
# For every platform, for the oldest Python that is supported, from the public index alone.
COMPILE = $(BIN)/uv pip compile --quiet --no-config --universal --python-version 3.11 --fork-strategy fewest \
    --generate-hashes --no-header --no-annotate --no-emit-index-url $(UPGRADE)
# Files are dated by the commit that they are made of.
EPOCH = SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct)

# Processes start from kept bytecode, as in an installed package, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test coverage check audit claims reproduce docs notebooks screenshots lock lowest wheel sbom clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY) ## a first look, on made-up people
	$(BIN)/opboost demo

TESTS = $(BIN)/pytest -n $(WORKERS) --dist worksteal

test: $(READY) ## the whole test suite, doctests included
	$(TESTS)

coverage: $(READY) ## the same, with branch coverage of the tests' own processes; takes longer
	$(TESTS) --cov --cov-report=term:skip-covered

check: $(READY) ## lint, format, types, layers, known vulnerabilities; lists stale claims
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=lab:. $(BIN)/lint-imports
	$(BIN)/python -m tools.supply.audit
	PYTHONPATH=lab:. $(BIN)/python -m claims.covered_sources

audit: $(READY) ## before a release: hashes as published, and known vulnerabilities; both must answer
	$(BIN)/python -m tools.supply.published
	$(BIN)/python -m tools.supply.audit --must-answer

claims: $(READY) ## recompute every figure that the project states -> docs/claims.json; ONLY="NAME ..." some
	PYTHONPATH=lab:. $(BIN)/python -m claims $(ONLY)

reproduce: $(READY) ## every table and figure of the paper -> docs/reproduction.md; about four hours on one core, resumed if stopped
	$(BIN)/opboost reproduce all --out reproduction --results lab/results.jsonl.xz
	cp reproduction/reproduction.md docs/reproduction.md

docs: $(DOCS) ## the manual -> site/; every link is followed, and nothing is fetched from elsewhere
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=. $(BIN)/mkdocs build --quiet --strict
	$(BIN)/python -m tools.manual.check site

notebooks: $(DOCS) ## run docs/notebooks/ anew, and keep what they print
	$(BIN)/python -m tools.manual.notebooks

screenshots: $(READY) ## the pictures of docs/howto/explore.md, from the tests that look at the pages
	OPBOOST_SCREENSHOTS=docs/pictures $(BIN)/pytest -n 0 tests/explorer/test_record_page.py tests/explorer/test_explorer_page.py tests/explorer/test_explorer_run.py

lock: $(READY) ## renew requirements/, with hashes; UPGRADE= keeps versions
	$(BIN)/pip install --quiet uv==$(UV)
	$(COMPILE) --extra boost --output-file requirements/runtime.txt pyproject.toml
	$(COMPILE) --extra dev --constraints requirements/runtime.txt --output-file requirements/dev.txt pyproject.toml
	$(COMPILE) --extra docs --constraints requirements/dev.txt --output-file requirements/docs.txt pyproject.toml

lowest: $(READY) ## try the lowest direct versions that pyproject.toml admits
	$(BIN)/pip install --quiet uv==$(UV)
	$(BIN)/python -m tools.supply.lowest

wheel: $(READY) ## the last commit as wheels and sdists -> dist/, the same bytes wherever it is built
	rm -rf build/commit dist/opboost-* dist/opboost_lab-*
	mkdir -p build/commit dist
	git archive HEAD | tar -x -C build/commit
	$(EPOCH) $(BIN)/python -m build --no-isolation --outdir dist build/commit
	$(EPOCH) $(BIN)/python -m build --no-isolation --outdir dist build/commit/lab
	cd dist && sha256sum opboost-* opboost_lab-* | tee SHA256SUMS

sbom: $(READY) ## what a deployment is made of -> dist/opboost.cdx.json (CycloneDX)
	$(EPOCH) $(BIN)/python -m tools.supply.sbom dist/opboost.cdx.json

clean: ## remove what the other verbs made
	rm -rf $(VENV) build dist site demo-out .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(READY): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "OpBoost needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . --editable lab
	@touch $@

$(DOCS): $(READY) requirements/docs.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r requirements/docs.txt
	@touch $@
