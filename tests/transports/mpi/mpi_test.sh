#!/bin/bash
# mpi_test.sh mpich|openmpi|fake: the transport "mpi" under mpirun. Skipped, with
# the reason, where the library is not there.
. tests/support/shell.sh

ranks="$PWD/tests/transports/mpi/ranks"
fake="$PWD/tests/support/libmpi"
case "$1" in
fake)
    mpirun="$fake/mpirun.sh" library="$fake/libmpi_abi.so.0" other=none name="MPI 5.0"
    found="$library" # how the library is named where it is to be found
    export WEIR_MPI_LIBRARY="$library"
    ;;
mpich)
    mpirun=mpirun.mpich library=libmpich.so.12 other=libmpi.so.40 name=MPICH
    ;;
openmpi)
    mpirun=mpirun.openmpi library=libmpi.so.40 other=libmpich.so.12 name="Open MPI"
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
    ;;
esac
example="$PWD/tests/transports/mpi/example"
export WEIR_MODULE_PATH="$PWD/lib/weir"
unset "${!PMI@}" "${!OMPI_COMM@}"
command -v "$mpirun" >/dev/null || {
    echo "skipped: $mpirun is not installed; tools/setup.sh --tests installs it"
    exit 0
}

# run COUNT WHAT [LIBRARY]: runs ranks; $output is what they print, sorted, without what mpirun says, and
# $status how it ends.
run()
{
    rm -rf "$TEST_TMPDIR/ranks"
    mkdir "$TEST_TMPDIR/ranks"
    status=0
    RANKS_OUTPUT="$TEST_TMPDIR/ranks" timeout 250 "$mpirun" -n "$1" "$ranks" "$2" "${3-${found-}}" \
        >"$TEST_TMPDIR/said" 2>&1 || status=$?
    output="$(sort "$TEST_TMPDIR/ranks/"*)"
}

# on COUNT WHAT [LIBRARY]: the same of ranks that end well.
on()
{
    run "$@"
    [ "$status" -eq 0 ] || fail "$2 on $1 ranks ended with $status: $output $(cat "$TEST_TMPDIR/said")"
}

# expect_all COUNT WHAT CAUSE: all ranks tell that.
expect_all()
{
    local rank
    on "$1" "$2"
    for rank in $(seq 0 $(($1 - 1))); do
        grep -qxF "$rank: WEIR_ERROR_COMM: $3" <<<"$output" || fail "rank $rank has not told \"$3\": $output"
    done
}

# What works.
on 2 collectives,order,messages,groups
[ "$output" = ok ] || fail "it printed: $output"
on 3 order,messages,groups "$library"
[ "$output" = ok ] || fail "it printed: $output"

# More than 2^31 elements, once: the pieces are the same for all libraries.
case "$1" in
mpich) on 2 large ;;
esac

# Through the library, as docs/collectives.md has it.
mkdir "$TEST_TMPDIR/example"
WEIR_BACKEND=null WEIR_COMM_TRANSPORT=mpi timeout 250 "$mpirun" -n 2 \
    sh -c 'exec "$0" >"$1/$$" 2>&1' "$example" "$TEST_TMPDIR/example" >"$TEST_TMPDIR/said" 2>&1 ||
    fail "the example printed: $(cat "$TEST_TMPDIR/example/"* "$TEST_TMPDIR/said")"
