#!/bin/bash
# comm_check with one rank, on the fake libcuda and the tests' NCCL. Its times are not checked.

. tests/support/shell.sh

export WEIR_BACKEND=cuda
export WEIR_MODULE_PATH=backends/cuda:transports/local
export WEIR_CUDA_NCCL=tests/support/libnccl/libnccl.so.2
export LD_LIBRARY_PATH="$PWD/tests/support/libcuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

# Ends at the first row of figures.
rows="$(tests/cuda/comm_check submit | grep -m 2 -e "one rank" -e "^ok    submit of")"
grep -q "^ok    1 GPU: one rank" <<<"$rows" || fail "no word of one rank: $rows"
grep -q "^ok    submit of " <<<"$rows" || fail "no figures: $rows"

output="$(NCCL_COMM_BLOCKING=0 tests/cuda/comm_check submit)" && fail "submit ran with calls that do not block"
grep -q "^FAIL  NCCL beside Weir: NCCL_COMM_BLOCKING=0 is set" <<<"$output" || fail "no word of NCCL_COMM_BLOCKING: $output"

output="$(tests/cuda/comm_check speed)" && fail "speed ran with one rank"
grep -q "'speed' needs two ranks" <<<"$output" || fail "speed is refused without the reason: $output"
