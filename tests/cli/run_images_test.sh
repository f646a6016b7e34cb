#!/bin/bash
# weir run arr-coc over folders, with threads that decode: all images, those that are damaged, and none after
# the first of these with --stop.
. tests/cli/cli.sh

cat >small.ini <<'TEXT'
[weir]
backend = opencl

[arr_coc]
side = 64
grid = 4
budget = 256
TEXT
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

expect_message 2 "--decoders" "$weir" run arr-coc --decoders 0 album
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
