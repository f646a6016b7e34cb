#!/bin/bash
# weir bench submit runs, and says what it measured. No time is judged.
. tests/cli/cli.sh

expect_data 0 "$weir" bench submit --turns 2 --operations 20 --json
printf '%s' "$output" | python3 -c '
import json, sys
data = json.load(sys.stdin)
assert data["turns"] == 2 and data["operations"] == 20
rows = {row["name"]: row for row in data["rows"]}
wanted = {"copy", "launch", "record", "wait", "host_begin_end",
          "opencl_long", "opencl_empty", "opencl_empty_set_once"}
assert set(rows) == wanted, (set(rows), data["not_measured"])
for name, row in rows.items():
    for what in ("weir_ns", "other_ns", "added_ns"):
        assert row[what]["min"] <= row[what]["median"] <= row[what]["max"], (name, row)
    assert row["weir_ns"]["min"] > 0, (name, row)
assert rows["opencl_long"]["other_ns"]["min"] > 10000
assert "pthread" in data["long_device"] and "basic" in data["empty_device"]
'
expect_data 0 "$weir" bench submit --turns 1 --operations 5
expect_contains "$output" "above the null backend"
expect_contains "$output" "beside plain OpenCL"

# Without OpenCL the first part is measured, and the second has a reason.
mkdir vendors
expect_data 0 env OCL_ICD_VENDORS="$PWD/vendors/" "$weir" bench submit --turns 1 --operations 5
expect_contains "$output" "not measured: nothing on OpenCL: "
expect_data 3 env WEIR_MODULE_PATH=/nonexistent "$weir" bench submit --turns 1 --operations 5
expect_contains "$messages" "weir_null.so"
