#!/usr/bin/env bash
# Runs the tests of the workspace: all, or with `quick` as first argument those that neither start a fleet nor take long (the list
# below). Other arguments go to the test runner: names, or `-E 'test(…)'` for nextest.
#
# Most tests start a fleet and wait, so with nextest three run at a time for each core. As root they get a folder in memory,
# which is unmounted when they end; tests that are about a disk make one of their own. ADJ_TEST_DIR names another folder.
# With cargo-nextest each test is a process of its own and its time is printed; without it `cargo test` runs the same tests.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${ADJ_TEST_DIR:-}

if [ -z "$folder" ] && [ "$(id -u)" -eq 0 ] && [ -z "${ADJ_IN_MEMORY:-}" ]; then
  folder=/tmp/adj-tests
  mkdir -p "$folder"
  if unshare --mount mount -t tmpfs -o mode=1777 adj-tests "$folder" 2>/dev/null; then
    # The mount is seen by what runs in here alone, and goes with it.
    exec env ADJ_IN_MEMORY=1 unshare --mount bash -c \
      'mount -t tmpfs -o mode=1777 adj-tests "$1" && shift && export TMPDIR=/tmp/adj-tests && exec "$@"' \
      bash "$folder" bash "$PWD/scripts/test.sh" "$@"
  fi
  folder=
fi
if [ -n "$folder" ]; then
  export TMPDIR=$folder
fi

features=(--workspace --features adj/otel)
# Parts of the names of tests that `quick` leaves out besides fleets: each took above ten seconds on two busy cores.
long=(
  whatever_goes_wrong with_faults_that_pass                     # the long simulations
  tests::crash::a_task_in kill_anywhere was_killed_anywhere     # a process is killed at each of many moments
  a_full_disk_at_any_write                                      # a write fails at each of many moments
  every_command_is_answered_alike                               # every command is run in six ways
  leaving_out_or_replacing_any_action no_outcome_of_the_world  # the kernel's walks, which cargo test -p adjutant-kernel runs
  two_hundred who_is_slow_silent a_server_stops_within_a_second # many clients, or time limits of the server
)
quick=
if [ "${1:-}" = quick ]; then
  quick=1
  shift
fi
if cargo nextest --version >/dev/null 2>&1; then
  if [ -n "$quick" ]; then
    set -- -E "not test(/^fleet::/)$(printf ' and not test(%s)' "${long[@]}")" "$@"
  fi
  status=0
  cargo nextest run "${features[@]}" --test-threads "${ADJ_TEST_THREADS:-$((3 * $(nproc)))}" "$@" || status=$?
  scripts/slow-tests.sh "${CARGO_TARGET_DIR:-target}/nextest/default/junit.xml" || status=1
  exit "$status"
fi
echo "cargo-nextest is not installed, so tests share a process and no times are printed (cargo install --locked cargo-nextest)"
skipped=()
if [ -n "$quick" ]; then
  skipped=(--skip fleet::)
  for name in "${long[@]}"; do skipped+=(--skip "$name"); done
fi
exec cargo test "${features[@]}" "$@" -- "${skipped[@]}"
