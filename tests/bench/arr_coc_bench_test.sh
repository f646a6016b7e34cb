#!/bin/bash
# The benchmark checks its results, runs and prints what a script can read.
. tests/support/shell.sh

export WEIR_BACKEND=opencl WEIR_MODULE_PATH=lib/weir POCL_DEVICES="${POCL_DEVICES:-pthread}"
bench=tests/bench/arr_coc_bench

expect_status 0 "$bench" --runs 1 --frames 2 --json
printf '%s\n' "$output" | python3 -c '
import json, sys
report = json.load(sys.stdin)
assert report["backend"] == "opencl" and report["runs"] == 1 and report["frames"] == 2
assert [row["slots"] for row in report["rows"]] == [1, 2, 3] * 2
for row in report["rows"]:
    for name in "frames_per_second", "texture_ms", "relevance_ms", "allocation_ms":
        assert 0 < row[name]["least"] <= row[name]["median"] <= row[name]["most"], (name, row)
'

expect_status 0 "$bench" --runs 1 --frames 1
expect_contains "$output" "noise 1024x1024"
expect_status 0 "$bench" --help
expect_contains "$output" "usage: arr_coc_bench"
expect_status 1 "$bench" --runs 0
expect_contains "$output" "'--runs 0' was not expected"
