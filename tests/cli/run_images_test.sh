#!/bin/bash
# weir run arr-coc over folders, with threads that decode: all images, those that are damaged, and none after
# the first of these with --stop.
. tests/cli/cli.sh

{ sizes opencl 64 4 && echo "budget = 256"; } >small.ini
sed 's/opencl/null/' small.ini >null.ini

mkdir -p album/deeper none
base64 -d >album/b.jpg <<'TEXT'
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6j
q62rZ4C8ybqmx5moq6T/2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSk
pKSkpKSkpKT/wAARCAAgACADASIAAhEBAxEB/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUF
BAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVW
V1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi
4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAAAAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAEC
AxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVm
Z2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq
8vP09fb3+Pn6/9oADAMBAAIRAxEAPwDE70UuPejqeKkyEFKOtKBSjrTAQCjtS0YpAGKB160tFMD/2Q==
TEXT
for name in a.JPEG c.jpg d.jpeg e.jpg f.JPG; do cp album/b.jpg "album/$name"; done
cp album/b.jpg album/deeper/g.jpg
echo words >album/read.me

# A folder stands for the images in it, but not for those of its folders.
expect_data 0 "$weir" run arr-coc --config small.ini --decoders 3 --output all album/
[ "$(cd all && echo *.json)" = "a.json b.json c.json d.json e.json f.json" ] || fail "there is: $(ls all)"
expect_data 0 "$weir" run arr-coc --config small.ini --decoders 1 --output one album/b.jpg album/deeper
[ "$(cd one && echo *.json)" = "b.json g.json" ] || fail "there is: $(ls one)"
for name in a b c d e f; do
    cmp "all/$name.tokens.npy" one/b.tokens.npy || fail "$name differs from b"
done

expect_message 2 "the folder 'none' has no image: no name in it ends in .jpg, .jpeg or .png" "$weir" run arr-coc none

# A JPEG that ends early: its header is fine, so it is found when it is decoded.
head -c 640 album/b.jpg >album/c.jpg
expect_message 1 "album/c.jpg: is a truncated JPEG" "$weir" run arr-coc --config null.ini --decoders 3 --output others album
expect_contains "$messages" "1 of 6 images failed"
[ "$(cd others && echo *.json)" = "a.json b.json d.json e.json f.json" ] || fail "there is: $(ls others)"
expect_message 1 "album/c.jpg: is a truncated JPEG" "$weir" run arr-coc --config null.ini --decoders 3 --output stopped --repeat 3 --stop album
expect_contains "$messages" "stopped at the first image that failed: "
expect_contains "$messages" " of 6 images are finished and kept"
cmp stopped/a.tokens.npy others/a.tokens.npy || fail "what was finished differs"
[ ! -e stopped/c.json ] || fail "an image that failed was written"
echo nothing >album/a.JPEG
echo nothing >album/e.jpg
expect_message 1 "is neither a PNG nor a JPEG image" "$weir" run arr-coc --config null.ini --output header --stop album
expect_contains "$messages" "0 of 6 images are finished and kept"
case "$messages" in
*e.jpg*) fail "it looks at images after the first that failed: $messages" ;;
esac

expect_message 2 "--stop and --ranks cannot be combined" "$weir" run arr-coc --ranks --stop album
printf 'YUV4MPEG2 W16 H16 F25:1\n' >film.y4m
expect_message 2 "--stop is for images; 'film.y4m' is a stream" "$weir" run arr-coc --stop film.y4m
expect_message 2 "--decoders is for images" "$weir" run arr-coc --decoders 2 film.y4m

# No image can be used: a program that reads the figures gets them all the same.
expect_message 1 "2 of 2 images failed" "$weir" run arr-coc --config null.ini --output unusable --json album/a.JPEG album/e.jpg
python3 - "$output" <<'PYTHON' || fail "the figures are: $output"
import json, sys
figures = json.loads(sys.argv[1])
assert figures["frames"] == 0 and figures["module"] == "null", figures
assert [image["path"] for image in figures["images"]] == ["album/a.JPEG", "album/e.jpg"], figures
PYTHON

