#!/bin/bash
# weir fault: a program with a fault, and a walk through all its operations.
. tests/cli/cli.sh
export WEIR_BACKEND=null WEIR_MODULE_PATH="$here/lib/weir"
faulty="$here/tests/cli/faulty"
export TMPDIR="$TEST_TMPDIR/temporary"
mkdir "$TMPDIR"

# One run, with the program's exit status and its output.
expect_message 3 "the plugin fault injected a refusal (number 1, copy)" "$weir" fault --at 1 "$faulty" told
expect_contains "$messages" "\`weir fault --fault refuse --at 1 PROGRAM\` repeats it"
expect_contains "$messages" "weir: operation 1 got the fault 'refuse': copy 'memory' on 'work' at faulty.c:"
expect_data 3 "$weir" fault --quiet --fault fail --at 1 --kinds copy --queue work --label memory "$faulty" told
expect_contains "$messages" "a failure by a host call (number 1, copy)"
expect_contains "$messages" "--fault fail --kinds 'copy' --queue 'work' --label 'memory' --at 1"
expect_not_contains "$messages" "got the fault"
expect_message 3 "got the fault 'memory': new-buffer 'memory'" "$weir" fault --fault memory --at 4 "$faulty" told
expect_message 3 "operation 1 got" "$weir" fault --one-in 1 --seed 9 "$faulty" told
expect_data 0 "$weir" fault --fault slow --delay-ms 20 --at 1 "$faulty" told
[ "$output" = "done" ] || fail "the program printed '$output'"
expect_data 134 "$weir" fault --at 1 "$faulty" crash
expect_message 137 "was killed after 1 s" "$weir" fault --at 1 --limit 1 "$faulty" hang
expect_message 1 "no operation of $faulty got a fault" "$weir" fault --at 100 "$faulty" told
expect_data 5 "$weir" fault --at 100 "$faulty" fail
expect_message 1 "no operation of true got a fault" "$weir" fault --at 1 true
expect_message 127 "./no-such-program cannot be run" "$weir" fault --at 1 ./no-such-program
expect_message 4 "'lunch' is nothing to which 'refuse' can happen" "$weir" fault --at 1 --kinds lunch "$faulty" told
expect_contains "$messages" "copy, fill, launch"

# The walk. The program has 2 operations that can be refused, 1 that can fail, and 4 creations.
expect_data 0 "$weir" fault --every 1 "$faulty" told
[ "$output" = "7 operations, 7 runs with a fault: 7 told the cause" ] || fail "it printed: $output"
[ -z "$messages" ] || fail "it wrote to standard error: $messages"
expect_output 0 "exit 3: told" "$weir" fault --every 1 --all -- "$faulty" told
[ "$(grep -c "exit 3: told" <<<"$output")" -eq 7 ] || fail "not seven rows: $output"
expect_output 0 "2 operations, 1 run with a fault: 1 told the cause" "$weir" fault --every 2 --fault refuse "$faulty" told
expect_output 0 "1 ended well" "$weir" fault --every 1 --fault slow --delay-ms 1 "$faulty" told
expect_output 0 "1 operation, 1 run with a fault: 1 told the cause" "$weir" fault --every 1 --fault lose --kinds record "$faulty" told

expect_output 1 "7 failed without telling the cause" "$weir" fault --every 1 "$faulty" silent
expect_contains "$output" "exit 3: no cause told  something is wrong"
expect_contains "$output" "again: weir fault --fault refuse --at 1 $faulty silent"
expect_data 1 "$weir" fault --every 1 sh -c "exec '$faulty' silent"
expect_message 3 "something is wrong" env PATH="${weir%/*}:$PATH" sh -c "${output##*again: }"
expect_output 1 "7 ended with 0 as if nothing had happened" "$weir" fault --every 1 "$faulty" ignore
expect_contains "$output" "exit 0: unnoticed  done"
expect_output 1 "7 crashed" "$weir" fault --every 1 "$faulty" crash
expect_contains "$output" "crash: signal 6 (SIGABRT)"
expect_output 1 "2 hung" "$weir" fault --every 1 --limit 1 --fault refuse "$faulty" hang
expect_contains "$output" "hang: killed"

