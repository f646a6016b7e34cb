#!/bin/bash
# mpirun.sh -n COUNT PROGRAM [ARGUMENT...]: ranks on the MPI of the tests. Ends all when one fails, with its
# status.
count="$2"
shift 2
FAKE_MPI="$(mktemp)"
export FAKE_MPI
trap 'rm -f "$FAKE_MPI"' EXIT
left=()
for ((rank = 0; rank < count; rank++)); do
    PMI_RANK=$rank PMI_SIZE=$count "$@" &
    left+=("$!")
done
# Not `wait -n`, which misses a rank that ends together with another and then returns 127.
while [ "${#left[@]}" -gt 0 ]; do
    running=()
    for process in "${left[@]}"; do
        if kill -0 "$process" 2>/dev/null; then
            running+=("$process")
            continue
        fi
        status=0
        wait "$process" || status=$?
        [ "$status" -eq 0 ] && continue
        kill -KILL "${left[@]}" 2>/dev/null
        exit "$status"
    done
    left=("${running[@]}")
    sleep 0.01
done
