# Two commands for a newcomer: `make demo` and `make test`. Both fetch and build what they need, and are fast the second time.

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench needs build own

# Outside the clone, so that another clone on this machine starts warm.
CACHE := $(or $(VIRTPILOT_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/virtpilot)
export CARGO_TARGET_DIR ?= $(CACHE)/target

help:
	@echo 'make demo    start the playground: a real control plane on this machine'
	@echo 'make test    lint, tidy, unit and integration tests'
	@echo 'make lint    formatting, clippy and doc links alone'
	@echo 'make bench   measure, as a table and as JSON'

demo: build
	@$(CARGO_TARGET_DIR)/debug/virtpilot up

test: lint build
	@$(CARGO_TARGET_DIR)/debug/virtpilot-playground prepare
	cargo test --workspace --locked

lint: own
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- --deny warnings
	RUSTDOCFLAGS='--deny warnings' cargo doc --workspace --no-deps --document-private-items --locked

bench: own
	cargo build --workspace --locked --release
	@$(CARGO_TARGET_DIR)/release/virtpilot-bench

# Always the whole workspace: another selection has other features and would build everything anew.
build: own
	cargo build --workspace --locked

# Cargo cannot tell two clones apart in one target folder and would take the other's newer build for its own. What is ours is
# built anew when the clone has changed; everything else is kept.
own: needs
	@mkdir -p '$(CARGO_TARGET_DIR)'
	@if [ "$$(cat '$(CARGO_TARGET_DIR)/.clone' 2>/dev/null)" != '$(CURDIR)' ]; then \
	  cargo clean --quiet --workspace --locked && echo '$(CURDIR)' > '$(CARGO_TARGET_DIR)/.clone'; \
	fi

needs:
	@for tool in cargo go cc python3 git; do \
	  command -v $$tool >/dev/null || { echo "error: $$tool is not installed"; echo "  fix: install $$tool and run make again"; exit 1; }; \
	done
	@python3 -m pip --version >/dev/null 2>&1 || { echo "error: python3 has no pip"; echo "  fix: install pip (Debian: apt-get install python3-pip)"; exit 1; }
	@cargo fmt --version >/dev/null 2>&1 || { echo "error: rustfmt is not installed"; echo "  fix: rustup component add rustfmt"; exit 1; }
	@cargo clippy --version >/dev/null 2>&1 || { echo "error: clippy is not installed"; echo "  fix: rustup component add clippy"; exit 1; }
