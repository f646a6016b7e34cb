#!/bin/bash
# Ranks in processes of their own, through the transport `local`: as docs/collectives.md starts them, and one
# that is killed.
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
