#!/bin/bash
# Gradient buckets of ranks in processes of their own: measured sizes, the page's program, and what the command fault
# finds.
. tests/support/shell.sh
here="$PWD"
weir="$here/cli/weir"
cd "$TEST_TMPDIR"
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
export WEIR_MODULE_PATH="$here/lib/weir" WEIR_COMM_TIMEOUT=100 WEIR_BACKEND=null

# Sizes are measured on a link on which a reduction is slow for some ranks and not for others: all of them
# leave out the same ones.
for seed in 1 2 3; do
    expect_status 0 env WEIR_PLUGINS=fault WEIR_FAULT_FAULT=slow WEIR_FAULT_ONE_IN=2 WEIR_FAULT_SEED=$seed \
        WEIR_FAULT_KINDS=collective WEIR_FAULT_QUEUE=gradients/comm WEIR_FAULT_DELAY_MS=49 \
        "$weir" launch -n 3 "$weir" train ddp --side 8 --hidden 1 --width 16 --batch 8 --steps 2 --buckets auto
done

expect_says 0 "rank 0 of 1: 2" "$here/tests/patterns/buckets_example"
expect_says 0 "rank 0 of 2: 3" "$weir" launch -n 2 "$here/tests/patterns/buckets_example"
expect_contains "$output" "rank 1 of 2: 3"

# Each operation of the page's program fails once, and each time it tells why.
expect_status 0 "$weir" fault --every 1 "$here/tests/patterns/buckets_example"
[[ "$output" =~ ([0-9]+)\ runs\ with\ a\ fault:\ ([0-9]+)\ told\ the\ cause ]] || fail "it printed: $output"
[ "${BASH_REMATCH[1]}" -ge 50 ] && [ "${BASH_REMATCH[1]}" -eq "${BASH_REMATCH[2]}" ] || fail "it printed: $output"
