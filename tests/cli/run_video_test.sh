#!/bin/bash
# weir run arr-coc on Y4M streams: the results are those of the frames as images; live streams, overlays,
# and streams that end in a frame, change, stall or never end.
. tests/cli/cli.sh
set -m # or children would ignore SIGINT

cat >make.py <<'TEXT'
import sys
from files import png

# Frame k of a gray film, whose bytes are also those of its RGB.
def frame(k, width=48, height=40):
    return bytes((x * 3 + y * 5 + k * 31) % 256 for y in range(height) for x in range(width))

def head(width=48, height=40):
    return b"YUV4MPEG2 W%d H%d F10:1 Ip A1:1 Cmono XCOLORRANGE=FULL\n" % (width, height)

def film(path, count):
    with open(path, "wb") as f:
        f.write(head())
        for k in range(count):
            f.write(b"FRAME\n" + frame(k))
TEXT
python3 -c 'from make import *
film("film.y4m", 6)
film("long.y4m", 400)
for k in range(6):
    png("frame%d.png" % k, 48, 40, frame(k))'

# The frames' lines are what the same pictures give as images.
expect_data 0 "$weir" run arr-coc --config small.ini --output images --quiet frame?.png
expect_data 0 "$weir" run arr-coc --config small.ini --output films film.y4m
expect_contains "$output" "48x40, 10 frames/s: 6 frames run, 0 dropped, 0 failed; films/film.jsonl has a line for each"
grep -q '^first  *1 frame in ' <<<"$output" || fail "it does not tell the first frame: $output"
grep -q '^warm  *5 frames in ' <<<"$output" || fail "it does not tell the warm frames: $output"

# A first frame that takes long, as where the driver has no kernels yet.
slow=(env WEIR_PLUGINS=fault WEIR_FAULT_FAULT=slow WEIR_FAULT_QUEUE=arr-coc/texture
    WEIR_FAULT_AT=1 WEIR_FAULT_DELAY_MS=1500)
expect_message 0 "weir: the first frame takes long: many drivers compile" "${slow[@]}" "$weir" run arr-coc --config small.ini --output slow film.y4m
expect_data 0 "${slow[@]}" "$weir" run arr-coc --config small.ini --output slow --quiet film.y4m
expect_not_contains "$messages" "takes long"
expect_data 0 "${slow[@]}" "$weir" run arr-coc --config small.ini --output slow_images frame0.png
expect_contains "$messages" "weir: the first frame takes long: many drivers compile"

# same_lines FILE COUNT [FOLDER]: they are those of the images in the folder.
same_lines()
{
    python3 - "$1" "$2" "${3-images}" <<'TEXT' || fail "the lines of $1 are not those of the images"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert len(lines) == int(sys.argv[2]), len(lines)
for k, line in enumerate(lines):
    image = json.load(open("%s/frame%d.json" % (sys.argv[3], k)))
    assert line["frame"] == k and line["status"] == "ok" and line["latency_ns"] > 0, line
    assert (line["tokens"], line["patches"]) == (image["tokens"], image["patches"]), k
    assert line["sides"] == image["sides"], k
    assert line["weights"] == image["weights"], k
TEXT
}
same_lines films/film.jsonl 6

# From a pipe, with the lines on standard output as they come, and on two devices; a name without .y4m.
cp film.y4m film
expect_data 0 env POCL_DEVICES="pthread basic" "$weir" run arr-coc --config small.ini --devices 0,1 --output piped \
    --json - < <(cat film)
same_lines piped/stdin.jsonl 6
head -6 <<<"$output" | cmp - piped/stdin.jsonl || fail "standard output has: $output"
output="$(tail -1 <<<"$output")"
as_json 'data["frames"] == 6 and data["video"]["frames"] == 6 and data["video"]["dropped"] == 0'
as_json 'data["video"]["width"] == 48 and data["video"]["frames_per_second"] == 10 and "images" not in data'
as_json 'len(data["devices"]) == 2 and sum(d["frames"] for d in data["devices"]) == 6'
expect_data 0 "$weir" run arr-coc --config small.ini --output named --quiet --frames 2 film
same_lines named/film.jsonl 2
[ -z "$output$messages" ] || fail "--quiet printed: $output$messages"

