# Two commands from a fresh checkout: `make demo` and `make test`. Both set everything up first, once.
#
#   make demo STORY=chaos        another story than preemption
#   make test ARGS="-k kubelet"  some of the tests

PYTHON ?= python3
STORY  ?=
ARGS   ?=
OTHER  ?= python3.13

VENV := .venv
BIN  := $(VENV)/bin
DONE := $(VENV)/.set-up

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint bench mutants two-pythons image fuzz kubectl-old clean

help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "make %-11s %s\n", $$1, $$2}'

setup: $(DONE) ## make .venv with everything that the others need

$(DONE): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { \
	  echo "make: $(PYTHON) is missing; install Python 3.11 or newer (Debian, Ubuntu: apt install python3 python3-venv)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: $$($(PYTHON) --version) is too old; Python 3.11 or newer is needed (make PYTHON=python3.12 ...)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "make: $(PYTHON) cannot make virtual environments (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@echo "setting up $(VENV) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(DONE) ## three nodes as separate processes, and a story told step by step
	@$(BIN)/elbowroom demo $(STORY) $(ARGS)

test: $(DONE) ## all tests
	@$(BIN)/python -m pytest $(ARGS)

lint: $(DONE) ## formatting, lint, types and the import rules
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/pyright
	@$(BIN)/lint-imports

bench: $(DONE) ## the figures, each beside its peer's
	@$(BIN)/elbowroom bench $(ARGS)

mutants: $(DONE) ## known bugs, put back one at a time: the tests must notice (docs/teeth.md)
	@$(BIN)/python tests/mutants/run_mutants.py $(ARGS)

fuzz: $(DONE) ## requests made from our own OpenAPI, for five minutes: none may be answered with 500
	@$(BIN)/python tests/clients/openapi_fuzz.py $(ARGS)

kubectl-old: $(DONE) ## the tests of kubectl with release 1.32
	@KUBECTL="$$($(BIN)/python tests/clients/kubectl_of_old.py)" && export KUBECTL && $(BIN)/python -m pytest tests/processes/test_real_kubectl.py tests/clients/test_kubectl_sweep.py $(ARGS)

image: $(DONE) ## the container image; ARGS="--base host" where no registry of images is reached
	@$(BIN)/python deploy/image.py $(ARGS)

two-pythons: $(DONE) ## one seed, one history: on this Python and on another (OTHER=python3.12)
	@$(BIN)/python tools/two_pythons.py $(OTHER)

clean: ## remove .venv and all caches
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
