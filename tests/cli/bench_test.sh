#!/bin/bash
# weir bench submit runs on the device of the configuration, and says what it measured. No time is judged.
. tests/cli/cli.sh
. "$here/tests/cli/bench.sh"
export POCL_DEVICES="pthread basic"

for backend in null opencl; do
    expect_data 0 env WEIR_BACKEND=$backend "$weir" bench submit --turns 2 --operations 20 --json --plot submit.svg
    report '
assert data["turns"] == 2 and data["parameters"]["operations"] == 20 and data["backend"] == "'$backend'"
assert data["results_checked"] == 3
names = {key: [row["name"] for row in rows] for key, rows in tables.items()}
above = ["copy", "launch", "record", "wait", "host_begin_end"]
assert names == {"calls": above + ["sequence", "round_trip"], "null": above}, names
assert all(median(row["weir_ns"]) > 0 for rows in tables.values() for row in rows)
for row in tables["null"]:
    median(row["other_ns"]), median(row["added_ns"])
'
    expect_plot submit.svg launch Weir
done
expect_output 0 "above the null backend" "$weir" bench submit --turns 1 --operations 5

# The device that the configuration chooses.
printf '[weir]\nbackend = opencl\ndevice = 0\n' >first.ini
expect_data 0 "$weir" bench submit --config first.ini --turns 1 --operations 5
first="$(grep -o "weir bench submit on .* (opencl" <<<"$output")" || fail "no device: $output"
printf '[weir]\nbackend = opencl\ndevice = 1\n' >second.ini
expect_data 0 "$weir" bench submit --config second.ini --turns 1 --operations 5
second="$(grep -o "weir bench submit on .* (opencl" <<<"$output")" || fail "no device: $output"
[ "$second" != "$first" ] || fail "both on one device: $first"
printf '[weir]\ndevice = nothing\n' >none.ini
expect_message 3 "nothing" env WEIR_CONFIG=none.ini "$weir" bench submit --turns 1 --operations 5
expect_message 3 "weir_null.so" env WEIR_BACKEND=null WEIR_MODULE_PATH=/nonexistent "$weir" bench submit --turns 1 --operations 5

# A launch that is lost.
printf '[weir]\nbackend = opencl\nplugins = lossy\n[lossy]\nkind = launch\nforwarded = 2\n' >lossy.ini
expect_data 1 env WEIR_MODULE_PATH="$(dirname "$program")/../lib/weir:$here/tests/plugins/lossy" \
    "$weir" bench submit --config lossy.ini --turns 1
expect_contains "$messages" "number 0 must be 3 and is "
