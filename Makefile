# Everything that a command here needs it brings along: .venv beside this file, binaries in the cache folder.
# First time on a fresh machine: about seven minutes on two cores, to build the local control plane.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help install test test-unit test-apiserver check format demo bench recordings generate lock build clean

help:  ## Show what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 18

install: $(READY)  ## Make .venv with all that development needs

$(READY): requirements/dev.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(READY)

build: $(READY)  ## Build the programs of the local control plane into the cache
	$(BIN)/python -m devcluster build

test: test-unit test-apiserver  ## All tests

test-unit: $(READY)  ## Unit, golden and property tests: no control plane needed
	$(BIN)/python -m pytest -m "not apiserver and not kwok" -n auto

test-apiserver: $(READY)  ## Tests against a real etcd and kube-apiserver, and against fake nodes
	$(BIN)/python -m devcluster build
	$(BIN)/python -m pytest -m "apiserver or kwok"

check: $(READY)  ## Lint, types, layers, generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/generate_crd.py --check
	$(BIN)/python scripts/generate_docs.py --check
	$(BIN)/python scripts/generate_topologies.py --check

format: $(READY)  ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

demo: $(READY)  ## Show the main job on a local control plane; ONCE=1 plays it through and exits
	$(BIN)/python -m devcluster build
	$(BIN)/python -m demo $(if $(ONCE),--once)

bench: $(READY)  ## Measure the operator (OPERATOR='CMD' for another one)
	$(BIN)/python -m devcluster build etcd kube-apiserver kubectl
	$(BIN)/python -m bench $(if $(OPERATOR),--operator '$(OPERATOR)')

recordings: $(READY)  ## Play recorded cases and compare (TOOL=record.py CASES='dir ...')
	$(BIN)/python -m devcluster build etcd kube-apiserver kubectl
	$(BIN)/python -m scripts.recordings --tool $(TOOL) $(CASES)

generate: $(READY)  ## Generate crds/ and the reference pages from the code
	$(BIN)/python scripts/generate_crd.py
	$(BIN)/python scripts/generate_docs.py
	$(BIN)/python scripts/generate_topologies.py

lock: $(READY)  ## Pin the requirements anew, with hashes
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url -q -o requirements/runtime.txt --custom-compile-command "make lock"
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url -q -o requirements/dev.txt --custom-compile-command "make lock"

clean:  ## Remove .venv and what tools left behind; the cache of binaries stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
