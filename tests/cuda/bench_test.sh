#!/bin/bash
# `weir bench` through the real backend code, on the fake libcuda: and the checked results. Times are not judged.

. tests/support/shell.sh
. tests/cli/bench.sh

export WEIR_BACKEND=cuda
export WEIR_MODULE_PATH=backends/cuda:backends/null
export LD_LIBRARY_PATH="$PWD/tests/support/libcuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
unset WEIR_CONFIG WEIR_PLUGINS
weir="$PWD/cli/weir"

# bench ARGUMENT...: $output is the JSON.
bench()
{
    local status=0
    output="$("$weir" bench "$@" --turns 2 --json 2>"$TEST_TMPDIR/messages")" || status=$?
    [ "$status" -eq 0 ] || fail "weir bench $* ended with $status: $(cat "$TEST_TMPDIR/messages")"
}

bench submit --operations 50 --plot "$TEST_TMPDIR/submit.svg"
report '
assert all(median(row["weir_ns"]) > 0 for row in tables["calls"]) and data["results_checked"] == 3
'
expect_plot "$TEST_TMPDIR/submit.svg" "Weir" "round_trip"

bench overlap --size 64K --kernel 2
report '
assert data["backend"] == "cuda" and data["results_checked"] == len(tables["ways"]) + 1
ways = {way["asked"]: way for way in tables["ways"]}
assert ways["auto"]["layout"] == "engine" and ways["auto"]["order"] == "interleaved", ways["auto"]
assert ways["auto"]["chunks"] == 1, ways["auto"]
'
bench pipeline --size 4K --frames 5 --slots 1,3
report 'assert len(tables["pipeline"]) == 6'
# A driver call that fails, early and late: a message, no figures, nothing leaked.
struck=0
for call in cuMemcpyHtoDAsync cuLaunchKernel cuEventRecord cuStreamCreateWithPriority cuMemHostAlloc; do
    for number in 1 4 40; do
        for arguments in "overlap --size 8K --kernel light --chunks 2" \
            "pipeline --size 4K --frames 3 --slots 2 --graphs off,on" \
            "submit --operations 10"; do
            status=0
            # shellcheck disable=SC2086
            WEIR_TEST_CUDA_FAIL="$call:$number" "$weir" bench $arguments --turns 1 \
                >"$TEST_TMPDIR/output" 2>"$TEST_TMPDIR/messages" || status=$?
            [ "$status" -ne 0 ] || continue # it makes fewer calls than that
            struck=$((struck + 1))
            what="weir bench $arguments with $call failing at call $number"
            [ "$status" -eq 1 ] || [ "$status" -eq 3 ] ||
                fail "$what ended with $status: $(cat "$TEST_TMPDIR/messages")"
            [ -s "$TEST_TMPDIR/messages" ] || fail "$what said nothing"
            [ ! -s "$TEST_TMPDIR/output" ] || fail "$what printed: $(cat "$TEST_TMPDIR/output")"
        done
    done
done
[ "$struck" -ge 20 ] || fail "only $struck of the failures struck"
