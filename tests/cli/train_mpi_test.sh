#!/bin/bash
# weir train under mpirun, which exchanges through MPI, has the bits of weir launch. An MPI that is not
# installed is skipped.
. tests/cli/cli.sh
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT "${!PMI@}" "${!OMPI_COMM@}"
export WEIR_BACKEND=opencl

# Ranks on fewer cores, as any user, with sockets whose paths are short, in files of this test's own.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
folder="$(mktemp -d /tmp/ompi.XXXXXX)"
trap 'rm -rf "$folder"' EXIT
export OMPI_MCA_orte_tmpdir_base="$folder" OMPI_MCA_btl_vader_backing_directory="$folder"
# The same for Open MPI 5, which warns where no network is between ranks of one machine.
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_btl=^tcp
export PRTE_MCA_prte_tmpdir_base="$folder" OMPI_MCA_btl_sm_backing_directory="$folder"

training=("$program" train ddp --side 8 --hidden 1 --width 16 --batch 8 --steps 20)
digest()
{
    sed -n 's/.*digest *\([0-9a-f]\{16\}\) of the parameters.*/\1/p' <<<"$output"
}

expect_status 0 "$program" launch -n 2 "${training[@]}"
wanted="$(digest)"
[ ${#wanted} -eq 16 ] || fail "it printed: $output"
for mpirun in mpirun.mpich mpirun.openmpi; do
    command -v "$mpirun" >/dev/null || {
        echo "skipped: $mpirun is not installed; tools/setup.sh --tests installs it"
        continue
    }
    WEIR_COMM_TRANSPORT=mpi expect_status 0 timeout 250 "$mpirun" -n 2 "${training[@]}"
    expect_contains "$output" "16 samples: 2 ranks, 1 pass, 8 samples each"
    [ "$(digest)" = "$wanted" ] || fail "under $mpirun the parameters have $(digest), not $wanted"
done
