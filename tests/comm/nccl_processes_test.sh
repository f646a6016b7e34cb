#!/bin/bash
# Ranks in processes of their own, by the tests' NCCL, which tells nothing of a rank that has gone: rank 1 of three
# is killed, stopped, late, leaves a call out or makes another one, and the others say so.
. tests/support/shell.sh
here="$PWD"
cd "$TEST_TMPDIR"
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
export WEIR_BACKEND=cuda WEIR_MODULE_PATH="$here/lib/weir" WEIR_COMM_TIMEOUT=100
export LD_LIBRARY_PATH="$here/tests/support/libcuda:$here/tests/support/libnccl"
export WEIR_TEST_NCCL_FOLDER="$TEST_TMPDIR/nccl"
mkdir "$WEIR_TEST_NCCL_FOLDER"
ulimit -c 0

expect_status 0 "$here/cli/weir" launch -n 3 "$here/tests/comm/rank" 20
for rank in 0 1 2; do
    expect_contains "$output" "rank $rank of 3: 3.48678e+09"
done

export WEIR_COMM_COUNT=3 WEIR_COMM_RENDEZVOUS="file:$TEST_TMPDIR/meeting"
start() # start HOW: three ranks, of which rank 1 does that in step 7
{
    for rank in 0 1 2; do
        WEIR_COMM_RANK=$rank "$here/tests/comm/rank" 20 7 "$1" >"rank$rank" 2>&1 &
        pids[rank]=$!
    done
}
expect_end() # expect_end STATUS WORD...: ranks 0 and 2 end so, and each has said all these
{
    local expected="$1" rank status word
    shift
    for rank in 0 2; do
        status=0
        wait "${pids[rank]}" || status=$?
        output="$(cat "rank$rank")"
        [ "$status" -eq "$expected" ] || fail "rank $rank ended with $status: $output"
        for word in "$@"; do
            expect_contains "$output" "$word"
        done
    done
}

# At once: the timeout is longer than the test's.
start kill
expect_end 3 "all-reduce 7 of 'grads', tests/comm/rank.c:" \
    "rank 1 has died, at the earliest after all-reduce 6 (tests/comm/rank.c:" \
    "; it was process ${pids[1]} of '"
wait "${pids[1]}" || true
start count
expect_end 3 "all-reduce 7 of 'grads', tests/comm/rank.c:" "4999 f32" "5000 f32" "rank 1"
wait "${pids[1]}" || true
start kind # told by the rank that sees it first, which may be rank 1, of whom the others then hear
expect_end 3 "all-reduce 7" "broadcast 7" "of 'grads', tests/comm/rank.c:" "rank 1 has " \
    "7 (tests/comm/rank.c:"
wait "${pids[1]}" || true
start skip
expect_end 3 "all-reduce 20 of 'grads', tests/comm/rank.c:" \
    "rank 1 has destroyed the communicator after all-reduce 19 (tests/comm/rank.c:"
wait "${pids[1]}" || true

# The others go on without it.
start shrink
expect_end 0 "of 2: 1.04858e+06"
wait "${pids[1]}" || true

# At the timeout.
export WEIR_COMM_TIMEOUT=3
start stop
expect_end 3 "all-reduce 7 of 'grads', tests/comm/rank.c:" \
    "rank 1 (process ${pids[1]} of '" "it is stopped, or cut off" \
    "at the earliest after all-reduce 6 (tests/comm/rank.c:"
kill -KILL "${pids[1]}"
wait "${pids[1]}" || true
mkfifo gate
start gate
expect_end 3 "all-reduce 7 of 'grads', tests/comm/rank.c:" \
    "rank 1 has submitted nothing after all-reduce 6 (tests/comm/rank.c:"
echo >gate
wait "${pids[1]}" || true