# A program that goes on after an error.
expect_output 1 "3 ended with 0 as if nothing had happened" "$weir" fault --every 1 --fault refuse,fail "$faulty" retry
expect_output 0 "3 ended well" "$weir" fault --every 1 --fault refuse,fail --recovers "$faulty" retry
expect_output 0 "4 ended well" "$weir" fault --every 1 --fault memory --recovers "$faulty" stop

# As JSON, with all runs.
expect_data 1 "$weir" fault --every 1 --json --fault refuse,memory "$faulty" ignore
printf '%s' "$output" | python3 -c '
import json, sys
data = json.load(sys.stdin)
runs = data["runs"]
assert (data["operations"], data["findings"], len(runs)) == (6, 6, 6), data
assert [r["number"] for r in runs] == [1, 2, 1, 2, 3, 4], runs
assert [r["kind"] for r in runs][:3] == ["copy", "record", "new-device"], runs
copy = runs[0]
assert copy["queue"] == "work" and copy["label"] == "memory" and copy["line"] > 0, copy
assert copy["file"].endswith("faulty.c") and copy["fault"] == "refuse", copy
assert all(r["outcome"] == "unnoticed" and r["exit"] == 0 and r["finding"] for r in runs), runs
assert copy["last_line"] == "done", copy
'

# What it cannot work with.
expect_message 1 "ends with 5 without any fault" "$weir" fault --every 1 "$faulty" fail
expect_contains "$messages" "its last line: it never works"
expect_message 1 "true has no operation for a fault" "$weir" fault --every 1 true
expect_message 1 "has no operation for a fault" "$weir" fault --every 1 --fault garbage "$faulty" told
expect_message 1 "./no-such-program cannot be run" "$weir" fault --every 1 ./no-such-program
expect_message 2 "weir fault needs one of --at, --one-in and --every" "$weir" fault "$faulty"
expect_data 2 "$weir" fault --at 1 --every 1 "$faulty"
expect_message 2 "--recovers, --all and --json need --every" "$weir" fault --at 1 --json "$faulty"
expect_message 2 "--fault takes one kind without --every" "$weir" fault --at 1 --fault refuse,fail "$faulty"
expect_message 2 "--kinds needs one kind of --fault" "$weir" fault --every 1 --kinds copy "$faulty"
expect_message 2 "not 'refues'; did you mean refuse?" "$weir" fault --every 1 --fault refues "$faulty"
expect_message 2 "takes refuse, fail, slow, lose, memory or garbage" "$weir" fault --every 1 --fault explode "$faulty"
expect_data 2 "$weir" fault --every 1 --fault "" "$faulty"
expect_message 2 "take one line" "$weir" fault --at 1 --label $'a\nb' "$faulty"
expect_data 2 "$weir" fault --at none "$faulty"
expect_message 3 "set TMPDIR to another one" env TMPDIR=/nowhere "$weir" fault --at 1 "$faulty"

# A signal ends the walk; what it found until then is printed.
"$program" fault --every 1 --all "$faulty" late >walk.out 2>walk.messages &
pid=$!
sleep 1
kill -TERM "$pid"
expect_end 143 walk.out walk.messages
expect_contains "$(cat walk.out)" " with a fault"
[ -z "$(find "$TMPDIR" -type f)" ] || fail "there is: $(find "$TMPDIR")"

# The examples of docs/fault.md, as they are now.
expect_data 0 "$weir" fault --every 1 --recovers "$here/tests/patterns/loader_example"
expect_not_contains "$output" "no cause"
expect_data 1 "$weir" fault --every 1 --json "$here/tests/patterns/pipeline_example"
printf '%s' "$output" | python3 -c '
import json, sys
left = [r for r in json.load(sys.stdin)["runs"] if r["finding"]]
assert {r["outcome"] for r in left} == {"unnoticed"}, left
assert {(r["kind"], r["fault"]) for r in left} == {("record", "refuse")} and len(left) == 3, left
'
