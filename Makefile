# Everything a fresh machine needs is Python 3.11+ and make: each target sets up .venv by itself.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test slow cluster lint types check docs browse dist fresh bench soak lock verified audit-dependencies clean

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

.venv/.docs: .venv/.ready
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@

docs: .venv/.docs            ## the site, in build/site; any warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

browse: docs                 ## every page of it in a browser, every link, every public name
	$(BIN)/pytest -m slow tests/site --timeout 600

dist: .venv/.ready           ## the wheel and the sdist, in dist/, with what they must hold
	$(BIN)/pip install --quiet --constraint constraints.txt build 'setuptools>=77'
	rm -rf dist build/lib build/bdist.*
	$(BIN)/python -m build --quiet --no-isolation --outdir dist
	$(BIN)/python -m tools.dist dist

fresh: dist                  ## the wheel in an environment of its own, away from the sources, and the demo there
	$(BIN)/python -m tools.fresh dist build/fresh

bench: .venv/.ready          ## a private step against plain SGD and the peers, as ratios of one run
	$(BIN)/python -m benchmarks

soak: .venv/.ready           ## faults, hostile bytes, damage, races and kills, thousands of each (half an hour)
	$(BIN)/python -m soak

lock:                        ## bring requirements.lock up to constraints.txt; new hashes from INDEX, a simple index (URL or folder)
	$(PYTHON) -m tools.lock $(INDEX)

verified:                    ## the same environment, every file but torch checked by its hash
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --require-hashes --no-deps --requirement requirements.lock
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch .venv/.ready

audit-dependencies: .venv/.ready  ## known vulnerabilities of what constraints.txt pins; asks a database on the net
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/pip install --quiet pip-audit==2.10.1
	grep -v '^torch==' constraints.txt | .venv-audit/bin/pip-audit --no-deps --disable-pip --requirement /dev/stdin

clean:
	rm -rf .venv .venv-audit .mypy_cache .ruff_cache .hypothesis build dist
