#!/bin/bash
# weir bench ddp: ranks of one process on null and PoCL, and of processes, with what it says of wrong command
# lines and wrong results. No time is judged.
. tests/cli/cli.sh
. "$here/tests/cli/bench.sh"

modules="$(dirname "$program")/../lib/weir:$here/tests/plugins/lossy"
export POCL_DEVICES=pthread
small=(--layers 5 --width 32 --batch 48,7 --buckets "auto,8K,1M" --turns 2)

for backend in null opencl; do
    expect_data 0 env WEIR_BACKEND=$backend "$weir" bench ddp --ranks 3 "${small[@]}" --json --plot ddp.svg
    report '
rows = tables["steps"]
ways = ["computation", "communication"] + ["serial", "overlapped"] * 3
assert [row["way"] for row in rows] == ways * 2, rows
assert [row["batch"] for row in rows] == [48] * 8 + [7] * 8
for row in rows:
    assert median(row["ms"]) > 0
    assert (row["of_longest"] is None) == (row["way"] in ways[:2])
assert [row["count"] for row in rows[4:8]] == [3, 3, 1, 1]  # two weights of 4 KiB fit into 8 KiB
gains = tables["gains"]
assert [row["batch"] for row in gains] == [48, 7]
for row in gains:
    assert median(row["serial_over_best"]) > 0 and median(row["auto_over_best"]) > 0
assert data["parameters"]["ranks"] == 3 and data["parameters"]["gradient_bytes"] == 5 * 4096
reduced = 2 * 3 * 3 * 3 * 2 * 1024  # batches, ranks, slices, buckets, ways, elements of a slice
products = 0 if "'$backend'" == "null" else 2 * 3 * 3 * 8
assert data["results_checked"] == reduced + products, data["results_checked"]
assert ("runs no kernels" in str(data["notes"])) == ("'$backend'" == "null")
'
    expect_plot ddp.svg "A step of 5 layers on 3 ranks" "overlapped, batch 48" "auto: "
done

# A single layer. Of several processes rank 0 alone reports.
export WEIR_BACKEND=null
expect_data 0 "$weir" launch -n 2 --no-prefix "$weir" bench ddp --turns 1 --layers 1 --width 16 --json
report '
assert data["parameters"]["ranks"] == 2 and "one a process" in str(data["notes"])
assert tables["gains"][0]["auto_over_best"] is not None
'
expect_data 0 "$weir" bench ddp --turns 1 --layers 2 --width 16 --buckets 1M --json
report 'assert tables["gains"][0]["auto_over_best"] is None'

expect_data 2 "$weir" bench ddp --buckets 1M,all
expect_contains "$messages" "--buckets takes whole numbers"
expect_data 2 "$weir" bench ddp --batch 0
expect_contains "$messages" "--batch takes whole numbers"
expect_data 2 "$weir" bench ddp --element f16
expect_contains "$messages" "--element takes some of f32, bf16"
expect_data 3 "$weir" bench ddp --element bf16
expect_contains "$messages" "--element bf16 needs cuBLAS"
expect_data 3 env WEIR_BACKEND=opencl "$weir" bench ddp --cublas /no/such/file
expect_contains "$messages" "the device is one of 'opencl', not of CUDA"
expect_data 3 env RANK=1 "$weir" bench ddp
expect_contains "$messages" "RANK is set, and WORLD_SIZE is not"

# lose KIND COUNT: all operations of the kind but the first ones are lost.
lose()
{
    cat >lossy.ini <<TEXT
[weir]
backend = opencl
plugins = lossy

[lossy]
kind = $1
forwarded = $2
TEXT
    expect_data 1 env -u WEIR_BACKEND WEIR_MODULE_PATH="$modules" "$weir" bench ddp --config lossy.ini "${small[@]}"
}
lose launch 20
expect_contains "$messages" " in place of "
lose launch 100
expect_contains "$messages" ", buckets "
expect_contains "$messages" " in place of "
