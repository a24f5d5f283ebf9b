# make quickstart: the whole job on an invented little corpus; make test: the checks of every change, make test-fast:
# all that answers within minutes, make test-all: those of a release, too; make release: the files of one. All install first.

VENV := .venv
STAMP := $(VENV)/.installed
# The first Python that is new enough; override with make PYTHON=/path/to/python3.11
PYTHON ?= $(shell for python in python3.11 python3 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

.PHONY: install imports without quickstart mutants test test-all test-fast test-backends test-beam test-oldest test-peers test-serving bench lint docs release clean

install: $(STAMP)

# Installed again only when what it depends on has changed; the package itself is used from this folder.
# What only comparisons and other backends need has environments of its own; TORCH=torch==2.13.0 asks for one version.
TORCH ?= torch
PEERS_VENV := .venv-peers
$(STAMP): PACKAGES = --editable '.[test]'
$(PEERS_VENV)/.installed: PACKAGES = '$(TORCH)' --editable '.[test,peers]'
BEAM_VENV := .venv-beam
$(BEAM_VENV)/.installed: PACKAGES = --editable '.[test,beam]'
# Without what the package requires, for that includes TensorFlow; but with what is imported before it.
BACKENDS_VENV := .venv-backends
$(BACKENDS_VENV)/.installed: PACKAGES = '$(TORCH)' $(shell $(PYTHON) -c "$(BACKENDS_NEEDS)") && \
	$(@D)/bin/pip install --quiet --no-deps --editable .
BACKENDS_NEEDS := import configparser; c = configparser.ConfigParser(); c.read('setup.cfg'); \
	own = [n for n in c['options']['install_requires'].split('\n') if n.startswith(('keras', 'sacrebleu'))]; \
	print(*map(repr, c['options.extras_require']['backends'].split('\n')[1:] + own))

# The oldest versions that setup.cfg allows, of what the package and its extras require; the newest of what only tests use.
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

# Two processes: what takes the time is tracing, which uses one core. TEST=tests/data runs only that.
TEST ?=
PYTEST := $(VENV)/bin/pytest -n 2 --dist loadfile --no-loadscope-reorder
test: lint
	$(PYTEST) -m "not long" $(TEST)

# With those that take eight CPU seconds or more each: whole stories, such as a run that is killed at any point of it.
test-all: lint
	$(PYTEST) $(TEST)

# Without the tests that take about a second or more each.
test-fast: install
	$(PYTEST) -m "not slow and not long" $(TEST)

# Plausible mistakes, one by one: which of them do the nearest tests let through? MUTANTS=data: of those files only.
MUTANTS ?=
mutants: install
	$(VENV)/bin/python tests/mutants.py $(MUTANTS)

# Layers and models with JAX and with PyTorch; those of extras where these are there.
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

# Generation as an Apache Beam pipeline.
test-beam: $(BEAM_VENV)/.installed
	$(BEAM_VENV)/bin/pytest tests/extras/beam

# Against PyTorch and Hugging Face on the same weights.
test-peers: $(PEERS_VENV)/.installed
	$(PEERS_VENV)/bin/pytest tests/peers

# Every benchmark beside its peers, about half an hour on two quiet cores: the newest results, their index, README's table.
# BENCH="decoding training" runs only these; BENCH_FLAGS=--quick tries small sizes. Without the peers the rest is measured.
BENCH ?=
BENCH_FLAGS ?=
bench: install
	@$(MAKE) $(PEERS_VENV)/.installed || echo "bench: the peers cannot be installed; the rest is measured" >&2
	if test -e $(PEERS_VENV)/.installed; then python=$(PEERS_VENV)/bin/python; else python=$(VENV)/bin/python; fi; \
		$$python -m benchmarks $(BENCH) $(BENCH_FLAGS)

# Exports, read by other TensorFlows than the one that wrote them, as TensorFlow Serving's is: by a C program and in Python.
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

# import-linter reads one folder: a copy of the package as it is installed.
LINT_IMPORTS = $(CURDIR)/$(VENV)/bin/lint-imports
imports:
	rm -rf build/imports && mkdir -p build/imports && cp -r t2t_lite build/imports/ && \
		cp -r bin extras hparams problems build/imports/t2t_lite/
	cd build/imports && $(LINT_IMPORTS) --no-cache --no-logo ../../setup.cfg

# Lint, tests and quickstart of what is left without an extra: EXTRA=music, or EXTRA=all.
EXTRA ?=
without: install
	$(VENV)/bin/python tests/without.py $(EXTRA)

# What is generated in the pages of docs/, then the site, without a network; a warning is an error.
docs: install
	$(VENV)/bin/python docs/make_hparams_sets.py
	$(VENV)/bin/python docs/make_architecture.py
	$(VENV)/bin/sphinx-build -q -W --keep-going -c docs . docs/_build
	@echo docs/_build/index.html

# The wheel and the source distribution of the last commit in dist/, checked; the wheel runs the quickstart in an environment
# of its own. QUICKSTART="--train_steps=1 --local_eval_frequency=1" makes that short.
QUICKSTART ?=
release: lint
	$(VENV)/bin/python -m tests.release $(QUICKSTART)

# What the other targets made, but for the virtual environments.
clean:
	rm -rf build bench dist quickstart docs/_build docs/commands *.egg-info .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv*/*' -prune -exec rm -rf {} +
