#!/bin/bash
# weir bench images on null and on PoCL, with what it says of wrong command lines, damaged images and wrong
# results. No time is judged.
. tests/cli/cli.sh
. "$here/tests/cli/bench.sh"

modules="$(dirname "$program")/../lib/weir:$here/tests/plugins/lossy:$here/tests/plugins/shut"
export POCL_DEVICES=pthread
cat >small.ini <<'TEXT'
[arr_coc]
side = 64
grid = 4
budget = 256
TEXT

for backend in null opencl; do
    expect_data 0 env WEIR_BACKEND=$backend "$weir" bench images --config small.ini --size 50 --threads 1,3 \
        --frames 4 --turns 1 --json --plot images.svg
    report '
rows = tables["images"]
assert [row["threads"] for row in rows] == [1, 3], rows
for row in rows:
    assert row["slots"] == 6 + 2 * row["threads"]
    for figure in ("decoder", "pinned", "pipeline", "both", "of_slower", "of_slower_pinned", "decoder_busy",
                   "pinned_busy", "pipeline_busy", "both_busy"):
        assert median(row[figure]) > 0
costs = tables["processor_time"]
assert [cost["threads"] for cost in costs] == [1, 3], costs
for row, cost in zip(rows, costs):
    for way in ("decoder", "pinned", "pipeline", "both"):
        wanted = 1000 * median(row[way + "_busy"]) / median(row[way])
        assert abs(median(cost[way]) - wanted) < 1e-3 * wanted, (way, cost, row)
    for rest, decoder in (("rest", "decoder"), ("rest_pinned", "pinned")):
        wanted = median(cost["both"]) - median(cost[decoder]) - median(cost["pipeline"])
        assert abs(median(cost[rest]) - wanted) < 1e-6, (rest, cost)
assert data["results_checked"] > 4 and "50 x 50 pixels, jpeg ycc" in str(data["notes"])
assert ("runs no kernels" in str(data["notes"])) == ("'$backend'" == "null")
'
    expect_plot images.svg "JPEGs through ARR-COC" "decoder alone" "decoder alone, pinned" "pipeline alone" "both"
done

export WEIR_BACKEND=null
expect_data 0 "$weir" bench images --config small.ini --frames 4 --turns 1 --json "$images/coffee.png" \
    "$images/chelsea.png"
report 'assert "2 images, the first of 600 x 400 pixels, png rgb8" in data["notes"][-1]'

# More threads and slots than a pipeline has.
printf '[pipeline]\nslots = 200\n' | cat small.ini - >slots.ini
expect_data 0 "$weir" bench images --config slots.ini --size 50 --threads 100 --frames 4 --turns 1 --json
report 'assert [(row["threads"], row["slots"]) for row in tables["images"]] == [(100, 256)]'
expect_data 0 "$weir" bench images --config small.ini --size 50 --threads 2 --slots 3 --frames 4 --turns 1 --json
report 'assert [row["slots"] for row in tables["images"]] == [3]'
# More threads than slots: they wait for a buffer.
expect_data 0 "$weir" bench images --config small.ini --size 50 --threads 8 --slots 2 --frames 40 --turns 1 --json
report 'assert [row["slots"] for row in tables["images"]] == [2]'

head -c 20000 "$images/coffee.png" >cut.png
expect_data 1 "$weir" bench images --config small.ini --frames 4 --turns 1 cut.png
expect_contains "$messages" "cut.png: is a truncated PNG"
# An image that is damaged while it is measured.
cp "$images/coffee.png" going.png
(sleep 1; head -c 20000 "$images/coffee.png" >going.png) &
expect_data 1 "$weir" bench images --config small.ini --threads 3 --frames 20 --turns 101 going.png
wait
expect_contains "$messages" "going.png: is"
expect_data 1 "$weir" bench images no.jpg
expect_contains "$messages" "no.jpg"
expect_data 2 "$weir" bench images --threads 0
expect_contains "$messages" "--threads takes"
expect_data 2 "$weir" bench images --slots 257
expect_contains "$messages" "--slots"
expect_data 2 "$weir" bench images --quality 101
expect_contains "$messages" "--quality"

# The third pinned buffer finds no memory.
cat >full.ini <<'TEXT'
[weir]
plugins = fault

[fault]
fault = memory
kinds = new-buffer
label = images
at = 3

[arr_coc]
side = 64
grid = 4
budget = 256
TEXT
expect_data 3 "$weir" bench images --config full.ini --size 50 --frames 4 --turns 1
expect_contains "$messages" "a lack of memory (number 3, new-buffer)"

# The host may not use the fifth pinned buffer that is filled, nor any after it.
cat >shut.ini <<'TEXT'
[weir]
plugins = shut

[shut]
label = images
forwarded = 4

[arr_coc]
side = 64
grid = 4
budget = 256
TEXT
for threads in 1 3; do
    expect_data 3 env WEIR_MODULE_PATH="$modules" "$weir" bench images --config shut.ini --size 50 --frames 8 \
        --threads $threads --turns 1
    expect_contains "$messages" "buffer 'images' is shut"
    expect_contains "$messages" "leave out the plugin shut"
done

# Downloads that do not arrive.
cat >lossy.ini <<'TEXT'
[weir]
backend = opencl
plugins = lossy

[lossy]
kind = launch
forwarded = 30

[arr_coc]
side = 64
grid = 4
budget = 256
TEXT
unset WEIR_BACKEND
expect_data 1 env WEIR_MODULE_PATH="$modules" "$weir" bench images --config lossy.ini --size 50 --frames 4 --turns 1
expect_contains "$messages" "results"
