# Everything a fresh machine needs is Python 3.11+ and make: each target sets up .venv by itself.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test slow cluster lint types check bench clean

.venv/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: .venv/.ready           ## train, resume and state the guarantee on embedded data
	$(BIN)/reticent demo

test: .venv/.ready           ## the tests a change must pass (minutes)
	$(BIN)/pytest -n 2 --dist worksteal

slow: .venv/.ready           ## the long tests: statistics, whole papers
	$(BIN)/pytest -m slow --timeout 3600

cluster: .venv/.ready        ## a comparison on a cluster of two workers that Ray starts here
	$(BIN)/pytest -m slow tests/executors -k comparison --timeout 1200

lint: .venv/.ready
	$(BIN)/ruff format --check
	$(BIN)/ruff check

types: .venv/.ready
	$(BIN)/mypy

check: lint types test       ## what .ci/run asks for

bench: .venv/.ready          ## a private step against plain SGD and the peers, as ratios of one run
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis build
