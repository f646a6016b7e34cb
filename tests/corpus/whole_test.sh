#!/bin/bash
# The launches that tools/corpus/whole.py makes, and how it judges their results, on PoCL and kernels of our own.
. tests/support/shell.sh

export PYTHONPATH="$PWD/python/package:$PWD/tools/corpus" PYTHONDONTWRITEBYTECODE=1 POCL_DEVICES=basic
cp tests/corpus/fill.cl "$TEST_TMPDIR/k.cl"
library="$TEST_TMPDIR/fill.so"
gcc -shared -fPIC -I. -Iapi tests/corpus/fill.c -o "$library"
cd "$TEST_TMPDIR"

# run SOURCE OPTIONS [KERNEL]: one launch with every kind of argument, or with none.
run()
{
    python3 -c '
import array, pickle, sys, whole
run = whole.Run("fill")
data, out = run.buffer("i", [1, 2, 3, 4]), run.buffer("i", 4)
arguments = [] if sys.argv[3:] else [data, out, whole.local(8), whole.i32(10)]
run.launch(sys.argv[3] if sys.argv[3:] else "fill", (4,), (2,), *arguments)
with open("run", "wb") as file:
    pickle.dump(([data.data, out.data], run.launches, [1]), file)
whole.run_on("run", "opencl", sys.argv[1], sys.argv[2])
print([list(data) for data in pickle.load(open("run", "rb")).values()])' "$@"
}

expect_status 0 run k.cl -DSCALE=2
expect_contains "$output" "[[22, 21, 24, 23]]"
expect_status 0 run "$library" ""
expect_contains "$output" "[[22, 21, 24, 23]]"
expect_status 1 run k.cl -DSCALE=2 missing
expect_contains "$output" "missing"
expect_status 1 run k.cl -DSCALE=2 fill
expect_contains "$output" "got 0 arguments"
expect_status 1 run "$PWD/absent.so" ""
expect_contains "$output" "absent.so"

# whole.py: a kernel of the list whose source is not what it should be gives other results.
path="GNOME/gegl/operations/opencl"
mkdir -p "checkouts/$path"
judge()
{
    printf '__kernel void gegl_color_temperature(__global const float4 *in, __global float4 *out,
        float a, float b, float c) { out[get_global_id(0)] = %s; }\n' "$1" \
        >"checkouts/$path/color-temperature.cl"
    python3 -m whole --from checkouts --only color \
        --backend opencl=POCL_DEVICES=basic --backend opencl=POCL_DEVICES=pthread
}
expect_status 0 judge 'in[get_global_id(0)] * (float4)(a, b, c, 1.0f)'
expect_contains "$output" "1 of 1 sound"
expect_status 1 judge 'in[get_global_id(0)] * (float4)(a, b, c, 1.5f)'
expect_contains "$output" "BAD"
expect_status 1 judge 'nothing'
expect_contains "$output" "0 of 1 sound"
expect_contains "$output" "nothing"
