# Makefile - a facade over CMake and CTest for people in a hurry; CMakePresets.json is the truth.
#
#   make run      install what is missing, build, fetch a small model, let it write    MODEL=… PROMPT=… ARGS=…
#   make test     the whole test suite: unit tests, command line, real models, Python oracles
#   make check    layers, style, exported symbols, documents
#   make bench    decode and prefill speed                                              MODEL=…
#   make asan     the unit tests under AddressSanitizer and UBSan (make tsan: under ThreadSanitizer)
#   make fuzz     every fuzz target                                                     FUZZ_SECONDS=…
#   make install  the release build                                                     PREFIX=…
#   make clean    removes build/; models/ and .venv/ stay
SMALL_MODEL  := models/SmolLM2-135M-Instruct.Q4_1.gguf
MODEL        ?= $(SMALL_MODEL)
PROMPT       ?= 你好
ARGS         ?=
FUZZ_SECONDS ?= 60
PREFIX       ?= /usr/local
JOBS         := $(shell nproc 2>/dev/null || echo 2)
# Through the environment, where no character in them means anything to the shell.
export MODEL PROMPT

# $(call configure,PRESET,TESTS): only when build/PRESET is new or was made without tests that are wanted now.
configure = @grep -qs '^NIB_TESTS:BOOL=\($(2)\|ON\)$$' build/$(1)/CMakeCache.txt && test -f build/$(1)/build.ninja \
    || cmake --preset $(1) -DNIB_TESTS=$(2) >&2
build = @cmake --build --preset $(1) -j $(JOBS) $(2) >&2
fetch = @test "$$MODEL" != $(SMALL_MODEL) || test -f $(SMALL_MODEL) || \
    { scripts/install_deps fetch && scripts/fetch_model smollm2 >&2; }

.PHONY: all run test check bench asan tsan fuzz install clean
all:
	@scripts/install_deps build
	$(call configure,release,OFF)
	$(call build,release,--target nib)

run: all
	$(fetch)
	@exec build/release/nib -m "$$MODEL" -p "$$PROMPT" -n 128 --temp 0.8 --top-p 0.95 $(ARGS)

test:
	@scripts/install_deps build fetch test
	@scripts/fetch_model smollm2 gemma3 >&2
	@scripts/make_venv
	$(call configure,release,ON)
	$(call build,release)
	@ctest --preset release -j $(JOBS)

check: all
	$(call build,release,--target nib_static nib_shared)
	@scripts/check_layers
	@scripts/check_style build/release/libnib.a build/release/libnib.so
	@scripts/check_docs
	@man/update --check build/release/nib

bench: all
	$(fetch)
	@exec build/release/nib bench -m "$$MODEL" $(ARGS)

asan tsan:
	@scripts/install_deps build test
	$(call configure,$@,ON)
	$(call build,$@)
	@ctest --preset $@ -j $(JOBS)

fuzz:
	@scripts/install_deps build ci
	$(call configure,fuzz,OFF)
	$(call build,fuzz)
	@scripts/fuzz build/fuzz $(FUZZ_SECONDS)

install: all
	$(call build,release)
	@cmake --install build/release --prefix "$(PREFIX)"

clean:
	@rm -rf build
