#!/bin/bash
# The archive, moved to a folder with a space in its name, works.
. tests/dist/dist.sh
there="$TEST_TMPDIR/some where/else"
unpack "$there"
weir="$there/bin/weir"
cd "$TEST_TMPDIR"

expect_prints "weir $version" "$weir" --version

# Without the CUDA archive the default configuration falls back, and says so.
expect_says 0 "weir_cuda.so" "$weir" doctor --all
expect_contains "$output" "$there/bin/../lib/weir/weir_opencl.so"
expect_status 0 env WEIR_BACKEND=opencl "$weir" doctor
expect_status 0 "$weir" config check "$there/share/weir/conf/reference.ini"

# The suite, started by the command and by itself.
expect_says 0 "0 failed" "$weir" conform --backend null --filter 'Copy.*'
expect_contains "$output" "null on 'null device 0'"
expect_status 0 env WEIR_BACKEND=null "$there/libexec/weir/conformance" --gtest_filter='Copy.*'
expect_says 0 "0 failed" "$weir" conform --backend opencl --filter 'Launch.*'

# The archive's weights are found. Two runs have the same results; those of another image differ,
# and the comparison tool notices it.
printf '[weir]\nbackend = opencl\n[arr_coc]\nside = 256\ngrid = 16\n' >small.ini
cp "$root/tests/data/images/coffee.png" photo.png
expect_status 0 "$weir" run arr-coc --quiet --config small.ini --output one photo.png
expect_status 0 "$weir" run arr-coc --quiet --config small.ini --output two photo.png
cp "$root/tests/data/images/chelsea.png" photo.png
expect_status 0 "$weir" run arr-coc --quiet --config small.ini --output other photo.png
compare="$there/libexec/weir/compare"
expect_status 0 diff -r --exclude '*.json' one two
expect_says 0 "photo: agree: relevance 0.0e+00" "$compare" one two photo
expect_says 1 "photo: DIFFER" "$compare" one other photo
expect_says 2 "elsewhere/photo.relevance.npy" "$compare" one elsewhere photo

# Patches that do not follow from the relevance are noticed.
cp -r one bent
python3 - bent/photo.relevance.npy <<'PYTHON'
import sys
path = sys.argv[1]
data = bytearray(open(path, "rb").read())
data[-4:] = (0x3F800000).to_bytes(4, "little")  # the last patch: 1.0
open(path, "wb").write(data)
PYTHON
expect_says 1 "not those that the relevance asks for" "$compare" bent bent photo

# The second archive puts the module beside the others. Without a driver the module itself reports
# that.
tar -xzf "$cuda_archive" -C "$TEST_TMPDIR/unpacked"
cp -r "$TEST_TMPDIR/unpacked/$folder/." "$there"
status=0
output="$("$weir" conform --backend cuda --filter 'Copy.*' 2>&1)" || status=$?
if [ "$status" -ne 0 ]; then
    [ "$status" -eq 3 ] || fail "weir conform --backend cuda ended with $status: $output"
    expect_contains "$output" "libcuda.so.1"
fi

# Without the suite.
rm "$there/libexec/weir/conformance"
expect_says 3 "the suite is missing" "$weir" conform --backend null
