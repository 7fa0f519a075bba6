# The commands of the project. `make` alone lists them.
#
# Warnings are denied when CI is set (as .ci/run does), so that half-finished work can still be
# built and tried on a developer's machine.

SHELL := /bin/bash
.DEFAULT_GOAL := help

export PATH := $(CURDIR)/.tools/bin:$(PATH)

CARGO ?= cargo
DENY_WARNINGS := $(if $(CI),-D warnings)
# fuzz/ and bench/ are workspaces of their own, so that libFuzzer and our peers stay out of the
# product's lock file; sharing the target folder spares a second build of what all of them use.
# Their lock files follow the product's crates by themselves: hence no --locked there.
BESIDE := --target-dir ../target

.PHONY: help run build test check format clippy docs features deny unit-tests fuzz-bodies bench soak tools

help: ## lists the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 16

run: ## builds and starts the quickstart on 127.0.0.1:8080
	$(CARGO) run --locked --bin tollgate -- run

build: ## builds the program as it is shipped: target/release/tollgate
	$(CARGO) build --locked --release --bin tollgate

test: ## installs what the tests need where it is missing, checks, and runs every test
	scripts/install-tools test
	$(MAKE) --keep-going --no-print-directory check unit-tests fuzz-bodies

check: format clippy docs features deny ## everything that reads the code without running it

format:
	$(CARGO) fmt --all --check
	cd fuzz && $(CARGO) fmt --check
	cd bench && $(CARGO) fmt --check

clippy:
	$(CARGO) clippy --locked --workspace --all-targets -- $(DENY_WARNINGS)
	cd fuzz && $(CARGO) clippy $(BESIDE) --tests -- $(DENY_WARNINGS)
	cd bench && $(CARGO) clippy $(BESIDE) -- $(DENY_WARNINGS)

docs:
	RUSTDOCFLAGS="-D rustdoc::broken_intra_doc_links $(DENY_WARNINGS)" \
		$(CARGO) doc --locked --workspace --no-deps --document-private-items

features:
	scripts/check-features

deny:
	@scripts/install-tools check
	cargo-deny --workspace check --hide-inclusion-graph bans licenses sources

unit-tests:
	$(CARGO) test --locked --workspace --no-fail-fast

fuzz-bodies:
	cd fuzz && $(CARGO) test $(BESIDE)

bench: ## runs the benchmarks against their peers and prints ratios; ONLY=name for one of them
	scripts/install-tools bench
	$(CARGO) build --locked --release --bin tollgate
	cd bench && $(CARGO) run --release -- $(ONLY)

soak: ## fuzzes every parser with libFuzzer, FOR seconds each (60 unless told)
	scripts/install-tools soak
	scripts/soak $(FOR)

tools: ## installs everything that tests, benchmarks and fuzzing need
	scripts/install-tools test bench soak
