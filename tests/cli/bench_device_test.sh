#!/bin/bash
# The benchmarks that run on one device: each on null and on PoCL, with what it says of
# wrong command lines, of wrong results and of an interrupt. No time is judged.
. tests/cli/cli.sh
. "$here/tests/cli/bench.sh"

{ sizes null 64 4 && echo "budget = 256"; } >null.ini
{ cat null.ini && printf '\n[null]\ndevices = 2\n'; } >two-null.ini
cp small.ini two-small.ini

for config in null.ini small.ini; do
    # Overlap: `auto` is one way, the other orders are combined with the lists.
    expect_data 0 "$weir" bench overlap --config "$config" --size 64K,20000 --kernel light,3 \
        --orders auto,depth,breadth,interleaved --chunks 1,3 --queues 1,engine --turns 2 --json \
        --plot overlap.svg
    report '
assert data["turns"] == 2
ways = tables["ways"]
assert len(ways) == 2 * 2 * (1 + 3 * 2 * 2), len(ways)
assert data["results_checked"] == len(ways) + 4
assert {way["asked"] for way in ways} == {"auto", "depth", "breadth", "interleaved"}
assert {way["kernel"] for way in ways} == {"light", "3 rounds"}
assert {way["size"] for way in ways} == {"64.0 KiB", "19.5 KiB"}
for way in ways:
    assert way["order"] in (way["asked"], "depth") or way["asked"] == "auto"
    if way["asked"] != "auto":
        assert way["chunks"] in (1, 3)
        assert way["queues"] == (3 if way["layout"] == "engine" else 1), way
    for key in ("ms", "to_limit", "speed_up"):
        assert median(way[key]) > 0
alone = [row["what"] for row in tables["alone"]]
assert alone.count("both at once (the limit)") == 2, alone
assert all(median(row["ms"]) > 0 for row in tables["alone"])
'
    expect_plot overlap.svg "auto" "interleaved" "chunks" "bare copies, both ways"

    # Pipeline.
    expect_data 0 "$weir" bench pipeline --config "$config" --size 4K --frames 5 --slots 1,3 \
        --graphs off,on --turns 2 --json --plot pipeline.svg
    report '
rows = tables["pipeline"]
assert [row["setting"] for row in rows] == [
    name for name in ("compute-heavy", "balanced", "copy-heavy") for _ in range(4)]
assert [row["slots"] for row in rows] == [1, 3] * 6
assert [row["graphs"] for row in rows] == ["off", "off", "on", "on"] * 3
assert data["results_checked"] == 3 * 2 * (2 * 1 + 7 + 2 * 3 + 7), data["results_checked"]
assert data["parameters"]["frames"] == 5 and data["parameters"]["frame bytes"] == 4096
for row in rows:
    assert median(row["frames_per_second"]) > 0
assert all(median(row["speed_up"]) == 1 for row in rows[::4])
'
    expect_plot pipeline.svg "1 slot" "3 slots, graphs" "balanced"

    expect_data 1 env WEIR_PLUGINS=trace WEIR_TRACE_FILE=/dev/full "$weir" bench pipeline \
        --config "$config" --size 4K --frames 2 --slots 1 --turns 1 --quiet
    expect_contains "$messages" "/dev/full: the trace is incomplete"

    # ARR-COC, on noise and on photographs.
    expect_data 0 "$weir" bench arr-coc --config "$config" --size 48 --frames 2 --turns 2 \
        --slots 1,2 --graphs off,on --json --plot arr-coc.svg
    report '
rows = tables["frames"]
assert [(row["image"], row["slots"], row["graphs"]) for row in rows] == [
    ("noise 48x48", slots, graphs) for graphs in ("off", "on") for slots in (1, 2)]
assert tables["copies"][0]["bytes_in"] == 3 * 48 * 48
assert data["results_checked"] == 2 * (3 + 5)
assert all(median(row["frames_per_second"]) > 0 and median(row["of_copies"]) > 0 for row in rows)
stages = [row["stage"] for row in tables["stages"]]
assert stages in (["texture", "relevance", "allocation"],
                  ["upload", "texture", "relevance", "allocation", "download"]), stages
assert all(median(row["busy_us"]) >= 0 for row in tables["stages"])
'
    expect_plot arr-coc.svg "noise 48x48" "2 slots"

    # ARR-COC on the first of two devices and on both.
    expect_data 0 env POCL_DEVICES="pthread basic" "$weir" bench arr-coc --config "two-$config" \
        --size 48 --frames 3 --turns 2 --slots 2 --devices 1,0 --json --plot devices.svg
    report '
