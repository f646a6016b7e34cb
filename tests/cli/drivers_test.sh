#!/bin/bash
# The command on OpenCL drivers other than PoCL 3.1, which the tests' library plays, and on one that
# builds nothing.
. tests/cli/cli.sh
. "$here/tests/cli/bench.sh"
unset XML_OUTPUT_FILE # the suite's tests, which fail here, are not this one's
as() { env LD_LIBRARY_PATH="$here/tests/support/libopencl" "$@"; }

# rusticl 22.3 tells of every kernel that blocks have 32 work-items at most, and doctor's are no larger.
expect_output 0 "copy, kernel and copy back gave the right 1024 numbers" as WEIR_TEST_OPENCL_SMALL_TOLD=1 "$weir" doctor --config small.ini
expect_contains "$output" "all is well"
# It keeps no times.
expect_output 0 "the device keeps no times of events" as WEIR_TEST_OPENCL_NO_TIMES=1 "$weir" doctor --config small.ini
expect_contains "$output" "all is well"

# PoCL 6 calls its devices cpu and cpu-minimal, and each is measured as what it is.
export POCL_DEVICES="pthread basic"
expect_data 0 as WEIR_TEST_OPENCL_NEW_NAMES=1 WEIR_MODULE_PATH="$here/lib/weir" "$here/tests/bench/jobs/jobs" submit --turns 1 --operations 5 --json
report '
names = {key: [row["name"] for row in rows] for key, rows in tables.items()}
assert names["opencl_long"] == ["long"], (names, data["notes"])
assert names["opencl_empty"] == ["empty", "empty_set_once"], names
'
expect_data 0 as WEIR_TEST_OPENCL_NEW_NAMES=1 WEIR_MODULE_PATH="$here/lib/weir" "$here/tests/bench/jobs/jobs" submit --turns 1 --operations 5
expect_contains "$output" "beside plain OpenCL on cpu-minimal"
grep -q "beside plain OpenCL on cpu\(-[^m]\|$\|[^-]\)" <<<"$output" || fail "no threaded device: $output"
unset POCL_DEVICES

# Where no kernel builds, each test of the suite tells why, and none ends its program.
kernels="Arguments.Null:Closing.*:Cooperative.W*:DestroyInUse.K*:Graph.U*:Launch.G*:Launch.V*"
run_broken() {
    env WEIR_OPENCL_BUILD_OPTIONS=-D__kernel=nothing POCL_DEVICES=basic \
        "$weir" conform --backend opencl --filter "$kernels" --limit 60 --json
}
expect_data 1 run_broken
printf '%s' "$output" >conform.json
python3 - <<'PYTHON' || fail "the suite without kernels"
import json
tests = json.load(open("conform.json"))["tests"]
failed = [test for test in tests if test["outcome"] == "failed"]
assert len(failed) >= 6, len(failed)
assert any(test["outcome"] == "passed" for test in tests)
for test in failed:
    assert "ended the program" not in test["text"] and "not done within" not in test["text"], test
    assert "unknown type name 'nothing'" in test["text"], test
PYTHON

echo PASS
