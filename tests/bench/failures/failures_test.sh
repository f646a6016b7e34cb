#!/bin/bash
# Each way in which a rank fails, on each transport: the others are told, with the rank's number. Times are
# printed and not judged.
. tests/support/shell.sh

# The timeout is that of the creation too: longer than three processes take to start on a busy machine.
repetitions="${WEIR_TEST_REPETITIONS:-1}"
bash tests/bench/failures/measure.sh --ways soon --repetitions "$repetitions" --timeout 60
# These wait for their timeouts most of the time.
declare -A pids
for transport in memory messages openmpi mpich nccl; do
    bash tests/bench/failures/measure.sh --ways late --repetitions "$repetitions" --timeout 5 \
        --transports "$transport" >"$TEST_TMPDIR/$transport" &
    pids[$transport]=$!
done
failed=0
for transport in "${!pids[@]}"; do
    wait "${pids[$transport]}" || failed=1
    cat "$TEST_TMPDIR/$transport"
done
exit "$failed"
