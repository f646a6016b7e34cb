#!/bin/bash
# weir run arr-coc on PoCL: what it writes and prints.
. tests/cli/cli.sh

expect_data 0 "$weir" run arr-coc --config small.ini --output made/here "$images/coffee.png" \
    "$images/chelsea.png"
expect_files made/here coffee
expect_files made/here chelsea
[ "$(find made/here -type f | wc -l)" -eq 12 ] || fail "there is: $(ls -A made/here)"
expect_contains "$messages" "no --query: using 1536 normal numbers from seed 1"
expect_contains "$messages" "no --weights: using "
for part in "first    1 frame in " "the driver compiles kernels at their first launch" \
    "warm     1 frame in " "frames/s" "latency" "p50" "p99" "first frame" "warm frame" "texture" \
    "relevance" "allocation" "overlap" "2 of 2 written to made/here"; do
    expect_contains "$output" "$part"
done

python3 - made/here <<'PYTHON'
import json, struct, sys

def npy(path):
    data = open(path, "rb").read()
    assert data[:8] == b"\x93NUMPY\x01\x00", path
    size = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + size])
    assert not header["fortran_order"]
    count = 1
    for n in header["shape"]:
        count *= n
    kind = {"<f4": "f", "<i4": "i"}[header["descr"]]
    return header["shape"], struct.unpack("<%d%s" % (count, kind), data[10 + size:])

for name, width, height in (("coffee", 600, 400), ("chelsea", 451, 300)):
    base = sys.argv[1] + "/" + name
    about = json.load(open(base + ".json"))
    assert about["image"]["kind"] == "png rgb8", about["image"]
    assert (about["image"]["width"], about["image"]["height"]) == (width, height)
    assert (about["side"], about["grid"], about["budget"]) == (256, 16, 4096)
    assert about["device"]["module"] == "opencl"
    assert about["device"]["name"] and about["device"]["driver"]
    assert about["query_file"] is None and about["query_seed"] == 1
    assert abs(sum(about["weights"].values()) - 1) < 1e-5, about["weights"]
    assert about["times"]["runs"] == 1 and about["times"]["latency_min_ns"] > 0
    assert set(about["times"]["stage_mean_ns"]) == {"texture", "relevance", "allocation"}

    shape, tokens = npy(base + ".tokens.npy")
    assert shape == (about["tokens"], 13), shape
    shape, patches = npy(base + ".patches.npy")
    assert shape == (about["patches"], 3), shape
    assert list(patches[1::3]) == about["sides"]
    assert sum(s * s for s in about["sides"]) == about["tokens"] <= 4096
    shape, relevance = npy(base + ".relevance.npy")
    assert shape == (16, 16) and min(relevance) == 0 and 0.999 < max(relevance) <= 1
    shape, scores = npy(base + ".scores.npy")
    assert shape == (3, 16, 16)

    picture = open(base + ".overlay.png", "rb").read()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    wide, high = struct.unpack(">II", picture[16:24])
    assert wide >= 900 and abs(wide / high - width / height) < 0.01, (wide, high)
PYTHON

# The same bytes again, in another process, with another number of frames in flight; and
# one query in two shapes.
python3 - <<'PYTHON'
from files import npy
npy("ones.npy", (1536,), 1.0)
npy("row.npy", (1, 1536), 1.0)
PYTHON
{ cat small.ini && printf '\n[pipeline]\nslots = 1\n'; } >one.ini
expect_silence 0 "$weir" run arr-coc --config one.ini --output again --quiet "$images/coffee.png"
for suffix in tokens.npy patches.npy relevance.npy scores.npy overlay.png; do
    cmp "made/here/coffee.$suffix" "again/coffee.$suffix" || fail "two runs differ in $suffix"
done
"$weir" run arr-coc --config small.ini --output q1 --quiet --query ones.npy "$images/coffee.png"
"$weir" run arr-coc --config small.ini --output q2 --quiet --query row.npy --weights "$weights" \
    "$images/coffee.png"
cmp q1/coffee.scores.npy q2/coffee.scores.npy || fail "one query, two shapes, two results"
cmp -s q1/coffee.scores.npy again/coffee.scores.npy && fail "the query changes nothing"

# One frame is the first, and none is warm.
expect_output 0 "warm    no frame; --repeat N runs each image N times" "$weir" run arr-coc --config small.ini --output alone "$images/coffee.png"
expect_contains "$output" "first frame"
expect_not_contains "$output" "warm frame"

# A terminal tells what takes so long, while it does. $weir may write to files first.
shown="$(TERM=xterm python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' \
    "$program" run arr-coc --config small.ini --output terminal "$images/coffee.png" </dev/null)"
expect_contains "$shown" "0 of 1"
expect_contains "$shown" "first, the driver compiles kernels"

# Repeated: files once, times over all, and without the first; figures as JSON; out is the
# default.
expect_data 0 "$weir" run arr-coc --config small.ini --repeat 5 --json "$images/coffee.png"
printf '%s' "$output" | python3 -c '
import json, sys
figures = json.load(sys.stdin)
assert figures["frames"] == 5 and figures["frames_failed"] == 0, figures
assert figures["frames_per_second"] > 0 and figures["latency_ns"]["p99"] > 0
assert [s["name"] for s in figures["stages"]] == ["texture", "relevance", "allocation"]
first, warm = figures["first_frame_ns"], figures["warm"]
assert warm["frames"] == 4 and warm["frames_per_second"] > 0, warm
assert 0 < first and 0 < warm["wall_ns"] and first + warm["wall_ns"] <= figures["wall_ns"], figures
latency = warm["latency_ns"]
assert 0 < latency["min"] <= latency["p50"] <= latency["p99"] <= latency["max"], latency
assert latency["min"] <= latency["mean"] <= latency["max"] <= warm["wall_ns"], latency
for stage, total in zip(warm["stages"], figures["stages"]):
    assert stage["name"] == total["name"] and 0 < stage["busy_ns"] < total["busy_ns"], stage
    assert 0 <= stage["wait_ns"] <= min(total["wait_ns"], warm["wall_ns"]), stage
assert figures["images"][0]["runs"] == 5 and figures["images"][0]["runs_that_differ"] == 0
'
expect_files out coffee
[ "$(python3 -c 'import json; print(json.load(open("out/coffee.json"))["times"]["runs"])')" = 5 ] ||
    fail "the JSON does not count the runs"

# Existing files are replaced.
echo old >out/coffee.tokens.npy
"$weir" run arr-coc --config small.ini --quiet "$images/coffee.png"
cmp out/coffee.tokens.npy again/coffee.tokens.npy || fail "an old file was not replaced"

# A policy that drops frames is not for this command.
{ cat small.ini && printf '\n[pipeline]\nfull = drop-oldest\n'; } >drop.ini
expect_message 0 "drop.ini:9: full = drop-oldest is not for this command" "$weir" run arr-coc --config drop.ini --output drop "$images/coffee.png"
expect_files drop coffee

# A picture of one pixel, and one that is far from square, have an overlay too.
python3 -c 'from files import png
png("pixel.png", 1, 1, bytes(1))
png("line.png", 1, 5000, bytes(y % 256 for y in range(5000)))'
expect_data 0 "$weir" run arr-coc --config small.ini --output odd --quiet pixel.png line.png
expect_files odd pixel
expect_files odd line

# A trace that cannot be written is told, and is no success.
expect_data 1 env WEIR_PLUGINS=trace WEIR_TRACE_FILE=/dev/full "$weir" run arr-coc \
    --config small.ini --output traced "$images/coffee.png"
expect_contains "$messages" "/dev/full: the trace is incomplete"
expect_files traced coffee
