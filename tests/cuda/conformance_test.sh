#!/bin/bash
# The conformance suite through the real backend code, on the fake libcuda.

. tests/support/shell.sh

export WEIR_BACKEND=cuda
export WEIR_MODULE_PATH=backends/cuda:tests/plugins/count
export LD_LIBRARY_PATH="$PWD/tests/support/libcuda:$PWD/tests/support/libopencl:$PWD/tests/support/libnvrtc${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export WEIR_TEST_CUDA_DEVICES=2

printf '[cuda]\nattribute_faults = 1\n' >"$TEST_TMPDIR/attributed.ini"
WEIR_CONFIG="$TEST_TMPDIR/attributed.ini" tests/conformance/conformance || exit 1

for plugins in "" "count,count"; do
    WEIR_PLUGINS=$plugins tests/conformance/conformance || exit 1
done

# Devices whose managed memory the host cannot use while they work.
WEIR_PLUGINS= WEIR_TEST_CUDA_MANAGED=0 tests/conformance/conformance --gtest_filter='Managed.*' || exit 1

# Devices that cannot reach each other's memory.
WEIR_PLUGINS= WEIR_TEST_CUDA_PEERS=0 tests/conformance/conformance --gtest_filter='Peers.*:PeerKernels.*' || exit 1