rows = tables["frames"]
assert [row["devices"] for row in rows] == [1, 2] == [row["devices"] for row in tables["copies"]]
assert median(rows[0]["of_one_device"]) == 1 and median(rows[1]["of_one_device"]) > 0
assert median(rows[1]["of_copies"]) > 0
assert data["results_checked"] == 5 + 9
'
    expect_plot devices.svg "2 slots, 2 devices"
done
report 'assert data["backend"] == "opencl" and data["notes"] == []'

# Text, and the same figures in a file.
expect_data 0 "$weir" bench overlap --config null.ini --size 8K --orders auto --turns 1 --output o.json
expect_contains "$output" "weir bench overlap on null device 0 (null, "
expect_contains "$output" "median of 1 turn, smallest .. largest; 4 results checked"
expect_contains "$output" "each part alone"
expect_contains "$output" "both at once (the limit)"
output="$(cat o.json)"
report 'assert data["benchmark"] == "overlap" and len(tables["ways"]) == 2'
expect_output 0 "coffee.png" "$weir" bench arr-coc --config null.ini --turns 1 --frames 1 --slots 1 "$images/coffee.png" "$images/chelsea.png"
expect_contains "$output" "chelsea.png"
expect_contains "$output" "this device runs no kernels"

# A wrong result is an error, and nothing is timed.
for lost in "opencl launch 1" "null copy 2"; do
    # shellcheck disable=SC2086
    lossy $lost
    expect_wrong "order depth, 1 chunks: " overlap --size 8K --kernel light
    expect_contains "$messages" " numbers are wrong; number 0 is "
    expect_wrong "numbers are wrong" pipeline --size 4K --frames 1
done
lossy opencl launch 27
expect_wrong "noise 48x48: " arr-coc --size 48 --frames 1
expect_contains "$messages" "nothing was timed"

# Command lines.
expect_usage "--size takes whole numbers from 4096 to 8589934592, such as 64K or 16M, with commas" overlap --size 4000
expect_usage "not '1X'" overlap --size 1X
expect_usage "not ''" overlap --size 16M,
expect_usage "--chunks takes whole numbers from 1 to 4096, and auto" overlap --chunks 0
expect_usage "--orders takes some of auto, depth, breadth, interleaved" overlap --orders deep
expect_usage "not 'depth first'" overlap --orders "depth first"
expect_usage "and auto, engine" overlap --queues engines
expect_usage "and light, heavy" overlap --kernel 0
expect_usage "--chunks takes at most 16 values" overlap --chunks 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17
expect_message 2 "more than 512 queues together" "$weir" bench overlap --config null.ini --size 1M --queues 64 --chunks 64,65,66,67,68 --turns 1
expect_usage "--size takes at most 1 value" pipeline --size 1M,2M
expect_usage "--slots takes whole numbers from 1 to 64" pipeline --slots 65
expect_usage "more than 16 pipelines" arr-coc --slots 1,2,3,4,5,6,7,8,9 --graphs off,on
expect_usage "more than 16 pipelines" arr-coc --slots 1,2,3,4,5,6,7,8,9 --devices 0,1
expect_usage "--devices names device 0 twice" arr-coc --devices 0,0
expect_message 3 "1" "$weir" bench arr-coc --config null.ini --devices 0,1 --turns 1
expect_usage "--graphs takes some of off, on" pipeline --graphs yes
expect_usage "--graphs takes at most 2 values" arr-coc --graphs on,off,on
expect_usage "does not know what to do with 'x'" submit x
expect_message 1 "missing.png" "$weir" bench arr-coc --config null.ini missing.png
expect_message 1 "missing/plot.svg" "$weir" bench overlap --config null.ini --size 8K --turns 1 --plot missing/plot.svg
[ -z "$output" ] || fail "it measured before it looked at the plot's name: $output"

# An interrupt ends it after the turn in progress, which is reported unless it is the one
# that warms up.
set -m # or children would ignore SIGINT
WEIR_PLUGINS=trace WEIR_TRACE_FILE=overlap.trace "$program" bench overlap --config small.ini \
    --turns 101 --size 16M >table 2>messages &
pid=$!
expect_work overlap.trace 9000 # a turn is 2,700, and there are 5,400 in front
kill -s INT "$pid"
expect_end 130 messages
grep -q "^median of [1-9][0-9]* turn" table || grep -q "there are no figures" messages ||
    grep -q "interrupted" messages || fail "neither figures nor a reason: $(cat table messages)"
