#!/bin/bash
# The program that tools/corpus/whole.py runs kernels with, and how whole.py judges their results,
# on PoCL and kernels of our own.
. tests/support/shell.sh

folder="$PWD/tools/corpus"
whole="$folder/whole"
export WEIR_MODULE_PATH="$PWD/backends/opencl"
export POCL_DEVICES=basic
cp tests/corpus/fill.cl "$TEST_TMPDIR/k.cl"
library="$TEST_TMPDIR/fill.so"
gcc -shared -fPIC -I. -Iapi tests/corpus/fill.c -o "$library"
cd "$TEST_TMPDIR"

printf '\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0' >in

lines()
{
    printf 'buffer 16 %s\nbuffer 16 -\n' "$1"
    printf 'launch fill 2 1 1 2 1 1 b0 b1 l8 v0a000000\nsave 1 out\ntime\n'
}

run()
{
    "$whole" opencl k.cl -DSCALE=2 <script
}

lines in >script
expect_status 0 run
[ "$(od -An -td4 out | tr -s ' ')" = " 22 21 24 23" ] || fail "$(od -An -td4 out)"
[[ "$output" =~ ^[0-9]+$ ]] || fail "no time: $output"
rm out
expect_status 0 "$whole" opencl "$library" "" <script
[ "$(od -An -td4 out | tr -s ' ')" = " 22 21 24 23" ] || fail "$(od -An -td4 out)"

# What is wrong ends it: a buffer's file, a kernel, an argument, a line, the source, the call.
lines absent >script
expect_status 1 run
printf 'launch missing 1 1 1 1 1 1\n' >script
expect_status 1 run
expect_contains "$output" "missing"
printf 'buffer 16 -\nlaunch fill 1 1 1 1 1 1 b0\n' >script
expect_status 1 run
expect_contains "$output" "fill"
printf 'what\n' >script
expect_status 1 run
printf 'buffer 16 -\nsave 0 no/such/folder\n' >script
expect_status 1 run
expect_status 1 "$whole" opencl absent.cl "" </dev/null
expect_contains "$output" "cannot read the program"
expect_status 1 "$whole" opencl k.cl "" </dev/null
expect_contains "$output" "SCALE"
: >absent.so
expect_status 1 "$whole" opencl "$PWD/absent.so" "" </dev/null
expect_contains "$output" "cannot read the program"
expect_status 2 "$whole"
expect_contains "$output" "usage: whole"

# whole.py: a kernel of the list whose source is not what it should be gives other results.
path="GNOME/gegl/operations/opencl"
mkdir -p "checkouts/$path"
judge()
{
    printf '__kernel void gegl_color_temperature(__global const float4 *in, __global float4 *out,
        float a, float b, float c) { out[get_global_id(0)] = %s; }\n' "$1" \
        >"checkouts/$path/color-temperature.cl"
    python3 "$folder/whole.py" --from checkouts --program "$whole" --only color \
        --backend opencl=POCL_DEVICES=basic --backend opencl=POCL_DEVICES=pthread
}
expect_status 0 judge 'in[get_global_id(0)] * (float4)(a, b, c, 1.0f)'
expect_contains "$output" "1 of 1 sound"
expect_status 1 judge 'in[get_global_id(0)] * (float4)(a, b, c, 1.5f)'
expect_contains "$output" "BAD"
expect_status 1 judge 'nothing'
expect_contains "$output" "0 of 1 sound"
