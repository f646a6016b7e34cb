#!/bin/bash
# `weir kernels compare` with the CUDA toolkit of this machine and the fake libcuda, for which both forms of
# a kernel are one function.
. tests/support/shell.sh

weir="$PWD/cli/weir"
export WEIR_BACKEND=cuda WEIR_MODULE_PATH="$PWD/backends/cuda"
export LD_LIBRARY_PATH="$PWD/tests/support/libcuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
unset WEIR_CONFIG WEIR_PLUGINS
cat >"$TEST_TMPDIR/cases.json" <<'TEXT'
{"cases": [{"name": "tile", "kernel": "matmul", "grid": [1, 1], "block": [8, 16],
  "arguments": [{"count": 2048, "random": [-1, 1]}, {"count": 1024, "random": [-1, 1]}, {"count": 8192, "fill": 7},
                {"value": 128}, {"value": 64}, {"value": 16}]}]}
TEXT
compare()
{
    "$weir" kernels compare --cases "$TEST_TMPDIR/cases.json" -I. kernels/matmul/matmul.cl "$@"
}
expect_status 0 compare --cuda kernels/matmul/matmul.cu
expect_contains "$output" "kernels/matmul/matmul.cu against the OpenCL C of kernels/matmul/matmul.cl"
expect_contains "$output" "ok    tile: 'c': 8192 elements, equal"
expect_status 1 compare --cuda kernels/matmul/matmul.cu --arch 100
expect_contains "$output" "no image for 'Fake GPU 0', which is sm_90; it has cubin sm_100, PTX sm_100"
expect_status 3 env CUDA_HOME=none "$weir" kernels compare --cases "$TEST_TMPDIR/cases.json" -I. \
    kernels/matmul/matmul.cl --cuda kernels/matmul/matmul.cu
expect_contains "$output" "libdevice.10.bc is not found"
printf '.version 9.0\n.target sm_80\n.entry matmul(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 m, .param .u32 n, .param .u32 k)\n' \
    >"$TEST_TMPDIR/k.ptx"
expect_says 0 "k.ptx against the OpenCL C of kernels/matmul/matmul.cl" compare --cuda-image "$TEST_TMPDIR/k.ptx"
