#!/bin/bash
# weir bench devices: on two null devices and on two modelled GPUs, with what it says of one device, of
# wrong command lines and of wrong results. No time is judged but those in virtual time.
. tests/cli/cli.sh
. "$here/tests/cli/bench.sh"

modules="$(dirname "$program")/../lib/weir:$here/tests/plugins/lossy"
export WEIR_BACKEND=null WEIR_NULL_DEVICES=2

expect_data 0 "$weir" bench devices --size 64K,4K --pieces 1,16 --turns 2 --json --plot devices.svg
report '
rows = tables["ways"]
assert [(row["bytes"], row["pieces"], row["way"]) for row in rows] == [
    (size, pieces, way) for size in (65536, 4096) for pieces in (1, 16)
    for way in ("across", "both", "beside", "apart", "job")], rows
assert data["results_checked"] == 2 * 2 * 6
assert all(median(row["ms"]) > 0 and median(row["gb_per_s"]) > 0 for row in rows)
'
expect_plot devices.svg across both beside job

# On a modelled GPU with an engine for peers copies go beside uploads, and without one beside nothing
# of the second device's own.
printf '[kernel %s]\nfixed_ns = 2000\n' advance increment >costs.ini
expect_data 0 env WEIR_PLUGINS=sim WEIR_SIM_GPU=h200 WEIR_SIM_COSTS=costs.ini "$weir" bench devices \
    --size 16M --pieces 1 --turns 1 --json
report '
across, both, beside, apart, job = (median(row["ms"]) for row in tables["ways"])
size = 16 << 20
assert 0 < across - size / 390.754e6 < 0.03, across
assert abs(both - across) < 0.2 * across, (across, both)
assert 0 < beside - size / 55.301e6 < 0.03, beside
assert abs(apart - beside) < 0.03, (apart, beside)
assert job > 2 * size / 55.3e6 + size / 390.8e6, job
'

# What cannot be measured.
expect_data 3 env WEIR_NULL_DEVICES=1 "$weir" bench devices
expect_contains "$messages" "there is one device, and this needs two"
expect_data 2 "$weir" bench devices --size 1000
expect_contains "$messages" "--size: 1000 bytes have no 1 equal pieces of whole multiples of 256 bytes"
expect_data 2 "$weir" bench devices --size 4K --pieces 3
expect_contains "$messages" "have no 3 equal pieces"
expect_data 2 "$weir" bench devices --pieces 0
expect_contains "$messages" "--pieces takes"

# A copy that is lost.
printf '[weir]\nplugins = lossy\n\n[lossy]\nkind = copy\nforwarded = 2\n' >lossy.ini
expect_data 1 env WEIR_MODULE_PATH="$modules" "$weir" bench devices --config lossy.ini --size 4K \
    --turns 1
expect_contains "$messages" "numbers are wrong"