# Overlays: numbered pictures, equal to those of the images, and a film.
expect_data 0 "$weir" run arr-coc --config small.ini --output films --quiet --frames 2 --overlay png film.y4m
[ "$(ls films)" = $'film.000000.overlay.png\nfilm.000001.overlay.png\nfilm.jsonl' ] || fail "there is: $(ls films)"
cmp films/film.000001.overlay.png images/frame1.overlay.png || fail "the overlays differ"
expect_data 0 "$weir" run arr-coc --config small.ini --output films --quiet --frames 2 --overlay y4m film.y4m
[ "$(head -1 films/film.overlay.y4m)" = "YUV4MPEG2 W1200 H1000 F10:1 Ip A1:1 C444 XCOLORRANGE=LIMITED" ] ||
    fail "the film begins with: $(head -c 100 films/film.overlay.y4m)"
[ "$(stat -c %s films/film.overlay.y4m)" -eq $(($(head -1 films/film.overlay.y4m | wc -c) + 2 * (6 + 3 * 1200 * 1000))) ] || fail "the film is cut off"

# Live: faster than it is run, the oldest that wait are dropped, all have a line, the last one is run.
expect_data 0 "$weir" run arr-coc --config small.ini --output live --live --json - < <(cat long.y4m)
python3 - <<'TEXT' || fail "the lines of a live stream are wrong"
import json
lines = [json.loads(line) for line in open("live/stdin.jsonl")]
assert [line["frame"] for line in lines] == list(range(400))
assert {line["status"] for line in lines} == {"ok", "dropped"}
assert lines[-1]["status"] == "ok" and lines[0]["status"] == "ok"
assert all(("tokens" in line) == (line["status"] == "ok") for line in lines)
TEXT
output="$(tail -1 <<<"$output")"
as_json 'data["video"]["dropped"] > 0 and data["frames"] + data["video"]["dropped"] == 400'

# A query: the results are those of the images with it, and others than without.
python3 -c 'from files import npy; npy("ones.npy", (1536,), 1.0)'
expect_data 0 "$weir" run arr-coc --config small.ini --output asked_images --quiet --query ones.npy frame?.png
expect_data 0 "$weir" run arr-coc --config small.ini --output asked --quiet --query ones.npy film.y4m
same_lines asked/film.jsonl 6 asked_images
! cmp -s asked_images/frame0.scores.npy images/frame0.scores.npy || fail "the query changes nothing"

# Slower: frames are run when they come, also where one comes in two parts.
cat >slow.py <<'TEXT'
import os, sys, time
from make import *
out = sys.stdout.buffer
out.write(head() + b"FRAME\n" + frame(0) + b"FRAME\n" + frame(1)[:100])
out.flush()
while not os.path.exists("slow/stdin.jsonl") or open("slow/stdin.jsonl").read().count("\n") < 1:
    time.sleep(0.01)
out.write(frame(1)[100:])
TEXT
expect_data 0 "$weir" run arr-coc --config small.ini --output slow --quiet - < <(python3 slow.py)
same_lines slow/stdin.jsonl 2

# Endless: as many as wanted; and until an interrupt, which also ends the wait for a stream that stalls.
cat >endless.py <<'TEXT'
import os, sys
from make import *
try:
    sys.stdout.buffer.write(head())
    while True:
        sys.stdout.buffer.write(b"FRAME\n" + frame(0))
except BrokenPipeError:
    os._exit(0)
TEXT
expect_data 0 "$weir" run arr-coc --config small.ini --output endless --quiet --frames 3 - < <(python3 endless.py)
[ "$(wc -l <endless/stdin.jsonl)" = 3 ] || fail "--frames 3 ran: $(cat endless/stdin.jsonl)"
mkfifo stalled
# interrupted FOLDER WRITER...: the stream comes from a program.
interrupted()
{
    local folder="$1"
    shift
    "$@" >stalled 2>/dev/null &
    local writer=$!
    "$program" run arr-coc --config small.ini --output "$folder" - <stalled >table 2>messages &
    local pid=$!
    expect_soon has "$folder/stdin.jsonl" 2 ""
    kill -s INT "$pid"
    expect_end 130 messages
    kill "$writer" 2>/dev/null || true
    wait "$writer" 2>/dev/null || true
    expect_contains "$(cat messages)" " frames are finished and kept"
    [ "$(grep -c '"ok"' "$folder/stdin.jsonl")" -ge 2 ] || fail "the lines are gone"
}
interrupted without_end python3 endless.py
interrupted no_more sh -c 'cat film.y4m; exec sleep 1000'

