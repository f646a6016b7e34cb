#!/bin/bash
# weir bench submit runs, and says what it measured. No time is judged.
. tests/cli/cli.sh
. "$here/tests/cli/bench.sh"
export POCL_DEVICES="pthread basic"

expect_data 0 "$weir" bench submit --turns 2 --operations 20 --json --plot submit.svg
report '
assert data["turns"] == 2 and data["parameters"]["operations"] == 20
assert data["results_checked"] >= 4
names = {key: [row["name"] for row in rows] for key, rows in tables.items()}
assert names["null"] == ["copy", "launch", "record", "wait", "host_begin_end"], names
assert names["opencl_long"] == ["long"], (names, data["notes"])
assert names["opencl_empty"] == ["empty", "empty_set_once"], names
for rows in tables.values():
    for row in rows:
        assert median(row["weir_ns"]) > 0
        median(row["other_ns"]), median(row["added_ns"])
assert median(tables["opencl_long"][0]["ratio"]) > 0
'
expect_plot submit.svg launch Weir
expect_data 0 "$weir" bench submit --turns 1 --operations 5
expect_contains "$output" "above the null backend"
expect_contains "$output" "beside plain OpenCL on pthread"
expect_contains "$output" "beside plain OpenCL on basic"

# The device that the configuration chooses, which is PoCL's threaded one.
printf '[weir]\ndevice = 1\n' >second.ini
expect_data 0 env WEIR_CONFIG=second.ini "$weir" bench submit --turns 1 --operations 5
expect_contains "$output" "beside plain OpenCL on pthread"
expect_not_contains "$output" "beside plain OpenCL on basic"
printf '[weir]\ndevice = nothing\n' >none.ini
expect_data 3 env WEIR_CONFIG=none.ini "$weir" bench submit --turns 1 --operations 5
expect_contains "$messages" "nothing"

# Without OpenCL the first part is measured, and the second has a reason.
mkdir vendors
expect_data 0 env OCL_ICD_VENDORS="$PWD/vendors/" "$weir" bench submit --turns 1 --operations 5
expect_contains "$output" "not measured: OpenCL: "
expect_data 3 env WEIR_MODULE_PATH=/nonexistent "$weir" bench submit --turns 1 --operations 5
expect_contains "$messages" "weir_null.so"
