#!/bin/bash
# mpirun.sh -n COUNT PROGRAM [ARGUMENT...]: ranks on the MPI of the tests. Ends all when one fails, with its
# status. FAKE_MPI_VARIABLES is OMPI_COMM_WORLD or PMI: what the ranks' variables begin with.
count="$2"
shift 2
FAKE_MPI="$(mktemp)"
export FAKE_MPI
trap 'rm -f "$FAKE_MPI"' EXIT
for ((rank = 0; rank < count; rank++)); do
    env "${FAKE_MPI_VARIABLES}_RANK=$rank" "${FAKE_MPI_VARIABLES}_SIZE=$count" "$@" &
done
for ((rank = 0; rank < count; rank++)); do
    status=0
    wait -n || status=$?
    [ "$status" -eq 0 ] && continue
    jobs -p | xargs -r kill -KILL 2>/dev/null
    exit "$status"
done
