# make quickstart: the whole job on an invented little corpus; make test: all checks. Both install first.

VENV := .venv
STAMP := $(VENV)/.installed
# The first Python that is new enough; override with make PYTHON=/path/to/python3.11
PYTHON ?= $(shell for python in python3.11 python3 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

.PHONY: install quickstart test lint clean

install: $(STAMP)

# Installed again only when what it depends on has changed; the package itself is used from this folder.
$(STAMP): setup.cfg pyproject.toml
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer found. Install it, or: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	test -x $(VENV)/bin/pip || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --editable '.[test]'
	@touch $@

quickstart: install
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" ./quickstart.sh

test: lint
	$(VENV)/bin/pytest

lint: install
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

# What the other targets made, but for the virtual environment.
clean:
	rm -rf build dist quickstart *.egg-info .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
