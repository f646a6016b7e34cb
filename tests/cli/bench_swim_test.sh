#!/bin/bash
# weir bench swim: on null and on PoCL, with what it says of wrong results and wrong
# command lines. No time is judged.
. tests/cli/cli.sh
. "$here/tests/cli/bench.sh"

printf '[weir]\nbackend = null\n' >null.ini

for config in null.ini small.ini; do
    expect_data 0 "$weir" bench swim --config "$config" --side 72 --copies 3 --products 10 \
        --turns 2 --json --plot swim.svg
    report '
assert data["turns"] == 2
assert data["parameters"] == {"side": 72, "copies": 3, "products": 10}, data["parameters"]
parts = {row["part"]: row for row in tables["parts"]}
assert set(parts) == {"products", "down, pinned", "down, pageable", "up, pinned", "up, pageable"}
ways = {row["way"]: row for row in tables["ways"]}
assert set(ways) == {"pinned, one queue", "pinned, three queues", "pageable, one queue",
                     "pageable, three queues"}
for way in ways.values():
    assert 0 < median(way["host_ms"]) <= median(way["ms"]), way
    assert median(way["of_sum"]) > 0 and median(way["of_longest"]) > 0
assert [row["light_kernels"] for row in tables["kernels"]][:2] == [
    "after them, same queue", "beside them, own queue"]
# What each way copied in each direction, and on a device with kernels samples of the products.
copies = 2 + 2 + 4 * 2
samples = 256 * 8 * (1 + 4 + 2 * len(tables["kernels"]))
assert data["results_checked"] == copies + (samples if data["backend"] != "null" else 0)
'
    expect_plot swim.svg "pinned, three queues" "host busy" milliseconds
done

# Without --products there are as many as take as long as the copies one way.
expect_data 0 "$weir" bench swim --config small.ini --side 64 --copies 400 --turns 1 --json
report 'assert 1 <= data["parameters"]["products"] <= 1000'
expect_output 0 "each part alone" "$weir" bench swim --config small.ini --side 256 --copies 200 --turns 1

# A wrong result is an error, and nothing is timed.
few=(swim --side 64 --copies 3 --products 2)
# The probe of the device launches once; 8 uploads fill the factors, one the copies.
lossy opencl launch 1
expect_wrong "512 of 512 samples of the products are wrong" "${few[@]}"
lossy opencl launch 2
expect_wrong "256 of 512 samples of the products are wrong" "${few[@]}"
lossy opencl copy 20
expect_wrong " of 12288 numbers are wrong; number " "${few[@]}"

expect_usage "--side is a multiple of 8, not 100" swim --config null.ini --side 100
