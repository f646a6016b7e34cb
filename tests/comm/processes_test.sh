#!/bin/bash
# Ranks in processes of their own, through the transport `local`: as docs/collectives.md starts them, and some
# that are killed, stopped and late.
. tests/support/shell.sh
here="$PWD"
weir="$here/cli/weir"
cd "$TEST_TMPDIR"
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
export WEIR_BACKEND=null WEIR_MODULE_PATH="$here/lib/weir" WEIR_COMM_TIMEOUT=100
ulimit -c 0

# The page's program, alone and as two ranks.
expect_status 0 "$here/tests/api/collectives_example"
expect_contains "$output" "rank 0 of 1: 1023"
expect_status 0 "$weir" launch -n 2 "$here/tests/api/collectives_example"
expect_contains "$output" "rank 0 of 2: 1023.5"
expect_contains "$output" "rank 1 of 2: 1023.5"

# Many steps of three ranks.
expect_status 0 "$weir" launch -n 3 "$here/tests/comm/rank" 20
for rank in 0 1 2; do
    expect_contains "$output" "rank $rank of 3: 3.48678e+09"
done

# A rank is killed: each of the others names it, the collective and its line.
export WEIR_COMM_COUNT=3 WEIR_COMM_RENDEZVOUS="file:$TEST_TMPDIR/meeting"
pids=()
for rank in 0 1 2; do
    WEIR_COMM_RANK=$rank "$here/tests/comm/rank" 20 7 >"rank$rank" 2>&1 &
    pids[rank]=$!
done
for rank in 0 1 2; do
    status=0
    wait "${pids[rank]}" || status=$?
    [ "$rank" -eq 1 ] || [ "$status" -eq 3 ] || fail "rank $rank ended with $status: $(cat "rank$rank")"
done
for rank in 0 2; do
    output="$(cat "rank$rank")"
    expect_contains "$output" "all-reduce 7 of 'grads'"
    expect_contains "$output" "rank 1"
    expect_contains "$output" "rank.c:"
done

# A rank that has stopped, and one that comes too late, are told at the timeout. The late one is told the same.
export WEIR_COMM_COUNT=2 WEIR_COMM_TIMEOUT=3
start() # start HOW: two ranks, of which rank 1 does that before step 7
{
    for rank in 0 1; do
        WEIR_COMM_RANK=$rank "$here/tests/comm/rank" 20 7 "$1" >"rank$rank" 2>&1 &
        pids[rank]=$!
    done
}
expect_late() # expect_late RANK: it has ended, and names rank 1
{
    local status=0
    wait "${pids[$1]}" || status=$?
    output="$(cat "rank$1")"
    [ "$status" -eq 3 ] || fail "rank $1 ended with $status: $output"
    expect_contains "$output" "all-reduce 7 of 'grads'"
    expect_contains "$output" "rank 1 has submitted nothing after all-reduce 6 ("
    expect_contains "$output" "rank.c:"
}
start stop
expect_late 0
kill -KILL "${pids[1]}"
wait "${pids[1]}" || true
mkfifo gate
start gate
expect_late 0
echo >gate
expect_late 1

# In time, it harms nothing.
start gate
echo >gate
for rank in 0 1; do
    wait "${pids[rank]}"
    expect_contains "$(cat "rank$rank")" "rank $rank of 2: 1.04858e+06"
done

# Many communicators one after the other: nothing grows. Sanitizers keep memory that is freed.
unset WEIR_COMM_COUNT WEIR_COMM_RENDEZVOUS
export WEIR_COMM_TIMEOUT=100
memory=memory
! grep -q '__[at]san_init' "$here/tests/comm/churn" || memory=
expect_status 0 "$weir" launch -n 2 "$here/tests/comm/churn" 200 $memory 600 # and as many duplicates
expect_status 0 "$here/tests/comm/churn" 400 $memory
expect_contains "$output" "361 of 400 in "
expect_status 3 "$weir" launch -n 2 "$here/tests/comm/churn" 1000000 1
expect_contains "$output" "the time was over before the tenth that is compared with"
# The tests' NCCL, which ends communicators on threads.
LD_LIBRARY_PATH="$here/tests/support/libcuda:$here/tests/support/libnccl" WEIR_BACKEND=cuda \
    expect_status 0 "$here/tests/comm/churn" 200 $memory