# bazel run //:demo, as Bazel would start it.
mkdir called from
(cd "$here" && BUILD_WORKING_DIRECTORY="$TEST_TMPDIR/called" ./demo >"$TEST_TMPDIR/table" 2>"$TEST_TMPDIR/notes")
expect_files called/out/demo coffee
expect_files called/out/demo chelsea
expect_contains "$(cat table)" "2 of 2 written to out/demo"
# Files have the names that a user knows, and no folder of the build's.
! grep -F -e "$here" -e .runfiles -e /bin/cli "$TEST_TMPDIR/table" "$TEST_TMPDIR/notes" || fail "a path of the build"
expect_contains "$(cat table)" "first    1 frame in "
expect_contains "$(cat table)" "warm     9 frames in "

# weir run arr-coc --devices, on the two devices of PoCL: the results are those of one.
export POCL_DEVICES="pthread basic"
copy_photos

expect_data 0 "$weir" run arr-coc --config small.ini --output one --quiet "${photos[@]/%/.png}"
for list in 1,0 all; do
    expect_data 0 "$weir" run arr-coc --config small.ini --devices "$list" --output "$list" --json "${photos[@]/%/.png}"
    as_json 'data["frames"] == 4 and len(data["devices"]) == 2 and data["first_frames"] == 2'
    as_json 'all(d["frames"] > 0 and d["covered_ns"] > 0 and d["device"] for d in data["devices"])'
    as_json 'sum(d["frames"] for d in data["devices"]) == 4'
    as_json 'all(d["wall_ns"] <= data["wall_ns"] for d in data["devices"])'
    as_json 'data["warm"]["frames"] == 2 and 0 < data["warm"]["wall_ns"] < data["wall_ns"]'
    as_json '[i["name"] for i in data["images"]] == [n + str(i) for i in range(1, 3) for n in ("coffee", "chelsea")]'
    expect_same "$list" one "${photos[@]}"
done
# The files name the device that ran their image, and both ran some.
names="$(python3 -c 'import glob, json
print(len({json.load(open(p))["device"]["name"] for p in glob.glob("1,0/*.json")}))')"
[ "$names" = 2 ] || fail "the images' files name $names devices"

# One image many times: every device gives the same bits, or the run fails.
expect_data 0 "$weir" run arr-coc --config small.ini --devices 0,1 --output again --repeat 9 coffee1.png
grep -q '^first  *2 frames in ' <<<"$output" || fail "it does not count the first frames: $output"
grep -q '^warm  *7 frames in ' <<<"$output" || fail "it does not count the warm frames: $output"
[ "$(grep -c '^device  ' <<<"$output")" -ge 3 ] || fail "it does not list the devices: $output"
grep -qE '^0: .* [0-9]+ .*%$' <<<"$output" || fail "it does not tell what device 0 did: $output"
grep -qE '^1: .* [0-9]+ .*%$' <<<"$output" || fail "it does not tell what device 1 did: $output"
cmp one/coffee1.tokens.npy again/coffee1.tokens.npy || fail "--repeat on two devices differs"

# One frame, on one of two devices; and devices without times.
expect_data 0 "$weir" run arr-coc --config small.ini --devices 0,1 --output few coffee1.png
grep -q '^first  *1 frame in ' <<<"$output" || fail "it does not count one frame: $output"
{ cat small.ini && printf '\n[pipeline]\ntiming = 0\n'; } >untimed.ini
expect_data 0 "$weir" run arr-coc --config untimed.ini --devices all --output few "${photos[@]/%/.png}"
grep -qE '^1: .* [0-9]+ *$' <<<"$output" || fail "it does not tell what device 1 did: $output"
expect_contains "$output" "no times of stages: the device keeps none, timing = 0, or graphs = 1"

# Bad lists.
refused 2 "--devices takes indices from \`weir devices\`, such as 0,1, or all; not ''" "$weir" run arr-coc --config small.ini coffee1.png --devices 0,
refused 2 "not '1x'" "$weir" run arr-coc --config small.ini coffee1.png --devices 1x
refused 2 "--devices names device 1 twice" "$weir" run arr-coc --config small.ini coffee1.png --devices 1,0,01
refused 2 "--devices takes at most 64 devices" "$weir" run arr-coc --config small.ini coffee1.png --devices "$(seq -s, 0 64)"
refused 3 "7" "$weir" run arr-coc --config small.ini coffee1.png --devices 0,7
