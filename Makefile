# On a fresh machine (Python 3.11 or newer, make, a C++ compiler): `make demo` and `make test` do all set-up themselves.
PYTHON ?= $(firstword $(foreach name,python3.13 python3.12 python3.11 python3,$(if $(shell $(name) -c 'import sys; print(sys.version_info >= (3, 11) or "")' 2>/dev/null | grep True),$(name))))
VENV := .venv
BIN := $(VENV)/bin
NATIVE := $(wildcard src/ramify/native/*.cpp src/ramify/native/*.h)
BUILD := pyproject.toml CMakeLists.txt $(NATIVE)

.PHONY: demo test quick check lint types imports words docs tests kernels sanitize compilers fuzz fuzz-kernels faults wheel pictures bench reproduce clean

demo: $(VENV)/.run
	$(BIN)/ramify demo

test: lint types imports words docs kernels tests

# An answer in two minutes: without tests that start servers, clusters, browsers or builds.
quick: lint types imports words
	$(BIN)/python -m pytest -q -n 2 -m 'not slow'

check: test

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Ramify needs Python 3.11 or newer; none was found."; exit 1; }
	$(PYTHON) -m venv $(VENV)

# What builds the core stays in the environment, so that only what has changed is compiled again.
$(VENV)/.build: $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'scikit-build-core>=0.10' 'nanobind>=2.4' cmake ninja
	@touch $@

$(VENV)/.run: $(VENV)/.build $(BUILD)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --editable '.[serve]'
	@touch $@

$(VENV)/.test: $(VENV)/.build $(BUILD)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --editable '.[test]'
	@touch $@ $(VENV)/.run

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/mypy

imports: $(VENV)/.test
	$(BIN)/lint-imports --no-cache

# Words that were given up, and their replacements: tools/check_words.py.
words: $(VENV)/.test
	$(BIN)/python tools/check_words.py

docs: $(VENV)/.test
	$(BIN)/sphinx-build -W -n --keep-going -q docs docs/_build/html

tests: $(VENV)/.test
	$(BIN)/python -m pytest -q -n 2

# The kernels on their own, outside of the environment: make sanitize tests all that uses them under the address and
# undefined-behaviour sanitizers of GCC (make test: the bindings of all kernels), make compilers builds them with GCC and Clang, where every warning is an error.
CONFIGURE := $(BIN)/cmake -S . -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -DPython_EXECUTABLE=$(abspath $(BIN)/python) --log-level=WARNING
SANITIZED := tests/native tests/decisions tests/taxonomy/test_closure.py tests/features/test_vectorizer.py \
  $(patsubst %,tests/learners/test_%.py,bayesian boosting graph_solver hsvm linear_solver naive_bayes shards shrinkage treeboost)

build/sanitize/.built: $(VENV)/.test $(BUILD)
	$(CONFIGURE) -B build/sanitize -DCMAKE_CXX_COMPILER=g++ -DCMAKE_BUILD_TYPE=RelWithDebInfo -DRAMIFY_SANITIZE=ON
	$(BIN)/cmake --build build/sanitize
	@touch $@

WITH_SANITIZERS = LD_PRELOAD="$(foreach lib,asan ubsan stdc++,$(shell g++ -print-file-name=lib$(lib).so))" \
  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 RAMIFY_CORE=build/sanitize PYTHONPATH=tests \
  $(BIN)/python -m pytest -q -n 2 -p other_core

sanitize: build/sanitize/.built
	$(WITH_SANITIZERS) $(SANITIZED)

# Kernels with random inputs, under the same sanitizers: a minute with Clang's libFuzzer, which looks for inputs that reach new
# code (make fuzz-kernels SECONDS=3600), or 20,000 random inputs with GCC in make test.
FUZZED := tests/attacks/kernels/fuzz_kernels.cpp $(patsubst %,src/ramify/native/%.cpp,terms closure isotonic h_loss sparse_rows csv_rows)
SANITIZERS := -std=c++17 -O1 -g -fno-sanitize-recover=all -D_GLIBCXX_ASSERTIONS -I src/ramify/native
SECONDS := 60

build/fuzz_kernels: $(FUZZED) $(NATIVE)
	@mkdir -p build
	$(CXX) $(SANITIZERS) -fsanitize=address,undefined $(FUZZED) -o $@

# every kernel through its binding, too
kernels: build/fuzz_kernels build/sanitize/.built
	build/fuzz_kernels 20000
	HYPOTHESIS_PROFILE=brief $(WITH_SANITIZERS) tests/native

fuzz-kernels:
	@mkdir -p build/kernel-corpus build/attack-findings
	clang++ $(SANITIZERS) -DRAMIFY_LIBFUZZER -fsanitize=fuzzer,address,undefined $(FUZZED) -o build/guided_kernels
	build/guided_kernels -max_total_time=$(SECONDS) -artifact_prefix=build/attack-findings/ build/kernel-corpus

compilers: $(VENV)/.build
	for compiler in g++ clang++; do \
	  $(CONFIGURE) -B build/$$compiler -DCMAKE_CXX_COMPILER=$$compiler -DCMAKE_BUILD_TYPE=Release -DRAMIFY_WERROR=ON && \
	  $(BIN)/cmake --build build/$$compiler || exit 1; \
	done

# Damaged and hostile files and requests: make fuzz FUZZ='--cases 100000 --seed 3 --target models'; recipes of findings go to
# build/attack-findings.
fuzz: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m attacks.run $(FUZZ)

# Everything that Ramify writes, with every system call failing in turn: make faults FAULTS='--scenario save'.
faults: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m attacks.faults.run $(FAULTS)

wheel: $(VENV)/.test
	$(BIN)/python -m build --wheel --outdir dist

# Draws the pictures in docs/images anew; needs Chromium.
pictures: $(VENV)/.test
	$(BIN)/python docs/draw_pictures.py

# Ramify beside its peers: make bench BENCH='--problem directory-100'; see benchmarks/README.md.
bench: $(VENV)/.run
	$(BIN)/python benchmarks/run.py $(BENCH)

# A paper's experiments beside its figures: make reproduce PAPER=gopal2013 ARGS="--quick"; without PAPER, lists them.
reproduce: $(VENV)/.run
	$(BIN)/python -m experiments $(PAPER) $(ARGS)

clean:
	rm -rf $(VENV) build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis
