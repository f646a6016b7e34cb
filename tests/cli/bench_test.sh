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
lossy opencl launch 2
expect_wrong "number 0 must be 3 and is " submit

# weir bench in virtual time: figures are those of the modelled GPU, the same in each run.
export WEIR_BACKEND=null WEIR_PLUGINS=sim WEIR_MODULE_PATH="$here/lib/weir"

# Copies take 4 us and a byte a nanosecond; the host takes no time.
cat >card.ini <<'TEXT'
[gpu]
name = a card
queues = stream
copy_engines = 2
kernels = 1
h2d_gb_per_s = 1
d2h_gb_per_s = 1
copy_latency_ns = 4000

[kernel increment]
fixed_ns = 1000

[kernel advance]
per_item_argument_1_ns = 0.5
TEXT
export WEIR_SIM_GPU=card.ini

bench=("$weir" bench overlap --size 1M --kernel light,heavy --orders depth --chunks 4 --queues 4 --turns 2)
expect_output 0 "note: times are those of the modelled GPU, in virtual time" "${bench[@]}"
[[ "$output" != *"times are those of calls"* ]] || fail "it also says: $output"
expect_data 0 "${bench[@]}" --json
first="$output"
# One way, both ways, a kernel that runs a round on each number, and one that takes as long as the copies.
as_json '([round(row["ms"]["median"] * 1e6) for row in data["tables"]["alone"][:4]] ==
    [1052576, 1052576, 1052576, 131072])'
as_json '0.9 < [row["ms"]["median"] for row in data["tables"]["alone"]][5] / 1.052576 < 1.1'
# Four chunks: the uploads and the last download; a kernel, which is half as long as a copy, is hidden but
# for the last one's.
as_json 'round(data["tables"]["ways"][0]["ms"]["median"] * 1e6) == 5 * (262144 + 4000) + 32768'
expect_data 0 "${bench[@]}" --json
[ "$output" = "$first" ] || fail "two runs differ: $first and $output"
