#!/bin/bash
# matrix_test.sh RANKS BACKEND: the conformance matrix in processes, through the transport `local`.
. tests/support/shell.sh

ranks="$1"
export WEIR_BACKEND="$2" WEIR_MODULE_PATH="$PWD/lib/weir" WEIR_COMM_TIMEOUT=100
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT "${!PMI@}" "${!OMPI_COMM@}"

# The count of cases is that of the lists in matrix.c: 12 datatypes; in place and not; 4 sizes of 8 kinds, for 6 of the
# types 5, and with reductions other than a sum 4 sizes of all-reduces and 3 of reduces and reduce-scatters.
cases=$((12 * 2 * (8 * 4 + 4 * (4 + 2 * 3)) + 6 * 2 * 8))
placement=host # which transports use in place
[ "$2" = null ] || placement=device
expect_status 0 timeout 250 cli/weir launch -n "$ranks" tests/comm/matrix_rank "$placement"
for rank in $(seq 0 $((ranks - 1))); do
    expect_contains "$output" "rank $rank of $ranks: $cases cases are right"
done
