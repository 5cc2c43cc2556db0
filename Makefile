# `make demo` and `make test` are the whole set-up: .venv is created when it is missing or out of date.
PYTHON ?= python3
JOBS   ?= 2
BIN    := .venv/bin
STAMP  := .venv/.installed
PLATFORMS := .venv/.platforms
EXTRAS := demo,excel,fast,parquet,postgresql,ray,web

# Small matrices lose by threading: one thread per process, and as many processes as JOBS says.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

# Every worker, and every process that a test starts, would compile all modules anew: what is compiled is kept.
# A worker runs whole files, where cases share what was fitted, and takes from the others once it has nothing to do.
PYTEST := $(ONE_THREAD) PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n $(JOBS) --dist worksteal
MARKS  ?= slow or not slow

.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-benchmarks browser lint types docs docs-version bench-speed bench-sampler bench-scale release clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMP)  ## tune a support vector machine with a head start and from scratch
	$(BIN)/headstart demo

test: lint types browser  ## lint, types and tests: a few minutes
	$(PYTEST)

test-all: lint types browser $(PLATFORMS)  ## all tests, also those of every page and of every combination
	$(PYTEST) -m "slow or not slow"

test-benchmarks: $(STAMP)  ## the benchmark's own tests; the quick ones with MARKS="not slow"
	$(PYTEST) -m "$(MARKS)" tests/benchmarks

# The page is tested in Debian's Chromium. It is installed where that may be done; elsewhere those tests are left out,
# and with HEADSTART_BROWSER=required, as .ci/run has it, that is an error.
browser:  ## the browser that the page is tested in
	@if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing chromium and chromium-driver, in which the page is tested."; \
	  apt-get install -y -q chromium chromium-driver >/dev/null \
	    || { apt-get update -q >/dev/null && apt-get install -y -q chromium chromium-driver >/dev/null; } \
	    || echo "They could not be installed."; \
	else \
	  echo "The page's tests in a browser need chromium and chromium-driver, which only root may install: they are left out."; \
	fi
	@if [ "$(HEADSTART_BROWSER)" = required ]; then command -v chromium >/dev/null && command -v chromedriver >/dev/null \
	  || { echo "chromium and chromedriver are required here (HEADSTART_BROWSER)."; exit 1; }; fi

lint: $(STAMP)  ## ruff: rules and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(STAMP)  ## mypy
	$(BIN)/mypy

docs: $(STAMP)  ## the site, in site/: open site/index.html
	$(BIN)/properdocs build --strict

# Versions are kept by minor version: 0.1 takes the place of 0.1, and what other versions had stays. Nothing is pushed.
docs-version: $(STAMP)  ## the site of this version, beside those before it, on the branch gh-pages; `latest` is this one
	PATH="$(BIN):$$PATH" $(BIN)/mike deploy --update-aliases \
	  "$$($(BIN)/python -c 'from headstart import __version__; print(__version__.rpartition(".")[0])')" latest
	PATH="$(BIN):$$PATH" $(BIN)/mike set-default latest

bench-speed: $(STAMP)  ## fitting and prediction times against BoTorch's
	$(ONE_THREAD) $(BIN)/python -m benchmarks time fits

bench-sampler: $(STAMP)  ## the Optuna sampler: seconds, and tuning against its rivals
	$(ONE_THREAD) $(BIN)/python -m benchmarks time sampler
	$(ONE_THREAD) $(BIN)/python -m benchmarks tuning --jobs $(JOBS)

bench-scale: $(STAMP)  ## seconds and memory with thousands of rows, a thousand sources, long studies
	$(ONE_THREAD) $(BIN)/python -m benchmarks time scale

# The wheel is built from the source archive, and what is tested are the files that are uploaded.
release: $(STAMP)  ## build and check what is published, and say what is left to do
	$(BIN)/python scripts/release.py check $(TAG:%='%')
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	HEADSTART_DIST=dist $(ONE_THREAD) $(BIN)/pytest -m "slow or not slow" $(addprefix tests/integration/test_,package.py release.py repository.py)
	@$(BIN)/python scripts/release.py left

clean:  ## remove .venv, builds and caches
	rm -rf .venv build dist site .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests -type d -name __pycache__ -prune -exec rm -rf {} +

# The stamp is removed first and written last: a .venv without one was interrupted, may be broken, and is made anew.
# The build backend is installed by name, because constraints do not reach an isolated build, and a pip that knows groups.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("headstart needs Python 3.11 or newer: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	@rm -f $@
	$(PYTHON) -m venv $(if $(wildcard $@),,--clear) .venv
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt pip hatchling editables
	$(BIN)/pip install --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[$(EXTRAS)]' --group test
	@touch $@

$(PLATFORMS): $(STAMP)
	$(BIN)/pip install --disable-pip-version-check -c constraints.txt --group platforms
	@touch $@
