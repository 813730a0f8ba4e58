# What there is to do here. `make` alone lists it.

CARGO ?= cargo
# Lives that `make soak` plays, and the first seed.
RUNS ?= 20000
SEED ?= 1
# How long `make fuzz` goes on.
SECONDS ?= 60

.PHONY: help demo test quick test-page screenshots test-agents test-repositories conformance many lines bench load soak fuzz cuts lint doc

help: ## List what there is
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Build adj, and watch a fleet at work on a sample repository
	$(CARGO) build -p adj
	@$(CARGO) run --quiet -p adj -- demo

test: ## Run every test, and compare the printed pages and snapshots
	scripts/test.sh
	scripts/test-page.sh

test-page: ## Test the web page: its units, and the built page in Chromium (needs npm)
	scripts/test-page.sh

quick: ## Run every test but those that start a fleet or take long
	scripts/test.sh quick

screenshots: ## Make the pictures in docs/screens from the running demo (needs npm and Chromium)
	$(CARGO) build -p adj
	cd crates/web/page && node browser/demo-shots.mjs "$$OLDPWD/target/debug/adj" "$$OLDPWD/docs/screens"

test-agents: ## Drive real agent programs against a model on loopback (needs npm and a network, no key)
	$(CARGO) build -p adj --bins --examples
	crates/adj/tests/agents/claude.sh
	crates/adj/tests/agents/claude_room.sh
	crates/adj/tests/agents/claude_architect.sh
	crates/adj/tests/agents/claude_outage.sh
	crates/adj/tests/agents/codex.sh
	crates/adj/tests/agents/codex_architect.sh

test-repositories: ## Land a change in real repositories: ADJ_REPOSITORIES is a folder with clones (needs their toolchains and a network)
	$(CARGO) build -p adj
	crates/adj/tests/repositories.sh

conformance: ## Run the public suites of Durable Streams, OpenAPI and MCP against adj serve (needs npm, python3 and a network)
	$(CARGO) build -p adj --bin adj
	conformance/run.sh

many: ## Run fifty scripted agents on two hundred tickets, and print what the fleet itself costs
	ADJ_MANY_WORKERS=50 ADJ_MANY_TICKETS=200 $(CARGO) test -p adj --test cli -- --nocapture fleet::many::many

lines: ## Let a hundred agents print ten thousand lines a second, and print what listening costs (release build)
	ADJ_LINES_AGENTS=100 ADJ_LINES_RATE=100 ADJ_LINES_SECONDS=20 $(CARGO) test --release -p adj --test cli -- --nocapture fleet::many::every_line

bench: ## Measure the log, the kernel and the server beside what the machine can do without them
	$(CARGO) bench -p adjutant-log --bench bench
	$(CARGO) bench -p adj --bench server

load: ## Let a hundred clients move ten thousand tasks over the whole board, over HTTP (release build)
	ADJ_LOAD_CLIENTS=100 ADJ_LOAD_TASKS=10000 $(CARGO) test --release -p adj --test cli -- server::many_clients

soak: ## Play tens of thousands of simulated lives with every fault (RUNS=20000 SEED=1)
	$(CARGO) run --release -p adj -- sim --seed $(SEED) --runs $(RUNS) --faults all

fuzz: ## Send random command lines and random agent output to what reads them, a minute each (SECONDS=60 SEED=1)
	$(CARGO) run --release --manifest-path fuzz/Cargo.toml --target-dir target/fuzz -- $(SECONDS) $(SEED)

cuts: ## Cut the power at every moment of a run, not only at some (half an hour)
	ADJ_CUT_EVERY=1 $(CARGO) test -p adj --test cli -- --nocapture fleet::power_cuts::a_run

lint: ## Check format, lints, licences and advisories
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --features adj/otel -- -D warnings
# Building cargo-deny takes minutes, and its advisories need a network. A test (crates/testing/tests/structure/dependencies.rs)
# checks licences and sources too, so that those hold in CI without it.
	@if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny check; \
	else echo "cargo-deny is not installed: advisories were not checked (cargo install --locked cargo-deny)"; fi

doc: ## Write docs/machines, docs/rules.md, docs/configuration.md, docs/api.md and docs/promises.md from the tables, and build the crates' documentation
	ADJ_WRITE_DOCS=1 $(CARGO) test --quiet --workspace --features adj/otel --lib --bins -- docs reference permissions metrics walk readme
	ADJ_WRITE_DOCS=1 $(CARGO) test --quiet --workspace --features adj/otel --test cli -- promises
	$(CARGO) doc --workspace --no-deps
