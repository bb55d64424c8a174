# Each target does its own set-up: virtual environment, build, dependencies. Nothing that is up to
# date is repeated.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
KERNELS := $(wildcard fastdisc/_kernels/_cython/*.pyx fastdisc/_kernels/_cython/*.pxi fastdisc/_kernels/_cython/*.h)

.PHONY: demo test lint bench rivals clean

demo: $(VENV)/ready
	$(BIN)/python bench/demo.py

test: lint
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

# What .pre-commit-config.yaml runs, on all files.
lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH="$(abspath $(BIN)):$$PATH" cython-lint fastdisc/_kernels/_cython
	$(BIN)/mypy

bench: $(VENV)/ready
	mkdir -p bench/results
	$(BIN)/python -m pytest bench/kernels.py -q --benchmark-enable --benchmark-json=bench/results/kernels.json -p no:xdist
	$(BIN)/python bench/table.py bench/results/kernels.json --readme README.md
	$(BIN)/python bench/startup.py

rivals: $(VENV)/rivals
	$(BIN)/python bench/time_to_accuracy.py --json bench/results/time_to_accuracy.json
	$(BIN)/python bench/table.py bench/results/time_to_accuracy.json --readme README.md

clean:
	rm -rf $(VENV) build fastdisc.egg-info fastdisc/_kernels/_cython/*.so fastdisc/_kernels/_cython/*.cpp

# One environment for demo and tests, with an editable install: the kernels are built in place.
$(VENV)/ready: pyproject.toml setup.py $(KERNELS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -qq --upgrade pip "setuptools>=77" "cython>=3.1" "numpy>=2.0"
	$(BIN)/pip install -qq --no-build-isolation -e ".[plot,test,lint]"
	touch $@

$(VENV)/rivals: $(VENV)/ready
	$(BIN)/pip install -qq --no-build-isolation -e ".[bench]"
	touch $@
