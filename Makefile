# `make demo` and `make test` set up everything themselves, in .venv.
PYTHON ?= python3
BIN := .venv/bin
# Without bytecode for all of it: what is imported is compiled then, and its bytecode kept, whatever the shell says.
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt
export PYTHONDONTWRITEBYTECODE :=

# `make test` takes a share of the largest families of cases (tests/sample.py), `make test-all` all of them; `make fuzz`
# draws new ones: random programs, scripts and mutants, CASES of each, from a seed that it prints.
.PHONY: demo test test-all test-avx2 test-aarch64 test-oclgrind test-doors test-oldest test-wheel test-plugin coverage docs fuzz lint types lines clean

demo: .venv/onnx
	$(BIN)/python examples/demo.py
	$(BIN)/python examples/onnx_demo.py

test: .venv/ready
	$(BIN)/python -m pytest -q -n auto --dist worksteal

test-all: .venv/doors
	STRATA_ALL_TESTS=1 $(BIN)/python -m pytest -q -n auto --dist worksteal

# The site, in build/site; a warning, such as a broken link, is an error.
docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

CASES ?= 300
fuzz: .venv/ready
	$(BIN)/python -m pytest -q -m hypothesis --hypothesis-profile=fuzz $$(grep -rl --include='test_*.py' '^@given' tests)
	$(BIN)/python -m tests.fuzz --cases $(CASES)

# The lines that tests run, processes that they start left out, by file; as a site in build/coverage.
coverage: .venv/ready
	$(BIN)/python -m pytest -q -n auto --dist worksteal --cov --cov-report=term:skip-covered --cov-report=html

# The end-to-end tests with code for a machine that has AVX2 and a small L2: see docs/machines.md.
test-avx2: .venv/ready
	STRATA_MACHINE=avx2 $(BIN)/python -m pytest -q -n auto --dist worksteal tests/e2e

# The CUDA text of all operators on oclgrind: see docs/gpu.md.
test-oclgrind: .venv/ready
	STRATA_ALL_TESTS=1 $(BIN)/python -m pytest -q -n auto --dist worksteal tests/oclgrind

# End-to-end tests whose kernels qemu runs as AArch64, and each operator of te.nn in each dtype: see docs/machines.md.
AARCH64 := constants te_constants cuts kinds native_programs operators operator_schedules policies programs schedules threads
test-aarch64: .venv/ready
	STRATA_ALL_TESTS=1 $(BIN)/python -m pytest -q -n auto --dist worksteal tests/e2e/test_aarch64.py
	STRATA_MACHINE=neoverse-n1 $(BIN)/python -m pytest -q -n auto --dist worksteal $(AARCH64:%=tests/e2e/test_%.py)

# The tests that need torch, ONNX, JAX or dask, which are installed for them.
test-doors: .venv/doors
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m doors $$(grep -rl --include='test_*.py' mark.doors tests)
	$(BIN)/python -m pytest -q tests/fleet

# A share of the tests with the oldest dependencies that pyproject.toml allows.
test-oldest:
	$(PYTHON) tools/versions.py oldest

# The commands and the Python of the README, from the wheel in an empty environment.
test-wheel:
	$(PYTHON) tools/wheel.py

# The example of a plugin, installed beside the wheel in an empty environment.
test-plugin:
	$(PYTHON) -m tools.plugin

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/mypy

# The lines of each room beside its budget, tools/lines.toml.
lines:
	$(PYTHON) tools/lines.py

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/ready: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[dev]'
	touch $@

.venv/onnx: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[onnx]'
	touch $@

.venv/docs: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[docs]'
	touch $@

.venv/doors: .venv/ready
	$(INSTALL) -e '.[dev,doors,fleet]'
	touch $@

clean:
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache .coverage*
