#!/bin/bash
# Bad input: a sentence that names the thing and the remedy, an exit code, and no file
# written in part.
. tests/cli/cli.sh

photo="$images/coffee.png"

# A first run, which also warms PoCL's cache.
expect_data 0 "$weir" run arr-coc --config small.ini --quiet "$photo"

# Set-ups that cannot be used; `weir doctor` tells more of them (doctor_test.sh).
refused 3 "POCL_CACHE_DIR" env POCL_CACHE_DIR=/proc/weir-cache \
    "$weir" run arr-coc --config small.ini "$photo"
printf '[weir]\nbackend = opencl\ndevice = voodoo\n' >device.ini
refused 3 "voodoo" "$weir" run arr-coc --config device.ini "$photo"
printf '[arr_coc]\nside = 100\ngrid = 32\n' >multiple.ini
refused 3 "side 100 is no multiple of grid 32" "$weir" run arr-coc --config multiple.ini "$photo"

# Images.
: >empty.png
head -c 20000 "$photo" >truncated.png
echo "not an image" >text.png
refused 1 "missing.png" "$weir" run arr-coc --config small.ini missing.png
{ cat small.ini && printf 'max_pixels = 1000\n'; } >cap.ini
refused 1 "max_pixels" "$weir" run arr-coc --config cap.ini "$photo"
expect_contains "$messages" "coffee.png"
expect_contains "$messages" "600"

# One bad image among many: the others are run, and the exit code tells of the failure.
rm -rf out
expect_data 1 "$weir" run arr-coc --config small.ini --repeat 3 text.png "$photo" truncated.png \
    "$images/chelsea.png" empty.png
expect_files out coffee
expect_files out chelsea
[ "$(find out -type f | wc -l)" -eq 12 ] || fail "there is: $(ls -A out)"
expect_contains "$messages" "3 of 5 images failed"
[ "$(grep -c 'truncated.png' <<<"$messages")" -eq 1 ] || fail "said more than once: $messages"
expect_contains "$output" "2 of 5 written"

# Names.
mkdir other
cp "$photo" other/coffee.jpg
refused 2 "would both write out/coffee.json" "$weir" run arr-coc "$photo" other/coffee.jpg
refused 2 "'nowhere/' names no file" "$weir" run arr-coc nowhere/
mkdir folder.png
refused 2 "the folder 'folder.png' has no image" "$weir" run arr-coc folder.png

# Weights. A tensor under another name is a missing one, and the file stays sound.
sed 's/"balancer.2.bias"/"balancer.2.bios"/' "$weights" >missing.safetensors
python3 -c 'from files import npy
npy("short.npy", (5,), 1.0)
npy("nan.npy", (1536,), [1.0] * 100 + [float("nan")] + [1.0] * 1435)'
refused 1 "balancer.2.bias" "$weir" run arr-coc --config small.ini --weights missing.safetensors "$photo"
# The header is checked before memory for the tensors is taken.
printf '\15\0\0\0\0\0\0\0{"a": broken}' >large.safetensors
truncate -s 1T large.safetensors
refused 1 "has a broken header" "$weir" run arr-coc --config small.ini --weights large.safetensors "$photo"
rm large.safetensors
refused 1 "nowhere.safetensors" "$weir" run arr-coc --config small.ini --weights nowhere.safetensors "$photo"

# Queries.
refused 1 "the query has the shape [5]" \
    "$weir" run arr-coc --config small.ini --query short.npy "$photo"
expect_contains "$messages" "want [1536]"
refused 1 "nan.npy" "$weir" run arr-coc --config small.ini --query nan.npy "$photo"
expect_contains "$messages" "100"

# The output directory.
echo "a file" >file
refused 1 "the output directory 'file'" "$weir" run arr-coc --output file "$photo"
refused 1 "name another with --output" "$weir" run arr-coc --output /proc/weir "$photo"
refused 1 "nothing can be written to the output directory '/proc'" "$weir" run arr-coc --config small.ini --output /proc "$photo"
expect_contains "$messages" "make it writable or name another with --output"

# What a service measures.
refused 2 "--serve measures one image on one device" "$weir" bench arr-coc --serve "$photo" "$images/chelsea.png"

# A full disk, by way of the limit on a file's size: the tokens still fit, the
# overlay, of some MB, does not, and nothing of the image is left. PoCL's own files
# take less than 2 MB.
small_disk()
{
    (ulimit -f 2000 && exec "$@")
}
rm -rf out
python3 -c 'import random
from files import png
random.seed(1)
png("noise.png", 1000, 1000, random.randbytes(3000000), 3)'
if [ -n "${TSAN_OPTIONS-}" ]; then
    # libtsan keeps the shadow of constants in a file, which the limit cuts short.
    echo "not run under the thread sanitizer: a full disk"
else
    expect_message 1 "out/noise.overlay.png" small_disk "$weir" run arr-coc --config small.ini noise.png
    expect_nothing out
fi