# Streams that are damaged: the frames before are kept.
# damaged WORDS LINES FILE
damaged()
{
    expect_message 1 "$1" "$weir" run arr-coc --config small.ini --output damaged "$3"
    [ "$(cat "damaged/$(basename "$3" .y4m).jsonl" 2>/dev/null | grep -c '"ok"')" = "$2" ] || fail "$3 left other lines"
}
head -c 6000 film.y4m >cut.y4m
damaged "cut.y4m: the stream ends in frame 4, after" 3 cut.y4m
python3 -c 'from make import *
with open("bare.y4m", "wb") as f:
    f.write(head())'
damaged "bare.y4m: the stream has no frame" 0 bare.y4m

# What is refused before any work.
video=("$weir" run arr-coc --config small.ini)
echo text >text.y4m
{ cat small.ini && echo 'max_pixels = 1000'; } >cap.ini
refused 1 "text.y4m: this is no Y4M stream, which begins with YUV4MPEG2; make one with ffmpeg" "${video[@]}" text.y4m </dev/null
refused 1 "missing.y4m: the stream cannot be opened: No such file or directory" "${video[@]}" missing.y4m </dev/null
expect_message 1 "48x40 = 1920 pixels, and the cap is 1000; raise max_pixels" "$weir" run arr-coc --config cap.ini --output bad film.y4m
refused 2 "'film.y4m' is a stream, which is run by itself" "${video[@]}" frame0.png film.y4m </dev/null
refused 2 "--repeat is for images; 'film.y4m' is a stream" "${video[@]}" --repeat 2 film.y4m </dev/null
refused 2 "--ranks is for images; 'film.y4m' is a stream" "${video[@]}" --ranks film.y4m </dev/null
refused 2 "--live is for a Y4M stream" "${video[@]}" --live frame0.png </dev/null
refused 2 "--overlay is for a Y4M stream" "${video[@]}" --overlay png frame0.png </dev/null
refused 2 "--frames is for a Y4M stream" "${video[@]}" --frames 2 frame0.png </dev/null
refused 2 "--overlay takes png or y4m, not 'gif'" "${video[@]}" --overlay gif film.y4m </dev/null

# Outputs that cannot be written.
expect_full "$program" run arr-coc --config small.ini --output full --json film.y4m
expect_contains "$(cat messages)" "standard output cannot be written: No space left on device"
mkdir -p taken/film.jsonl taken2/film.overlay.y4m
expect_message 1 "taken/film.jsonl cannot be written: Is a directory" "$weir" run arr-coc --config small.ini --output taken film.y4m
expect_data 1 "$weir" run arr-coc --config small.ini --output taken2 --overlay y4m film.y4m
expect_contains "$messages" "taken2/film.overlay.y4m cannot be written: Is a directory"

# With ffmpeg: 4:2:0 from it, as in the manual page, and the overlays by it.
if command -v ffmpeg >/dev/null; then
    expect_data 0 "$weir" run arr-coc --config small.ini --output ffmpeg --json --overlay y4m - < <(ffmpeg -v error \
        -f lavfi -i testsrc=size=98x66:rate=5:duration=1 -pix_fmt yuv420p -f yuv4mpegpipe -)
    output="$(tail -1 <<<"$output")"
    as_json 'data["frames"] == 5 and data["video"]["width"] == 98 and data["video"]["frames_per_second"] == 5'
    [ "$(ffmpeg -v error -i ffmpeg/stdin.overlay.y4m -f framemd5 - | grep -vc '^#')" -eq 5 ] ||
        fail "ffmpeg does not read the overlays"
else
    echo "not tested: streams of ffmpeg, which is not installed"
fi
