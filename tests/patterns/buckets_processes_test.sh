#!/bin/bash
# Gradient buckets of ranks in processes of their own: many steps, the page's program, and a rank that is
# killed in the middle of a step; and what the commands check and fault find.
. tests/support/shell.sh
here="$PWD"
weir="$here/cli/weir"
rank_program="$here/tests/patterns/buckets_rank"
cd "$TEST_TMPDIR"
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
export WEIR_MODULE_PATH="$here/lib/weir" WEIR_COMM_TIMEOUT=100 POCL_DEVICES=pthread
ulimit -c 0

for backend in null opencl; do
    export WEIR_BACKEND=$backend
    for ranks in 2 4; do
        expect_status 0 "$weir" launch -n "$ranks" "$rank_program" 20
        for ((rank = 0; rank < ranks; rank++)); do
            expect_contains "$output" "rank $rank of $ranks: $((10 * (ranks + 1)))"
        done
    done
done
export WEIR_BACKEND=null

# Sizes are measured on a link on which a reduction is slow for some ranks and not for others: all of them
# leave out the same ones.
for seed in 1 2 3; do
    expect_status 0 env WEIR_PLUGINS=fault WEIR_FAULT_FAULT=slow WEIR_FAULT_ONE_IN=2 WEIR_FAULT_SEED=$seed \
        WEIR_FAULT_KINDS=collective WEIR_FAULT_QUEUE=grads/comm WEIR_FAULT_DELAY_MS=49 \
        "$weir" launch -n 3 "$rank_program" 2 0 auto
    for rank in 0 1 2; do
        expect_contains "$output" "rank $rank of 3: 4"
    done
done

expect_status 0 "$here/tests/patterns/buckets_example"
expect_contains "$output" "rank 0 of 1: 2"
expect_status 0 "$weir" launch -n 2 "$here/tests/patterns/buckets_example"
expect_contains "$output" "rank 0 of 2: 3"
expect_contains "$output" "rank 1 of 2: 3"

# Each operation of the page's program fails once, and each time it tells why.
expect_status 0 "$weir" fault --every 1 "$here/tests/patterns/buckets_example"
[[ "$output" =~ ([0-9]+)\ runs\ with\ a\ fault:\ ([0-9]+)\ told\ the\ cause ]] || fail "it printed: $output"
[ "${BASH_REMATCH[1]}" -ge 50 ] && [ "${BASH_REMATCH[1]}" -eq "${BASH_REMATCH[2]}" ] || fail "it printed: $output"

# A step whose gradients are written while those of the step before may still be reduced.
expect_status 0 "$weir" check "$rank_program" 4
expect_contains "$output" "nothing was found"
expect_status 1 "$weir" check "$rank_program" 4 0 racy
expect_contains "$output" "patterns/buckets_step.c:"
expect_contains "$output" "buckets_rank.c:"

# A rank is killed: each of the others names it.
export WEIR_COMM_COUNT=3 WEIR_COMM_RENDEZVOUS="file:$TEST_TMPDIR/meeting"
pids=()
for rank in 0 1 2; do
    WEIR_COMM_RANK=$rank "$rank_program" 20 7 >"rank$rank" 2>&1 &
    pids[rank]=$!
done
for rank in 0 1 2; do
    status=0
    wait "${pids[rank]}" || status=$?
    [ "$rank" -eq 1 ] || [ "$status" -eq 3 ] || fail "rank $rank ended with $status: $(cat "rank$rank")"
done
for rank in 0 2; do
    output="$(cat "rank$rank")"
    expect_contains "$output" "rank 1"
    expect_contains "$output" "of 'ranks'"
done
