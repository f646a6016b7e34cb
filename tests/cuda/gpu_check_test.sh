#!/bin/bash
# gpu_check's faults, messages and killed process with the fake libcuda. Its times are not checked:
# they are for a GPU.

. tests/support/shell.sh

export WEIR_BACKEND=cuda
export WEIR_MODULE_PATH=backends/cuda
export LD_LIBRARY_PATH="$PWD/tests/support/libcuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

tests/cuda/gpu_check fault || fail "gpu_check fault ended with $?"
tests/cuda/gpu_check messages || fail "gpu_check messages ended with $?"
