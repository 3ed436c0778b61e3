# Every target works from a bare clone: it makes .venv, builds and installs what it needs.
# Settings: PYTHON=..., the interpreter .venv is made with; WERROR=ON, warnings are errors; SLOW=1,
# `make test` leaves nothing out.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
  $$p -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && \
  echo $$p && break; done)
WERROR ?= OFF
STUB ?= src/abcgbm/_core.pyi
JOBS := $(shell getconf _NPROCESSORS_ONLN)
BIN := .venv/bin

export CMAKE_BUILD_PARALLEL_LEVEL ?= $(JOBS)
export HYPOTHESIS_PROFILE ?= $(if $(SLOW),ci,quick)
ifneq ($(wildcard ../shared/data),)
  export ABCGBM_DATA ?= $(abspath ../shared/data)
endif

CORE := $(wildcard $(patsubst %,cpp/%/*.cpp,base data loss tree grow boost predict))
CPP := $(wildcard cpp/*/*.[ch]pp)
# Folders too: a file that is gone is a change.
SOURCES := pyproject.toml CMakeLists.txt $(shell find cpp src -name __pycache__ -prune -o -print)
CORE_TESTS := tests/core tests/training/test_boosting.py tests/model/file/test_model_file_damage.py

.PHONY: demo test lint format docs stub core sanitize tsan wheel release-check workflows clean

demo: .venv/installed-cli,plot
	$(BIN)/abcgbm demo --force

# SLOW=1 runs what is marked slow, too, and looks longer for counter-examples.
test: .venv/installed-test
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(if $(SLOW),-m "slow or not slow")

# The site, at build/docs/html. Pages of the root go with it, and Sphinx writes into the copy alone.
docs: .venv/installed-docs
	rm -rf build/docs/source/api build/docs/source/project build/docs/source/*.md
	mkdir -p build/docs/source/project
	cp -Rp docs/. build/docs/source
	cp -p LICENSE CITATION.cff build/docs/source/project
	for page in $(filter-out README.md,$(wildcard *.md)); do \
	  cp -p $$page build/docs/source/project/$$(echo $$page | tr A-Z a-z); done
	$(BIN)/python -m sphinx -E -a -W --keep-going -n -q build/docs/source build/docs/html
	@echo 'open build/docs/html/index.html'

lint: .venv/installed-dev core
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/python tests/support/check_words.py
	$(BIN)/clang-format --dry-run -Werror $(CPP)
	printf '%s\n' $(CORE) | xargs -n 1 -P $(JOBS) $(BIN)/clang-tidy -p build/core --quiet
	! grep -nE '#pragma omp|std::j?thread' $(filter-out cpp/base/parallel.%,$(CPP))

format: .venv/installed-dev
	$(BIN)/ruff check --fix --exit-zero
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CPP)

# The typed face of the native module, generated and checked in.
stub: .venv/installed-dev
	$(BIN)/python -m nanobind.stubgen --quiet -m abcgbm._core -o $(STUB)

# The core alone, with no Python in sight; its compile commands are what clang-tidy reads.
core: .venv/tools
	$(BIN)/cmake -S . -B build/core -DABCGBM_PYTHON=OFF -DABCGBM_WERROR=$(WERROR)
	$(BIN)/cmake --build build/core

# Python itself has no sanitizer in it, so the runtime is loaded first; libstdc++ with it, or the
# runtime cannot follow exceptions. Python keeps memory to the end: leaks are not looked for.
sanitize: .venv/installed-test
	$(PIP_INSTALL) --no-deps --upgrade --target build/sanitize/site \
	  --config-settings=build-dir=build/sanitize/cmake \
	  --config-settings=cmake.build-type=Debug \
	  --config-settings=cmake.define.ABCGBM_SANITIZE=address,undefined .
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
	  PYTHONPATH=build/sanitize/site HYPOTHESIS_PROFILE=ci-small \
	  $(BIN)/python -m pytest --capture=sys -n $(JOBS) $(CORE_TESTS)

# Races: the pool, steps, validation and prediction by several threads. Of Python itself only what it
# locks is seen.
tsan: .venv/installed-test
	$(PIP_INSTALL) --no-deps --upgrade --target build/tsan/site \
	  --config-settings=build-dir=build/tsan/cmake \
	  --config-settings=cmake.build-type=Debug \
	  --config-settings=cmake.define.ABCGBM_SANITIZE=thread .
	LD_PRELOAD="$$($(CXX) -print-file-name=libtsan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	  TSAN_OPTIONS=halt_on_error=1 PYTHONPATH=build/tsan/site HYPOTHESIS_PROFILE=ci-small \
	  $(BIN)/python -m pytest --capture=sys tests/promises/test_races.py

# The sdist and the wheels of this machine in dist/, repaired and checked.
wheel: .venv/installed-release
	.ci/release wheels

# The same, then used and tested with every Python that is here: 3.11 to 3.14, pyenv's or of the PATH.
release-check: .venv/installed-release workflows
	.ci/release wheels use tests

# What is said to GitHub and to cibuildwheel: forms, pinned actions, permissions.
workflows: .venv/installed-release
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/zizmor --offline --persona pedantic .github/workflows
	for platform in linux macos windows; do \
	  $(BIN)/cibuildwheel --print-build-identifiers --platform $$platform || exit 1; done

clean:
	rm -rf build dist demo.png .hypothesis .mypy_cache .pytest_cache .ruff_cache .venv/installed-*

.venv/tools: pyproject.toml
	@test -n '$(PYTHON)' || { echo 'no Python >= 3.11 with venv found; set PYTHON' >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet cmake ninja $$($(BIN)/python -c "import tomllib; \
	  print(*tomllib.load(open('pyproject.toml', 'rb'))['build-system']['requires'])")
	touch $@

# Not isolated, so that rebuilds are incremental; not editable, so that tests see what users get, and
# what the benchmarks need beside it.
PIP_INSTALL = $(BIN)/python -m pip install --quiet --no-build-isolation \
  --config-settings=cmake.define.ABCGBM_WERROR=$(WERROR) \
  --config-settings=cmake.define.ABCGBM_BENCH=ON

.venv/installed-%: .venv/tools $(SOURCES)
	@ls .venv/installed-* >/dev/null 2>&1 || echo 'building, about two minutes the first time'
	$(PIP_INSTALL) '.[$*]'
	touch $@
