# Each target does its own set-up: a virtual environment, the build, the dependencies. Nothing is done again that is up to date.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
KERNELS := $(wildcard fastdisc/_kernels/_cython/*.pyx fastdisc/_kernels/_cython/*.pxi fastdisc/_kernels/_cython/*.h)

JITTED := $(wildcard fastdisc/_kernels/_numba/*.py)

.PHONY: demo test bench rivals clean

demo: $(VENV)/ready
	$(BIN)/python bench/demo.py

test: $(VENV)/ready $(VENV)/numba
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH="$(abspath $(BIN)):$$PATH" cython-lint fastdisc/_kernels/_cython
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

bench: $(VENV)/ready $(VENV)/numba
	mkdir -p bench/results
	$(BIN)/python -m pytest bench/kernels.py -q --benchmark-enable --benchmark-json=bench/results/kernels.json -p no:xdist
	$(BIN)/python bench/table.py bench/results/kernels.json --readme README.md
	$(BIN)/python bench/startup.py

rivals: $(VENV)/rivals
	$(BIN)/python bench/time_to_accuracy.py --json bench/results/time_to_accuracy.json
	$(BIN)/python bench/table.py bench/results/time_to_accuracy.json --readme README.md

clean:
	rm -rf $(VENV) build fastdisc.egg-info fastdisc/_kernels/_cython/*.so fastdisc/_kernels/_cython/*.cpp

# One environment for demo and tests, and an editable install: the kernels are built in place, Python files are used as they are.
$(VENV)/ready: pyproject.toml setup.py $(KERNELS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -qq --upgrade pip "setuptools>=77" "cython>=3.1" "numpy>=2.0"
	$(BIN)/pip install -qq --no-build-isolation -e ".[plot,test,lint]"
	touch $@

# Numba's disk cache watches only the file of the function that is called, and these call each other.
$(VENV)/numba: $(VENV)/ready $(JITTED)
	rm -f fastdisc/_kernels/_numba/__pycache__/*.nb?
	touch $@

$(VENV)/rivals: $(VENV)/ready
	$(BIN)/pip install -qq --no-build-isolation -e ".[bench]"
	touch $@
