#!/bin/bash
# weir bench comm beside MPI itself, under the mpirun of those libraries that are installed.
. tests/cli/cli.sh
. "$here/tests/cli/bench.sh"

# Ranks on fewer cores, as any user, with sockets whose paths are short.
folder="$(mktemp -d /tmp/ompi.XXXXXX)"
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_orte_tmpdir_base="$folder" OMPI_MCA_btl_vader_backing_directory="$folder"
unset "${!PMI@}" "${!OMPI_COMM@}"
export WEIR_BACKEND=null WEIR_COMM_TRANSPORT=mpi

for library in openmpi mpich; do
    command -v "mpirun.$library" >/dev/null || continue
    expect_data 0 "mpirun.$library" -n 2 "$weir" bench comm \
        --turns 2 --iterations 2 --size 4K --json \
        --collectives all-reduce,reduce,broadcast,all-gather,reduce-scatter,all-to-all,exchange
    report '
assert len(tables["collectives"]) == 7
for row in tables["collectives"]:
    assert median(row["mpi_ns"]) > 0 and median(row["ratio"]) > 0, row
'
done

