# What people run here. `cargo test` is the whole check; the rest is named for convenience.

.PHONY: check bench

check:
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	cargo test

# How fast it is, beside what this machine can do without us, in one run.
bench:
	cargo bench -p adjutant-runtime --bench bench
