#!/bin/bash
# weir bench images on null and on PoCL, with what it says of wrong command lines, damaged images and wrong
# results. No time is judged.
. tests/cli/cli.sh
. "$here/tests/cli/bench.sh"

modules="$(dirname "$program")/../lib/weir:$here/tests/plugins/lossy"
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
    for figure in ("decoder", "pipeline", "both", "of_slower", "decoder_busy", "pipeline_busy", "both_busy"):
        assert median(row[figure]) > 0
assert data["results_checked"] > 4 and "50 x 50 pixels, jpeg ycc" in str(data["notes"])
assert ("runs no kernels" in str(data["notes"])) == ("'$backend'" == "null")
'
    expect_plot images.svg "JPEGs through ARR-COC" "decoder alone" "pipeline alone" "both"
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

head -c 20000 "$images/coffee.png" >cut.png
expect_data 1 "$weir" bench images --config small.ini --frames 4 --turns 1 cut.png
expect_contains "$messages" "cut.png: is a truncated PNG"
expect_data 1 "$weir" bench images no.jpg
expect_contains "$messages" "no.jpg"
expect_data 2 "$weir" bench images --threads 0
expect_contains "$messages" "--threads takes"
expect_data 2 "$weir" bench images --slots 257
expect_contains "$messages" "--slots"
expect_data 2 "$weir" bench images --quality 101
expect_contains "$messages" "--quality"

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
