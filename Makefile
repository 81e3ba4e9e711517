# Start with `make demo` and `make test`. Both download and build what they need; later runs are fast.

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench faults fuzz mutants verify-crds update-crds image image-check guest needs

# Outside the clone, so that all clones on this machine share it.
CACHE := $(or $(VIRTPILOT_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/virtpilot)
export CARGO_TARGET_DIR ?= $(CACHE)/target

help:
	@echo 'make demo     start the playground and let the autopilot, the advisor and the fleet show what they do on it'
	@echo 'make test     lint, tidy, unit and integration tests; alerts, dashboards, scripts and units of nodes'
	@echo 'make lint     formatting, clippy and doc links alone'
	@echo 'make bench    measure, as a table and as JSON (BENCH="--idle 600" for a long quiet, "--only kinds" for one part)'
	@echo 'make faults   let everything go wrong between operator and server, one thing at a time, and compare plans and all views of 50 random clusters (twenty minutes)'
	@echo 'make fuzz     try every property for FUZZ_SECONDS (60) and at least 10,000 cases each'
	@echo 'make verify-crds  report which pinned sources of third-party CRDs are stale or no longer load'
	@echo 'make update-crds  move the pins to the newest versions that load'
	@echo 'make image    build the operator as an OCI image layout, without a container engine'
	@echo 'make image-check  build it twice from scratch, in two folders, and compare the bytes'
	@echo 'make guest    build the static guest of runner machines, to be copied into their image'
	@echo 'make mutants  change the THINK crates in small ways and report what no test notices (half an hour; MUTANTS="--package change" for one crate)'

demo: needs
	@$(LOCKED) build
	@'$(CARGO_TARGET_DIR)/debug/virtpilot' up --story

test: needs
	@$(LOCKED) locked-test

lint: needs
	@$(LOCKED) locked-lint

bench: needs
	@$(LOCKED) locked-bench

faults: needs
	@$(LOCKED) locked-faults

fuzz: needs
	@$(LOCKED) locked-fuzz

mutants: needs
	@$(LOCKED) locked-mutants

verify-crds: needs
	@$(LOCKED) locked-verify-crds

update-crds: needs
	@$(LOCKED) locked-update-crds

image: needs
	@$(LOCKED) locked-image

image-check: needs
	@$(LOCKED) locked-image-check

guest: needs
	@$(LOCKED) locked-guest

# Cargo does not distinguish two clones that share a target folder and would use the other's newer build. So only one clone at a
# time uses it, and the workspace crates are rebuilt when the clone has changed; dependencies are kept.
LOCK = '$(CARGO_TARGET_DIR)/.clone.lock'
LOCKED = mkdir -p '$(CARGO_TARGET_DIR)' && { flock --nonblock $(LOCK) true || echo 'another clone is building or testing, waiting'; } && \
	flock $(LOCK) $(MAKE) --no-print-directory

.PHONY: own build locked-test locked-lint locked-bench locked-faults locked-fuzz locked-mutants locked-verify-crds locked-update-crds \
	locked-image locked-image-check locked-guest
own:
	@if [ "$$(cat '$(CARGO_TARGET_DIR)/.clone' 2>/dev/null)" != '$(CURDIR)' ]; then \
	  cargo clean --quiet --workspace --locked && echo '$(CURDIR)' > '$(CARGO_TARGET_DIR)/.clone'; \
	fi

# Always the whole workspace: another selection of packages enables other features and would rebuild everything.
build: own
	cargo build --workspace --locked

locked-lint: own
	@for tool in fmt clippy; do \
	  cargo $$tool --version >/dev/null 2>&1 || { echo "error: cargo $$tool is not installed"; echo "  fix: add the component rustfmt or clippy to Rust"; exit 1; }; \
	done
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- --deny warnings
	RUSTDOCFLAGS='--deny warnings' cargo doc --workspace --no-deps --document-private-items --locked

locked-test: locked-lint build
	@'$(CARGO_TARGET_DIR)/debug/virtpilot-playground' prepare --tests
	cargo test --workspace --locked

locked-bench: own
	cargo build --workspace --locked --release
	@'$(CARGO_TARGET_DIR)/release/xtask' gen-pack '$(CARGO_TARGET_DIR)/bench-pack'
	@'$(CARGO_TARGET_DIR)/release/virtpilot-bench' --pack '$(CARGO_TARGET_DIR)/bench-pack' $(BENCH)
	cargo bench --workspace --locked --bench large_objects --bench webhooks

locked-faults: build
	@'$(CARGO_TARGET_DIR)/debug/virtpilot-playground' prepare
	VIRTPILOT_ALL_FAULTS=1 VIRTPILOT_CLUSTERS=50 cargo test --workspace --locked --test it -- --nocapture \
	  whatever_goes_wrong on_random_clusters of_random_clusters
	VIRTPILOT_SEEDS=10000 cargo test --profile fuzz --package fleet --locked --lib -- \
	  a_seeded_simulation every_job_is_run_once every_job_runs_once

locked-fuzz: build
	@'$(CARGO_TARGET_DIR)/debug/xtask' fuzz '$(or $(FUZZ_SECONDS),60)'

locked-verify-crds: build
	@'$(CARGO_TARGET_DIR)/debug/virtpilot-playground' crds verify --tools tools

locked-update-crds: build
	@'$(CARGO_TARGET_DIR)/debug/virtpilot-playground' crds update --tools tools; code=$$?; \
	  '$(CARGO_TARGET_DIR)/debug/xtask' gen && exit $$code

IMAGE = $(CARGO_TARGET_DIR)/image
locked-image: build
	@rm -rf '$(IMAGE)'
	@'$(CARGO_TARGET_DIR)/debug/xtask' image '$(IMAGE)'

locked-image-check: build
	@rm -rf '$(IMAGE)-check'
	@for number in one two; do \
	  CARGO_TARGET_DIR='$(IMAGE)-check/build-'$$number '$(CARGO_TARGET_DIR)/debug/xtask' image '$(IMAGE)-check/'$$number || exit 1; \
	done
	@diff -r '$(IMAGE)-check/one' '$(IMAGE)-check/two' && echo 'both images are the same'

locked-guest: build
	@'$(CARGO_TARGET_DIR)/debug/xtask' guest '$(CARGO_TARGET_DIR)/guest'

# Its version is part of the path, so that another one is built when it changes.
CARGO_MUTANTS := 27.1.0
MUTANTS_ROOT = $(CACHE)/cargo-mutants-$(CARGO_MUTANTS)
locked-mutants: build
	@test -x '$(MUTANTS_ROOT)/bin/cargo-mutants' || \
	  cargo install cargo-mutants --version '=$(CARGO_MUTANTS)' --locked --root '$(MUTANTS_ROOT)'
	@'$(CARGO_TARGET_DIR)/debug/xtask' mutants '$(MUTANTS_ROOT)/bin/cargo-mutants' '$(CARGO_TARGET_DIR)' $(MUTANTS)

needs:
	@for tool in cargo go cc python3 git flock; do \
	  command -v $$tool >/dev/null || { echo "error: $$tool is not installed"; echo "  fix: install $$tool and run make again"; exit 1; }; \
	done
	@python3 -m pip --version >/dev/null 2>&1 || { echo "error: python3 has no pip"; echo "  fix: install pip (Debian: apt-get install python3-pip)"; exit 1; }
