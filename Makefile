# SPDX-License-Identifier: Apache-2.0 OR MIT
# What can be done here. Everything that a target needs it gets by itself (scripts/need).

BUILD  ?= build
PREFIX ?= /usr/local
IN     ?=
SUITE  ?=
MINUTES ?= 10
CORPUS ?=
KEEP   ?=
WHAT   ?=
SEED   ?= 7

CARGO_TARGET_DIR ?= target
export CARGO_TARGET_DIR
# Make takes a path with spaces for several; the list of targets needs none.
ifneq ($(words $(abspath $(BUILD)) $(CARGO_TARGET_DIR)),2)
ifneq ($(filter-out help,$(MAKECMDGOALS)),)
  $(error The folder for what is built may have no spaces in its path: name another, as in `make BUILD=/tmp/levada CARGO_TARGET_DIR=/tmp/levada/target`)
endif
endif
# Tools that are called in other folders must find it, too.
override BUILD := $(abspath $(BUILD))

LEVADA = $(CARGO_TARGET_DIR)/debug/levada
JPEG   = examples/jpeg/src/jpeg
MEDIA  = $(BUILD)/demo/media
# What tests call; without those of USES, some tests are skipped and say so.
NEEDS  = cc g++ cmake cargo python3 pip pkg-config curl cjpeg djpeg ffmpeg lame mpg123
USES   = gdb clang riscv64-linux-gnu-gcc qemu-system-riscv64 qemu-system-riscv32 qemu-system-x86_64 busybox verilator
CROSS  = aarch64-linux-gnu-gcc riscv64-linux-gnu-gcc qemu-aarch64 qemu-riscv64
# rustup's programs, also in a shell that has not logged in anew.
export PATH := $(PATH):$(HOME)/.cargo/bin

.DEFAULT_GOAL := help
.PHONY: help build demo demo-mp3 test test-rest test-all test-runtime test-sanitizers test-cross test-install \
        test-model test-rust test-guest test-examples test-docs test-hardware check format bench corpus soak install clean

help: ## list the targets
	@echo "make TARGET, one of:"
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build the command and the runtime
	@scripts/need cc cmake cargo
	cargo build --workspace

demo: ## decode JPEG pictures and a clip on all cores; IN=photo.jpg takes yours
	@scripts/need cc cmake cargo $(if $(IN),,cjpeg ffmpeg)
	@echo "Building the C runtime and the command (the first time: three to five minutes on two cores)"
	@cargo build -p levada
	@mkdir -p $(BUILD)/demo
