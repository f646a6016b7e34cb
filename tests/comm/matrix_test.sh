#!/bin/bash
# matrix_test.sh map|send|mpich|openmpi RANKS BACKEND: the conformance matrix in processes, through the transport
# `local` with that setting of `memory`, or through MPI. Skipped, with the reason, where the library is not there.
. tests/support/shell.sh

way="$1" ranks="$2"
export WEIR_BACKEND="$3" WEIR_MODULE_PATH="$PWD/lib/weir" WEIR_COMM_TIMEOUT=100
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT "${!PMI@}" "${!OMPI_COMM@}"
program="$PWD/tests/comm/matrix_rank"
start=()

case "$way" in
map | send)
    export WEIR_LOCAL_MEMORY="$way"
    start=("$PWD/cli/weir" launch -n "$ranks")
    ;;
mpich)
    export WEIR_COMM_TRANSPORT=mpi
    start=(mpirun.mpich -n "$ranks")
    ;;
openmpi)
    export WEIR_COMM_TRANSPORT=mpi
    # Ranks on fewer cores, as any user, with sockets whose paths are short.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
    # Its files are named after process numbers, which another sandbox may have too.
    folder="$(mktemp -d /tmp/ompi.XXXXXX)"
    trap 'rm -rf "$folder"' EXIT
    export OMPI_MCA_orte_tmpdir_base="$folder" OMPI_MCA_btl_vader_backing_directory="$folder"
    # The same for Open MPI 5, which warns where no network is between ranks of one machine.
    export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_btl=^tcp
    export PRTE_MCA_prte_tmpdir_base="$folder" OMPI_MCA_btl_sm_backing_directory="$folder"
    start=(mpirun.openmpi -n "$ranks")
    ;;
esac
command -v "${start[0]}" >/dev/null || {
    echo "skipped: ${start[0]} is not installed; tools/setup.sh --tests installs it"
    exit 0
}

# The count of cases is that of the lists in matrix.c: 12 datatypes; in place and not; 4 sizes of 8 kinds, for 6 of the
# types 5, and with reductions other than a sum 4 sizes of all-reduces and 3 of reduces and reduce-scatters.
cases=$((12 * 2 * (8 * 4 + 4 * (4 + 2 * 3)) + 6 * 2 * 8))
placement=host # which transports use in place
[ "$3" = null ] || placement=device
expect_status 0 timeout 250 "${start[@]}" "$program" "$placement"
for rank in $(seq 0 $((ranks - 1))); do
    expect_contains "$output" "rank $rank of $ranks: $cases cases are right"
done
