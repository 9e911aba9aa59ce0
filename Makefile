# Dispatches only: each target is a script of the same name.
#
#   LINUX=/path/to/linux-7.3   use that tree instead of the pinned one
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory
FLAVOUR ?= release

.PHONY: help setup demo test unit tree kernel image series refresh check bisect bench bench-guard clean distclean
.NOTPARALLEL:

help: ## show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile
	@echo '  LINUX=/path/to/linux-7.3 uses that tree instead of the pinned one'

setup: ## install the Debian packages that are missing
	@scripts/setup

demo: setup image ## build the kernel, boot it and show the feature at work
	@vm/demo

test: setup $(if $(ONLY),,unit) ## all tests: unit, cheap checks, virtual machines (ONLY=name or group, ACCEL=kvm)
	@FAST=1 scripts/check
	@scripts/kernel release >/dev/null
	@scripts/kernel debug >/dev/null
	@vm/test

unit: setup ## the tests that need no kernel, in a minute or two
	@scripts/tests/series-test
	@scripts/tests/bench-test
	@[ ! -e tools/testing/promote/Makefile ] || $(MAKE) -C tools/testing/promote run

tree: setup ## compose the patched tree out/tree (FORCE=1 drops edits made there)
	@scripts/tree

kernel: setup ## build the kernel: FLAVOUR=release, debug or pristine
	@scripts/kernel $(FLAVOUR)

image: kernel ## the same; the path of the bzImage is the last line

series: setup ## compose the mail-ready patches out/series/ and prove them with git am
	@scripts/series

refresh: setup ## write edits made in out/tree back (PATCH=NNNN: into that patch)
	@scripts/refresh

check: setup ## claims, stale diffs, checkpatch, kernel-doc, sparse, ... (FAST=1: without a kernel)
	@scripts/check

bisect: setup ## build every prefix of the series, with the option on and off (TARGETS="mm/ kernel/": only that)
	@scripts/bisect

bench: tree ## what it costs: instructions counted in virtual machines (ONLY=name or group)
	@bench/run

bench-guard: tree ## fail if the hook or the drain has become dearer
	@GUARD=1 bench/run

clean: ## remove what was built, keep what was downloaded
	@shopt -s extglob nullglob; rm -rf out/!(cache|src)

distclean: ## remove out/
	@rm -rf out
