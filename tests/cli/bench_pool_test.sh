#!/bin/bash
# weir bench pool: on null, on PoCL and on the fake libcuda, with what it says of wrong
# command lines and wrong results. No time is judged.
. tests/cli/cli.sh
. "$here/tests/cli/bench.sh"

modules="$(dirname "$program")/../lib/weir:$here/tests/plugins/lossy"
export POCL_DEVICES=pthread

for backend in null opencl; do
    expect_data 0 env WEIR_BACKEND=$backend "$weir" bench pool --size 100,64K --pairs 20 --turns 2 \
        --json --plot pool.svg
    report '
rows = tables["pairs"]
assert [(row["bytes"], row["way"]) for row in rows] == [
    (100, "pair"), (100, "set"), (65536, "pair"), (65536, "set")], rows
assert data["results_checked"] == 4 and data["parameters"]["pairs"] == 20
for row in rows:
    assert median(row["pool_ns"]) > 0 and median(row["buffers_ns"]) > 0
    assert "driver_ns" not in row
assert any("not CUDA" in note for note in data["notes"])
'
    expect_plot pool.svg "pool" "create, destroy" "8 at a time"
done

# The peer needs the driver and no kernel, so it runs without a CUDA toolkit too.
expect_data 0 env WEIR_BACKEND=cuda "LD_LIBRARY_PATH=$here/tests/support/libcuda" "$weir" \
    bench pool --size 4K --pairs 20 --turns 2 --json
report '
rows = tables["pairs"]
assert len(rows) == 2
assert all(median(row["driver_ns"]) > 0 and median(row["to_driver"]) > 0 for row in rows)
'

expect_data 2 "$weir" bench pool --size 4K,x
expect_contains "$messages" "--size takes whole numbers"
expect_data 2 "$weir" bench pool --pairs 0
expect_contains "$messages" "--pairs takes a whole number"

cat >lossy.ini <<'TEXT'
[weir]
backend = null
plugins = lossy

[lossy]
kind = copy
forwarded = 1
TEXT
expect_data 1 env WEIR_MODULE_PATH="$modules" "$weir" bench pool --config lossy.ini --turns 1
expect_contains "$messages" "hold wrong bytes; nothing was timed"
