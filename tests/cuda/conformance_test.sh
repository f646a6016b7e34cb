#!/bin/bash
# The conformance suite through the real backend code, on the fake libcuda.

. tests/support/shell.sh

export WEIR_BACKEND=cuda
export WEIR_MODULE_PATH=backends/cuda:tests/plugins/count
export LD_LIBRARY_PATH="$PWD/tests/support/libcuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export WEIR_TEST_CUDA_DEVICES=2

for plugins in "" "count,count"; do
    WEIR_PLUGINS=$plugins tests/conformance/conformance || exit 1
done
