# Two commands do everything: `make demo` and `make test`.  Both make a virtual environment of their own first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What is checked: never what runs leave behind.
SOURCES := src tests benchmarks examples docs/hooks

.PHONY: demo test lint docs stress clean

demo: $(VENV)/.ready-to-run  ## the paper's Figure 1, small: a table, a figure and a report in results/
	$(BIN)/explorax reproduce logistic --quick

test: $(VENV)/.ready lint  ## all checks and tests
	$(BIN)/python -m pytest

lint: $(VENV)/.ready
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy

docs: $(VENV)/.ready  ## the site, in site/; a broken link is an error (`make test` builds it too)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

stress: $(VENV)/.ready  ## 100 000 hard fits; prints failures and steps
	$(BIN)/python benchmarks/fit_stress.py --kept

clean:
	rm -rf $(VENV)

$(VENV)/.ready-to-run: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[experiments]"
	touch $@

$(VENV)/.ready: $(VENV)/.ready-to-run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@
