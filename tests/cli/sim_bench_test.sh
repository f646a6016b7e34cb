#!/bin/bash
# weir bench in virtual time: figures are those of the modelled GPU, the same in each run.
. tests/cli/cli.sh
unset WEIR_SIM_CHANGES WEIR_SIM_HOST COLUMNS
export LC_ALL=C WEIR_BACKEND=null WEIR_PLUGINS=sim WEIR_MODULE_PATH="$here/lib/weir"

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
