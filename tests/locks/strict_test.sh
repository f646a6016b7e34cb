#!/bin/bash
# PROGRAM BACKEND DEVICE: the program's threads and locks are seen, and nothing else orders its threads.
#
#   races         the corpus: each broken program is found with its lines, nothing is in a mended one
#   conformance   the suite: nothing is found, which `report = fail` would make a failure
#   fuzz          random programs of threads, locks and host calls agree with the oracle
. tests/support/shell.sh
program="$1" backend="$2" device="$3"
library="$PWD/lib/weir/libweir_locks.so"
export WEIR_BACKEND="$backend" POCL_DEVICES="$device" WEIR_MODULE_PATH="$PWD/lib/weir" WEIR_CHECK_THREADS=strict

arguments=()
case "$program" in
races) export WEIR_CHECK_HINTS=0 ;;
conformance) export WEIR_PLUGINS=check WEIR_CHECK_REPORT=fail WEIR_CHECK_SUPPRESSIONS=tests/conformance/known.json WEIR_COPY_THREADS=3 ;;
fuzz) arguments=(--locks 3000 1) ;;
esac
expect_status 0 env LD_PRELOAD="$library" "tests/locks/$program" "${arguments[@]}"

# Without the library the fuzzer has no locks to see.
[ "$program" != fuzz ] || expect_status 1 "tests/locks/$program" "${arguments[@]}"