ifeq ($(IN),)
	@examples/jpeg/media/make-media $(MEDIA)
	@rm -rf $(BUILD)/demo/pictures $(BUILD)/demo/clip.y4m; mkdir -p $(BUILD)/demo/pictures
	@echo "Decoding the pictures in $(MEDIA):"
	@jpegs=$$(echo $(MEDIA)/*.jpg | tr ' ' ,); \
	  $(LEVADA) run $(JPEG)/Pictures.xdf --in "$$jpegs" --out $(BUILD)/demo/pictures/
	@echo; echo "Decoding the clip $(MEDIA)/clip.mjpeg:"
	@$(LEVADA) run $(JPEG)/Video.xdf --in $(MEDIA)/clip.mjpeg --out $(BUILD)/demo/clip.y4m
	@echo; echo "The pictures are in $(BUILD)/demo/pictures, the video is $(BUILD)/demo/clip.y4m"
else
	@mkdir -p $(BUILD)/demo/yours
	@$(LEVADA) run $(JPEG)/Pictures.xdf --in "$(IN)" --out $(BUILD)/demo/yours/
endif

demo-mp3: ## decode a short piece of music, in each form; IN=song.mp3 takes yours
	@scripts/need cc cmake $(if $(IN),,lame)
	@echo "Building the decoder"
	@examples/mp3/demo $(BUILD)/mp3 "$(IN)"

RUN_TESTS = scripts/run-tests --build $(BUILD)

test: ## what proves an installation: the essential of every part
	@scripts/need $(NEEDS)
	@scripts/need $(USES) || echo "without them, some tests are skipped and say so"
	@scripts/build-tests $(BUILD) runtime
	@$(RUN_TESTS) --set essential

test-rest: ## all tests that `make test` leaves out: sanitizers, other processors, the model checker, long ones
	@scripts/need $(NEEDS) $(CROSS)
	@scripts/need $(USES) || echo "without them, some tests are skipped and say so"
	@scripts/build-tests $(BUILD) runtime address thread portable aarch64 riscv64
	@$(RUN_TESTS) --set rest

test-all: test test-rest ## all tests

test-runtime: ## the C runtime's own tests
	@scripts/need cc cmake python3
	@scripts/need riscv64-linux-gnu-gcc qemu-system-riscv64 qemu-system-riscv32 || echo "without them, the tests of windows say that they are skipped"
	@scripts/build-tests $(BUILD) runtime
	@$(RUN_TESTS) --suite runtime

test-sanitizers: build ## all that is C, also what is generated, under the sanitizers
	@scripts/need cc cmake cargo cjpeg djpeg ffmpeg python3
	@scripts/build-tests $(BUILD) address thread
	@$(RUN_TESTS) --suite address --suite thread

test-cross: ## the C runtime's own tests for aarch64 and riscv64, under emulation
	@scripts/need cc cmake python3 aarch64-linux-gnu-gcc riscv64-linux-gnu-gcc qemu-aarch64 qemu-riscv64
	@scripts/build-tests $(BUILD) portable aarch64 riscv64
	@$(RUN_TESTS) --suite freestanding --suite portable --suite aarch64 --suite riscv64

test-install: ## a C and a C++ program that use what is installed
	@scripts/need cc g++ cmake pkg-config
	@scripts/need gdb || echo "without gdb, its tests say that they are skipped"
	@$(RUN_TESTS) --suite install

test-model: ## the lock-free protocols under the model checker
	@scripts/need cc cargo
	@$(RUN_TESTS) --suite model

test-rust: ## the compiler, the mapper, the command
	@scripts/need cc cmake cargo python3
	@scripts/need gdb || echo "without gdb, its tests say that they are skipped"
	@scripts/need clang || echo "without clang, programs with forks are compiled by gcc alone"
	@$(RUN_TESTS) --suite rust

test-guest: ## shields on four cores and other kernels, in an emulated machine
	@scripts/need cc cmake cargo
	@scripts/need qemu-system-x86_64 busybox || echo "without them, this says that it is skipped"
	@$(RUN_TESTS) --suite guest

test-examples: build ## all examples
	@scripts/need cjpeg djpeg python3 pip
	@scripts/build-tests $(BUILD) runtime
	@$(RUN_TESTS) --suite examples --suite jpeg --suite mp3

test-docs: build ## the commands and programs in the documents
	@scripts/need cc python3 pkg-config curl
	@$(RUN_TESTS) --suite docs

test-hardware: ## two processors and the bridge between them, simulated
	@$(RUN_TESTS) --suite hardware

check: ## formatting, lints with warnings as errors, the C as C++
	@scripts/need cc g++ cmake cargo clang-format shellcheck
	scripts/check

format: ## format everything
	@scripts/need cargo cc cmake clang-format
	cargo fmt --all
	git ls-files '*.c' '*.h' | xargs clang-format -i
	git ls-files '*.cal' | grep -v /tests/ | xargs cargo run -q -p levada -- fmt

bench: ## measure beside peers; SUITE=channel, pipeline, cal, stream, fork, mcapi, window, shield, map, apps, leases, standing or growth, JSON=file, PLOT=folder, QUICK=1, DOCS=1, CORPUS=DIR, APPS="NETWORK,in=FILE ..."
	@scripts/need cc g++ cmake cargo python3
	@echo "Building Levada as it is installed (some minutes, the first time)"
	@cargo build --release -p levada
	bench/run $(SUITE)

corpus: ## check, build and run the applications in a checkout: CORPUS=DIR, WHAT="check build run", SEED=7, DOCS=1, KEEP=FILE to go on later
	@scripts/need cc cmake cargo ffmpeg cjpeg python3
	@test -d "$(CORPUS)" || { echo "name a checkout of Orcc's applications: make corpus CORPUS=DIR" >&2; exit 1; }
	@cargo build --release -p levada
	scripts/corpus/run "$(CORPUS)" $(WHAT) --seed $(SEED) --levada "$(CARGO_TARGET_DIR)/release/levada" \
	  $(if $(DOCS),--docs docs/corpus.md) $(if $(KEEP),--keep "$(KEEP)")

soak: build ## run and interrupt networks for MINUTES=10
	@scripts/need cjpeg ffmpeg
	scripts/soak $(LEVADA) $(BUILD)/soak $(MINUTES)

install: ## install to PREFIX=/usr/local: the command, the C library, manual, completions
	@scripts/need cc cmake cargo
	@echo "Building the runtime and the command"
	@scripts/install "$(PREFIX)" $(BUILD)/release

clean: ## remove all that was built
	rm -rf $(BUILD)
	cargo clean -q 2>/dev/null || rm -rf target
