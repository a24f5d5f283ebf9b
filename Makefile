# CONTRIBUTING.md describes the targets. Each of them installs what it needs first.

VENV := .venv
STAMP := $(VENV)/.installed
# The first Python that is new enough; override with make PYTHON=/path/to/python3.11
PYTHON ?= $(shell for python in python3.11 python3 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

.PHONY: install imports without quickstart mutants test test-all test-fast test-backends test-beam test-oldest test-peers test-serving bench lint docs release clean

install: $(STAMP)

# Environments are updated only when a file that they depend on changes; the package itself is used from this folder.
# Comparisons and other backends have separate environments. TORCH=torch==2.13.0 selects a version.
TORCH ?= torch
PEERS_VENV := .venv-peers
$(STAMP): PACKAGES = --editable '.[test]'
$(PEERS_VENV)/.installed: PACKAGES = '$(TORCH)' --editable '.[test,peers]'
BEAM_VENV := .venv-beam
$(BEAM_VENV)/.installed: PACKAGES = --editable '.[test,beam]'
# Without the package's requirements, which include TensorFlow, except for those that are imported before TensorFlow.
BACKENDS_VENV := .venv-backends
$(BACKENDS_VENV)/.installed: PACKAGES = '$(TORCH)' $(shell $(PYTHON) -c "$(BACKENDS_NEEDS)") && \
	$(@D)/bin/pip install --quiet --no-deps --editable .
BACKENDS_NEEDS := import configparser; c = configparser.ConfigParser(); c.read('setup.cfg'); \
	own = [n for n in c['options']['install_requires'].split('\n') if n.startswith(('keras', 'sacrebleu'))]; \
	print(*map(repr, c['options.extras_require']['backends'].split('\n')[1:] + own))

# The requirements of the package and its extras in the oldest versions that setup.cfg allows; the tests' in the newest.
OLDEST_VENV := .venv-oldest
$(OLDEST_VENV)/.installed: PACKAGES = --editable '.[test]' $(shell $(PYTHON) -c "$(OLDEST)")
OLDEST := import configparser; c = configparser.ConfigParser(); c.read('setup.cfg'); \
	extras = [c['options.extras_require'][name] for name in ('catalogs', 'labels', 'parsing', 'serving', 'tune', 'web')]; \
	needs = '\n'.join([c['options']['install_requires'], *extras]).split('\n'); \
	print(*(repr(need.replace(' >= ', '==')) for need in needs if need))

$(STAMP) $(PEERS_VENV)/.installed $(BEAM_VENV)/.installed $(BACKENDS_VENV)/.installed $(OLDEST_VENV)/.installed: setup.cfg setup.py pyproject.toml
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer found. Install it, or: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	test -x $(@D)/bin/pip || $(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet $(PACKAGES)
	@touch $@

quickstart: install
	@$(VENV)/bin/t2t-quickstart

# Two processes, since most time is spent on tracing, which uses one core. TEST=tests/data runs only these tests.
TEST ?=
PYTEST := $(VENV)/bin/pytest -n 2 --dist loadfile --no-loadscope-reorder
test: lint
	$(PYTEST) -m "not long" $(TEST)

# Includes the tests that take eight CPU seconds or more each, such as a run that is killed at any moment.
test-all: lint
	$(PYTEST) $(TEST)

# Without the tests that take about a second or more each.
test-fast: install
	$(PYTEST) -m "not slow and not long" $(TEST)

# Which plausible mistakes do the nearest tests miss? MUTANTS=data tries only those in matching files.
MUTANTS ?=
mutants: install
	$(VENV)/bin/python tests/mutants.py $(MUTANTS)

# Layers and models with JAX and with PyTorch, including those of the extras that exist.
OF_EXTRAS := $(wildcard $(addprefix tests/extras/, $(addsuffix .py, \
	$(addprefix baselines/test_, convolution equations lstm_lm lstm_lm_in_keras properties) \
	experts/test_mixture_of_experts memory/test_memory xlnet/test_segment_attention \
	$(addprefix universal/test_, adaptive_computation universal_stack))))
test-backends: $(BACKENDS_VENV)/.installed
	for backend in jax torch; do \
		KERAS_BACKEND=$$backend $(BACKENDS_VENV)/bin/pytest tests/layers tests/models/test_transformer.py \
		tests/models/test_transformer_lm.py tests/models/test_transformer_encoder.py tests/models/test_every_model.py \
		tests/models/test_encoding.py tests/models/test_keras_model.py tests/models/test_keras_model_files.py \
		tests/training/test_keras_losses.py tests/backends \
		$(OF_EXTRAS) || exit; done

test-oldest: $(OLDEST_VENV)/.installed
	$(OLDEST_VENV)/bin/pytest -n 2 --dist loadfile -m "not slow and not long" $(TEST)

# Data generation as an Apache Beam pipeline.
test-beam: $(BEAM_VENV)/.installed
	$(BEAM_VENV)/bin/pytest tests/extras/beam

# Comparison with PyTorch and Hugging Face on the same weights.
test-peers: $(PEERS_VENV)/.installed
	$(PEERS_VENV)/bin/pytest tests/peers

# Benchmarks against other packages: half an hour on two idle cores. Writes results, their index and README's table.
# BENCH="decoding training" runs only these; BENCH_FLAGS=--quick uses small sizes.
BENCH ?=
BENCH_FLAGS ?=
bench: install
	@$(MAKE) $(PEERS_VENV)/.installed || echo "bench: the other packages cannot be installed, so only t2t_lite is measured" >&2
	if test -e $(PEERS_VENV)/.installed; then python=$(PEERS_VENV)/bin/python; else python=$(VENV)/bin/python; fi; \
		$$python -m benchmarks $(BENCH) $(BENCH_FLAGS)

# Exports in other versions of TensorFlow than the one that wrote them, in a C program and in Python.
SERVING_VERSIONS ?= 2.20 2.21
.venv-tensorflow-%/.installed:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet 'tensorflow==$*.*' 'tensorflow-text==$*.*'
	@touch $@
test-serving: install $(SERVING_VERSIONS:%=.venv-tensorflow-%/.installed)
	$(VENV)/bin/pytest tests/tensorflow_versions

lint: install imports
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

# import-linter needs the package in one folder, so the folders are copied to where they are installed.
LINT_IMPORTS = $(CURDIR)/$(VENV)/bin/lint-imports
imports:
	rm -rf build/imports && mkdir -p build/imports && cp -r t2t_lite build/imports/ && \
		cp -r bin extras hparams problems build/imports/t2t_lite/
	cd build/imports && $(LINT_IMPORTS) --no-cache --no-logo ../../setup.cfg

# Lint, tests and quickstart without an extra: EXTRA=music, or EXTRA=all.
EXTRA ?=
without: install
	$(VENV)/bin/python tests/without.py $(EXTRA)

# Generates the tables of the pages in docs/, then builds the site, without a network; warnings are errors.
docs: install
	$(VENV)/bin/python docs/make_hparams_sets.py
	$(VENV)/bin/python docs/make_architecture.py
	$(VENV)/bin/sphinx-build -q -W --keep-going -c docs . docs/_build
	@echo docs/_build/index.html

# Builds and checks the wheel and source distribution of the last commit in dist/, and runs the quickstart with the wheel
# in a new environment. QUICKSTART="--train_steps=1 --local_eval_frequency=1" shortens it.
QUICKSTART ?=
release: lint
	$(VENV)/bin/python -m tests.release $(QUICKSTART)

# Removes the files that the other targets made, except for the virtual environments.
clean:
	rm -rf build bench dist quickstart docs/_build docs/commands *.egg-info .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv*/*' -prune -exec rm -rf {} +
