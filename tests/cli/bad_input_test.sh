#!/bin/bash
# Bad input: a sentence that names the thing and the remedy, an exit code, and no file
# written in part.
. tests/cli/cli.sh

photo="$images/coffee.png"

# A first run, which also warms PoCL's cache.
expect_data 0 "$weir" run arr-coc --config small.ini --quiet "$photo"

# Devices and modules.
mkdir vendors modules
refused 3 "no OpenCL driver is registered" env OCL_ICD_VENDORS="$PWD/vendors/" \
    "$weir" run arr-coc --config small.ini "$photo"
expect_contains "$messages" "pocl-opencl-icd"
refused 3 "POCL_CACHE_DIR" env POCL_CACHE_DIR=/proc/weir-cache \
    "$weir" run arr-coc --config small.ini "$photo"
echo "This is no module." >modules/weir_opencl.so
refused 3 "modules/weir_opencl.so" env WEIR_MODULE_PATH="$PWD/modules" \
    "$weir" run arr-coc --config small.ini "$photo"
refused 3 "no weir_opencl.so in /nonexistent" env WEIR_MODULE_PATH=/nonexistent \
    "$weir" run arr-coc --config small.ini "$photo"
refused 3 "did you mean 'opencl'?" env WEIR_BACKEND=opencll "$weir" run arr-coc "$photo"
printf '[weir]\nbackend = opencl\ndevice = voodoo\n' >device.ini
refused 3 "voodoo" "$weir" run arr-coc --config device.ini "$photo"

# The INI.
printf '[weir]\nbakend = opencl\n' >key.ini
refused 3 "key.ini:2: unknown key 'bakend' in [weir]; did you mean 'backend'?" \
    "$weir" run arr-coc --config key.ini "$photo"
printf '[arr-coc]\n' >section.ini
refused 3 "section.ini:1: " "$weir" run arr-coc --config section.ini "$photo"
expect_contains "$messages" "arr_coc"
printf '[arr_coc]\nside = big\n' >value.ini
refused 3 "value.ini:2: " "$weir" run arr-coc --config value.ini "$photo"
printf '[arr_coc]\nside = 100\ngrid = 32\n' >multiple.ini
refused 3 "side 100 is no multiple of grid 32" "$weir" run arr-coc --config multiple.ini "$photo"
refused 3 "missing.ini" "$weir" run arr-coc --config missing.ini "$photo"

# Images.
: >empty.png
head -c 20000 "$photo" >truncated.png
head -c 20 "$photo" >header.png
echo "not an image" >text.png
for image in empty truncated header text missing; do
    refused 1 "$image.png" "$weir" run arr-coc --config small.ini "$image.png"
done
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
refused 2 "would both write" "$weir" run arr-coc "$photo" "$images/chelsea.png" "$photo"
refused 2 "'nowhere/' names no file" "$weir" run arr-coc nowhere/
mkdir folder.png
refused 2 "the folder 'folder.png' has no image" "$weir" run arr-coc folder.png

# Weights.
python3 - "$weights" <<'PYTHON'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
body = data[8 + size:]

def write(path, header, body):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + body)

# A tensor under another name is a missing one, and the file stays sound.
write("missing.safetensors",
      {("other" if k == "balancer.2.bias" else k): v for k, v in header.items()}, body)
shape = json.loads(json.dumps(header))
shape["participatory.0.weight"]["shape"] = [13, 64]
write("shape.safetensors", shape, body)
open("truncated.safetensors", "wb").write(data[:-100])
open("absurd.safetensors", "wb").write(b"\xff" * 8 + data[8:])
begin, end = header["balancer.0.bias"]["data_offsets"]
write("nan.safetensors", header, body[:begin] + struct.pack("<f", float("nan")) + body[begin + 4:])

def npy(path, values):
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % len(values)
    text += " " * (-(len(text) + 11) % 64) + "\n"
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() +
                           struct.pack("<%df" % len(values), *values))
npy("short.npy", [1.0] * 5)
npy("nan.npy", [1.0] * 100 + [float("nan")] + [1.0] * 1435)
PYTHON
expect_weights()
{
    refused 1 "$2" "$weir" run arr-coc --config small.ini --weights "$1" "$photo"
    expect_contains "$messages" "$1"
}
expect_weights missing.safetensors "balancer.2.bias"
expect_weights shape.safetensors "[64, 13]"
expect_contains "$messages" "[13, 64]"
expect_weights truncated.safetensors "truncated.safetensors"
expect_weights absurd.safetensors "18446744073709551615"
expect_weights nan.safetensors "balancer.0.bias"
expect_weights nowhere.safetensors "nowhere.safetensors"

# Queries.
refused 1 "the query has the shape [5]" \
    "$weir" run arr-coc --config small.ini --query short.npy "$photo"
expect_contains "$messages" "want [1536]"
refused 1 "nan.npy" "$weir" run arr-coc --config small.ini --query nan.npy "$photo"
expect_contains "$messages" "100"
refused 1 "text.png" "$weir" run arr-coc --config small.ini --query text.png "$photo"

# The output directory.
echo "a file" >file
refused 1 "the output directory 'file'" "$weir" run arr-coc --output file "$photo"
refused 1 "name another with --output" "$weir" run arr-coc --output file/below "$photo"
refused 1 "/proc" "$weir" run arr-coc --output /proc "$photo"
refused 1 "/proc/weir" "$weir" run arr-coc --output /proc/weir "$photo"
if [ "$(id -u)" -ne 0 ]; then
    mkdir locked
    chmod 555 locked
    refused 1 "make it writable" "$weir" run arr-coc --output locked "$photo"
    chmod 755 locked
else
    echo "not run as root: a directory without write permission"
fi

# A full disk, by way of the limit on a file's size: the tokens still fit, the
# overlay, of some MB, does not, and nothing of the image is left. PoCL's own files
# take less than 2 MB.
small_disk()
{
    (ulimit -f 2000 && exec "$@")
}
rm -rf out
python3 -c 'import random
from png import png
random.seed(1)
png("noise.png", 1000, 1000, random.randbytes(3000000), 3)'
if [ -n "${TSAN_OPTIONS-}" ]; then
    # libtsan keeps the shadow of constants in a file, which the limit cuts short.
    echo "not run under the thread sanitizer: a full disk"
else
    expect_message 1 "out/noise.overlay.png" small_disk "$weir" run arr-coc --config small.ini noise.png
    expect_nothing out
fi
