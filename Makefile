# Two commands do everything: `make demo` and `make test`.  Both make a virtual environment of their own first.
# Another Python: `make test PYTHON=python3.13`.  The environment is made anew when that changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# What is checked: never what runs leave behind.
SOURCES := src tests benchmarks examples docs/hooks
PAGES := README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs
export PYTHONUNBUFFERED := 1

# How code, docstrings and pages are written.  Tests misspell names on purpose.
define STYLE
$(BIN)/ruff check $(SOURCES)
$(BIN)/ruff format --check $(SOURCES)
$(BIN)/pymarkdown --config .pymarkdown.json scan --recurse $(PAGES)
$(BIN)/codespell src examples $(PAGES)
endef

.PHONY: demo test browser chromium lint docs gallery stress clean

demo: $(VENV)/.run-$(VERSION)  ## a small version of the paper's Figure 1: a table, a figure and a report in results/
	$(BIN)/explorax reproduce logistic --quick

test: $(VENV)/.develop-$(VERSION)  ## all tests and checks
	@echo "Checking style, then running some 7300 tests in three processes, then checking types: 13 minutes on two cores."
	$(STYLE)
	$(BIN)/python -m pytest
	$(BIN)/mypy

browser: chromium $(VENV)/.browser-$(VERSION)  ## report, arena and site in a real browser, Debian's package chromium
	@echo "Building the site and visiting pages with Chromium: 4 minutes on two cores."
	$(BIN)/python -m pytest -n 0 tests/browser

chromium:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do command -v $$name && exit; done; \
	  echo "make browser needs Chromium, which pip cannot install.  On Debian: apt install chromium"; exit 1

lint: $(VENV)/.develop-$(VERSION)  ## the checks without the tests
	$(STYLE)
	$(BIN)/mypy

docs: $(VENV)/.develop-$(VERSION)  ## the site, in site/; a broken link is an error (`make test` builds it too)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

gallery: $(VENV)/.develop-$(VERSION)  ## the figures of the examples, in docs/gallery/
	mkdir -p docs/gallery
	set -e; for example in examples/*.py; do \
	  $(BIN)/python $$example --figure docs/gallery/$$(basename $$example .py).png; done

stress: $(VENV)/.develop-$(VERSION)  ## 100 000 hard fits; prints failures and steps
	$(BIN)/python benchmarks/fit_stress.py --kept

clean:
	rm -rf $(VENV)

$(VENV)/.run-$(VERSION): pyproject.toml constraints.txt
	@echo "Installing explorax for Python $(VERSION) into $(VENV): about a minute, once."
	$(PYTHON) -m venv --clear $(VENV)
	$(INSTALL) -e ".[experiments]"
	@touch $@

$(VENV)/.browser-$(VERSION): $(VENV)/.develop-$(VERSION)
	@echo "Installing what drives a browser into $(VENV), once."
	$(INSTALL) -e ".[browser]"
	@touch $@

$(VENV)/.develop-$(VERSION): $(VENV)/.run-$(VERSION)
	@echo "Installing what the tests need into $(VENV): about a minute, once."
	$(INSTALL) -e ".[dev]"
	@touch $@