output="$(sort "$TEST_TMPDIR/example/"*)"
[ "$output" = "rank 0 of 2: 1023.5
rank 1 of 2: 1023.5" ] || fail "the example printed: $output"

# Ranks that call something else: all ranks tell the first cause, and at a later call too.
expect_other()
{
    expect_all 3 "other-$1" "$2"
    [ "$(grep -c COMM <<<"$output")" -eq 6 ] || fail "other-$1 printed: $output"
}
expect_silent()
{
    expect_all 3 "$1" "all-reduce 2 of 'grads', app.c:20: rank $2 has submitted nothing after all-gather 1 (app.c:10) in 1.00 s"
}
expect_other kind "all-reduce 2 of 'grads', app.c:20: rank 1 has called barrier 2 (app.c:30) instead"

# A rank that has stopped, and one that is gone.
expect_silent stop 1
on 3 leave
[ "$(grep -c "all-reduce 2 of 'grads', app.c:20: rank 1 has destroyed the communicator" <<<"$output")" -eq 2 ] ||
    fail "leave printed: $output"
expect_all 3 abort "rank 1 has aborted 'grads': the disk is full"

# MPI of the program's own, with constants of each ABI.
on 2 own-threads "$library"
on 2 own-single "$library"
expect_contains "$output" "0: WEIR_ERROR_CONFIG: 'grads': the program has started MPI without MPI_THREAD_MULTIPLE"

# Another MPI than the one that has started the program.
if ldconfig -p | grep -q "$other"; then
    on 1 load "$other"
    expect_contains "$output" "the program was started by the mpirun of another MPI than the library in use"
    expect_not_contains "$output" "$name"
fi

# What is compared, found out and told is Weir's own, the same with each ABI: once, with the fake, which starts faster
# than a library in use.
[ "$1" = fake ] || exit 0

# A rank that never creates its communicator, and one with another number than MPI's.
run 2 missing
expect_contains "$output" "0: WEIR_ERROR_COMM: 'grads': MPI has not started in 1000 ms: a rank has not created the communicator"
on 2 place
expect_contains "$output" "5: WEIR_ERROR_CONFIG: 'grads': this is rank 5 of 2 by the configuration, and rank 1 of 2 of MPI"
expect_contains "$output" "0: WEIR_ERROR_COMM: 'grads': this is rank 5 of 2 by the configuration, and rank 1 of 2 of MPI"

# A rank that is late for a second communicator.
on 2 late-join
expect_contains "$output" "rank 1 has submitted nothing"

# Rank 0, which compares, may be the one that differs. Of two ranks neither is blamed.
expect_other kind-0 "all-reduce 2 of 'grads', app.c:20: rank 0 has called barrier 2 (app.c:30) instead"
expect_all 2 other-kind "all-reduce 2 of 'grads', app.c:20: rank 1 has called barrier 2 (app.c:30), and rank 0 all-reduce 2 (app.c:20)"
expect_all 3 message "recv of 'grads', app.c:20: rank 1 has called send (app.c:20) with 3 f32, and rank 0 with 4 f32"
expect_silent late 1
expect_silent late-0 0
expect_all 3 abort-receive "rank 1 has aborted 'grads': the disk is full"

# A rank that is out of memory, for a group and for a message.
for what in memory-0 memory-3 memory-5; do
    expect_all 3 "$what" "split 1 of 'grads', app.c:101: rank 1 has no memory left"
done
expect_all 3 message-memory "recv of 'grads', app.c:20: rank 1 has no memory left"

# Wrong libraries, and programs that mpirun has not started.
on 2 own-ended "$library"
expect_contains "$output" "0: WEIR_ERROR_INVALID: 'grads': MPI has ended in this process, and cannot be started again"
expect_says 0 "needs a program that mpirun, srun or the like has started" "$ranks" load "$library"
expect_says 0 "libm.so.6 is no MPI library whose ABI the transport 'mpi' knows" "$ranks" load libm.so.6
expect_says 0 "no MPI library is there: ./no-such-library.so: cannot open shared object file" "$ranks" load ./no-such-library.so
expect_says 0 "the transport 'mpi' joins processes, not threads of one" "$ranks" load "$library" process:x

# Functions that fail on rank 1, where they are called for the second time: all ranks tell which one, and why. Where
# MPI_Comm_split fails on one rank the others wait in it, which nothing can end.
for function in MPI_Isend MPI_Irecv MPI_Iallgather MPI_Ialltoall MPI_Igather MPI_Iscatter MPI_Ibcast; do
    export WEIR_TEST_MPI_FAIL="$function:2:1"
    on 3 fail
    [ "$(grep -c "WEIR_ERROR_COMM: .*rank 1: $function failed: the fake's error 15" <<<"$output")" -eq 3 ] ||
        fail "fail of $function printed: $output"
done
