#!/bin/bash
# torch_test.py without PyTorch: capsules through ctypes only, on PoCL.
. tests/support/shell.sh

export WEIR_MODULE_PATH=lib/weir
export WEIR_BACKEND=opencl POCL_DEVICES=pthread
expect_says 0 "ok    a capsule there and back, device memory" python3 tests/interop/torch_test.py tests/interop/torch_bridge.so --no-torch
expect_contains "$output" "ok    a capsule there and back, host memory"
expect_contains "$output" "ok    everything closes"

expect_status 2 python3 tests/interop/torch_test.py

# The same step as on a GPU machine.
if ! python3 -c 'import torch' 2>/dev/null; then
    expect_says 0 "skipped: No module named 'torch'" python3 tests/interop/torch_test.py tests/interop/torch_bridge.so
fi
