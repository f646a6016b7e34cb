#!/bin/bash
# measure.sh [OPTION]...: measure.py with the modules of this build, and the tests' driver and NCCL. From
# the root of the runfiles.
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT "${!WEIR_COMM_@}"
unset "${!PMI@}" "${!OMPI_COMM@}"
export WEIR_MODULE_PATH="$PWD/lib/weir"
export WEIR_CUDA_LIBRARY="$PWD/tests/support/libcuda/libcuda.so.1"
export WEIR_CUDA_NCCL="$PWD/tests/support/libnccl/libnccl.so.2"
ulimit -c 0
exec python3 tests/bench/failures/measure.py "$@"
