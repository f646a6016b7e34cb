#!/bin/bash
# Allocations of each command, and of a rank of three, fail one in turn: the command ends with a status of its
# own, and says something if that is not 0. Where there are many, some of them.
. tests/support/shell.sh

weir=$PWD/cli/weir
program=$PWD/tests/memory/program
allocator=$PWD/tests/memory/preloaded_allocator.so
export WEIR_MODULE_PATH=$PWD/lib/weir WEIR_BACKEND=null WEIR_PLUGINS='' WEIR_TRACE_FILE=/dev/null
export WEIR_COMM_TIMEOUT=5
image=$PWD/tests/data/images/coffee.png source=$PWD/docs/first/scale.cl
cd "$TEST_TMPDIR"

DEADLINE_S=60
bad=0

# with_allocator VARIABLE=VALUE... COMMAND...: runs it, and leaves its output in `output`.
with_allocator()
{
    timeout -k 5 "$DEADLINE_S" env LD_PRELOAD="$allocator" "$@" > output 2>&1 < /dev/null
}

# walk NAME TRIALS RANK COMMAND...: RANK is the one whose allocations fail; empty: the command's own.
walk()
{
    local name="$1" trials="$2" rank="$3" index total stride status ok=0 refused=0
    shift 3
    local only=()
    [ -z "$rank" ] || only=("WEIR_TEST_FAIL_RANK=$rank")
    rm -f count
    with_allocator "WEIR_TEST_ALLOCATION_COUNT=$PWD/count" "$@" || true
    total="$(cat count)"
    [ -z "$rank" ] || total="$RANK_ALLOCATIONS"
    stride=$((total / trials + 1))
    for ((index = 0; index < total; index += stride)); do
        status=0
        with_allocator "WEIR_TEST_FAIL_ALLOCATION=$index" "${only[@]}" "$@" || status=$?
        if [ "$status" -ge 124 ]; then
            bad=$((bad + 1))
            printf '%s: with allocation %s failing it ended with %s:\n' "$name" "$index" "$status"
            tail -n 3 output
        elif [ "$status" -eq 0 ]; then
            ok=$((ok + 1))
        else
            refused=$((refused + 1))
            [ -s output ] || fail "$name: with allocation $index failing it said nothing"
        fi
    done
    printf '%s: %s allocations, one in %s failed: %s without an error, %s with one\n' "$name" \
        "$total" "$stride" "$ok" "$refused"
}

walk doctor 20 '' "$weir" doctor
walk devices 20 '' "$weir" devices
walk check 20 '' "$weir" check "$program"
walk perturb 10 '' "$weir" perturb --seeds 2 "$program"
walk fault 10 '' "$weir" fault --one-in 5 "$program"
walk sim 10 '' "$weir" sim --gpu h200 "$program"
walk launch 10 '' "$weir" launch -n 3 "$program"
walk completion 10 '' "$weir" completion bash
walk bench 20 '' "$weir" bench submit --turns 1 --operations 5
walk conform 10 '' "$weir" conform --filter 'Copy.*'
walk train 60 '' "$weir" train ddp --side 8 --hidden 1 --width 16 --batch 8 --steps 2
walk run 20 '' "$weir" run arr-coc --output results "$image"
walk kernels 8 '' "$weir" kernels check "$source"
WEIR_PLUGINS=trace WEIR_TRACE_FILE=run.json "$program"
walk 'trace report' 20 '' "$weir" trace report run.json
walk 'trace diff' 10 '' "$weir" trace diff run.json run.json
walk program 60 '' "$program"
RANK_ALLOCATIONS=100
walk 'rank 0 of three' 20 0 "$weir" launch -n 3 "$program"
walk 'rank 2 of three' 20 2 "$weir" launch -n 3 "$program"
[ "$bad" -eq 0 ] || fail "$bad trials ended by a signal or a deadline"
