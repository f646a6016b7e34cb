#!/bin/bash
# weir launch: the ranks' variables, their output, how they end, and what cannot be launched.
. tests/cli/cli.sh
ulimit -c 0

# is_gone PID
is_gone()
{
    ! kill -0 "$1" 2>/dev/null
}

# start COMMAND...: in the background, as $pid, with its output in the files `out` and `err`. Job
# control gives it the signals' default actions, which the shell else ignores.
start()
{
    rm -f out err
    set -m
    "$program" launch "$@" >out 2>err &
    pid=$!
    set +m
}

# Variables, prefixes, arguments, input.
expect_quiet 0 "$weir" launch -n 3 sh -c 'echo "$RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR"'
[ "$(sort <<<"$output")" = "[0] 0 0 3 3 127.0.0.1
[1] 1 1 3 3 127.0.0.1
[2] 2 2 3 3 127.0.0.1" ] || fail "the ranks printed: $output"
expect_data 0 "$weir" launch -n 1 sh -c 'test "$MASTER_PORT" -ge 1024 && echo "$0 $1 $2" && ! read line' a --n '-b c' <<<"a line"
[ "$output" = "[0] a --n -b c" ] || fail "the rank printed: $output"
expect_data 0 "$weir" launch -n2 --port 4567 --no-prefix -- sh -c 'echo "port $MASTER_PORT"; echo there >&2'
[ "$output" = $'port 4567\nport 4567' ] || fail "the ranks printed: $output"
[ "$messages" = $'there\nthere' ] || fail "the ranks printed to standard error: $messages"
expect_data 0 "$weir" launch -n 12 sh -c 'echo $RANK; echo line >&2'
[ "$(sort <<<"$output" | head -1)" = "[ 0] 0" ] || fail "the ranks printed: $output"
[ "$(sort <<<"$messages" | tail -1)" = "[11] line" ] || fail "the ranks printed to standard error: $messages"
expect_data 0 "$weir" launch -n 102 sh -c 'test $RANK -lt 101 || echo $RANK'
[ "$output" = "[101] 101" ] || fail "the ranks printed: $output"

# Lines are whole: of many ranks on one pipe, without a newline at the end, and longer than a pipe holds.
cat >lines.py <<'TEXT'
import os
import sys
rank = int(os.environ["RANK"])
for i in range(2000):
    stream = sys.stdout if i % 2 else sys.stderr
    print(str(rank) * (i % 200 + (9000 if i % 500 == 0 else 1)), file=stream, flush=i % 7 == 0)
print("end" * 50000, end="")
TEXT
expect_status 0 "$program" launch -n 3 python3 lines.py
printf '%s' "$output" >mixed
python3 - <<'TEXT' || fail "lines are mixed"
import re
lines = open("mixed").read().split("\n")
counts = [0, 0, 0]
ends = ["", "", ""]
for line in lines:
    rank, text = re.fullmatch(r"\[([012])\] (.*)", line).groups()
    if text.startswith(("e", "n", "d")):
        ends[int(rank)] += text
        continue
    assert text and text == rank * len(text), line
    counts[int(rank)] += 1
assert counts == [2000] * 3, counts
assert ends == ["end" * 50000] * 3
assert max(map(len, lines)) == 65536 + 4
TEXT

# What a terminal would act on is spelt out, and a line of progress is a line.
expect_data 0 "$weir" launch -n 1 printf '1 %%\r2 %%\r\na\tb\033[2J\177\302\233c\302\251\r\n\r\n\nend\r'
[ "$output" = "[0] 1 %
[0] 2 %
[0] a	b\x1b[2J\x7f\x9bc©
[0] 
[0] 
[0] end" ] || fail "the rank printed: $output"

# A variable of another job's does not come before the ranks' own.
WEIR_COMM_RANK=7 WEIR_COMM_COUNT=9 expect_data 0 "$weir" launch -n 1 sh -c 'echo "${WEIR_COMM_RANK-none} ${WEIR_COMM_COUNT-none}"'
[ "$output" = "[0] none none" ] || fail "the rank has the variables $output"

# The first that fails: its status, a sentence, and the end of the others and of what they started.
cat >third.sh <<'TEXT'
echo $$ >"pid.$RANK"
test "$RANK" = 2 || { sleep 1000 & echo $! >"child.$RANK"; echo >"ready.$RANK"; wait; }
until test -e ready.0 && test -e ready.1; do sleep 0.01; done
echo why >&2
exit 7
TEXT
rm -f ready.*
expect_data 7 "$weir" launch -n 3 sh third.sh
[ "$messages" = "[2] why
weir: rank 2 of 3 (process $(cat pid.2)) ended with 7; 2 other ranks got SIGTERM" ] || fail "it said: $messages"
for rank in 0 1; do
    expect_soon is_gone "$(cat "child.$rank")"
done
expect_message 139 "rank 0 of 1 (process " "$weir" launch -n 1 sh -c 'kill -s SEGV $$'
expect_contains "$messages" ") was ended by signal 11 (SIGSEGV)"

# The others of a rank that SIGKILL ends hear of it from their connections, and may end before it is told: the fault
# is that rank's nevertheless. Here its end comes later, at the signal that the others' failure brings.
cat >later.sh <<'TEXT'
test "$RANK" = 0 || { until test -e ready.0; do sleep 0.01; done; exit 1; }
trap 'kill -s KILL $$' TERM
echo >ready.0
while :; do sleep 0.1; done
TEXT
rm -f ready.*
expect_message 137 "weir: rank 0 of 2 (process " "$weir" launch -n 2 sh later.sh
expect_contains "$messages" ") was ended by signal 9 (SIGKILL)"
expect_not_contains "$messages" "SIGTERM"

# One that ignores SIGTERM, and one that is stopped, are killed.
cat >stubborn.sh <<'TEXT'
case "$RANK" in
0) trap '' TERM; echo >ready.0; while :; do sleep 0.1; done ;;
1) echo $$ >ready.1; kill -s STOP $$; exit 9 ;;
*)
    until test -e ready.0 && test -s ready.1; do sleep 0.01; done
    state=
    until [ "$state" = T ]; do read -r _ _ state _ <"/proc/$(cat ready.1)/stat"; done
    exit 3
    ;;
esac
TEXT
rm -f ready.*
expect_message 3 "ended with 3; 2 other ranks got SIGTERM, of which 2 were killed after 1 s" "$weir" launch -n 3 --grace 1 sh stubborn.sh
rm -f ready.*
expect_json 3 'data["first_failed"] == 2 and data["interrupted"] is None and data["seconds"] > 0' "$weir" launch -n 3 --grace 0 --json sh stubborn.sh
as_json '[r["signal"] for r in data["ranks"]] == [9, 9, None] and data["ranks"][2]["exit"] == 3'
as_json '[r["stopped"] for r in data["ranks"]] == [True, True, False]'
as_json '[r["killed"] for r in data["ranks"]] == [True, True, False]'

# JSON is alone on standard output.
expect_data 0 "$weir" launch -n 2 --json sh -c 'echo out; echo err >&2'
as_json 'data["first_failed"] is None and [r["exit"] for r in data["ranks"]] == [0, 0]'
[ "$(sort <<<"$messages")" = $'[0] err\n[0] out\n[1] err\n[1] out' ] || fail "standard error has: $messages"
expect_json 0 '[r["rank"] for r in data["ranks"]] == [0, 1]' "$weir" launch -n 2 --json --no-prefix echo out
[ "$messages" = $'out\nout' ] || fail "standard error has: $messages"

# What a rank leaves when it ends is killed; what has left its group does not keep the command, even if
# it prints for ever.
expect_data 0 "$weir" launch -n 1 sh -c 'sleep 1000 & echo $!'
expect_soon is_gone "${output#\[0\] }"
for left in "sleep 1000" yes; do
    rm -f free
    start -n 1 sh -c "setsid sh -c 'echo \$\$ >free; exec $left' & until test -s free; do sleep 0.01; done"
    expect_end 0 out err
    kill -s KILL "$(cat free)" 2>/dev/null || true # the output that it prints to is closed
done

# Signals are passed on.
start -n 2 sh -c 'trap "echo got; exit 0" USR1; echo ready; while :; do sleep 0.05; done'
expect_soon has out 2 ready
kill -s USR1 "$pid"
expect_end 0 out err
[ "$(sort out | head -1)" = "[0] got" ] || fail "the ranks printed: $(cat out)"
for signal in TERM:143 INT:130 HUP:129 QUIT:131; do
    name="${signal%:*}"
    start -n 2 sh -c "trap 'echo bye; exit 5' $name; echo ready; while :; do sleep 0.05; done"
    expect_soon has out 2 ready
    kill -s "$name" "$pid"
    expect_end "${signal#*:}" out err
    [ "$(grep -c bye out)" -eq 2 ] || fail "the ranks printed: $(cat out)"
    expect_contains "$(cat err)" "weir: interrupted by signal $((${signal#*:} - 128)) ("
    expect_contains "$(cat err)" "): 2 ranks got it"
done
start -n 2 --json --grace 1 sh -c 'trap "" TERM; echo ready >&2; while :; do sleep 0.05; done'
expect_soon has err 2 ready
kill -s TERM "$pid"
expect_end 143 out err
output="$(cat out)"
as_json 'data["interrupted"] == 15 and data["first_failed"] is None'
expect_contains "$(cat err)" "2 ranks got it, of which 2 were killed after 1 s"

# A second interrupt does not wait: for ranks, nor for a reader of standard output that does not read, which does not
# delay what another rank prints on standard error.
start -n 2 --grace 1000 sh -c 'trap "echo got" INT; echo ready; while :; do sleep 0.05; done'
expect_soon has out 2 ready
kill -s INT "$pid"
expect_soon has out 2 got
kill -s INT "$pid"
expect_end 130 out err
expect_contains "$(cat err)" "2 ranks got it, of which 2 were killed"
expect_not_contains "$(cat err)" "1000 s"
mkfifo unread
exec 9<>unread
rm -f pid.0
set -m
"$program" launch -n 3 sh -c 'echo $$ >pid.$RANK
test $RANK = 2 || exec yes
until test -e stuck; do sleep 0.01; done
echo told >&2
exec sleep 1000' >unread 2>err &
pid=$!
set +m
# Both pipes, of the rank and of the command, are full: it waits for the reader.
is_stuck()
{
    local before
    before="$(sed -n 's/^wchar: //p' "/proc/$1/io")"
    sleep 0.2
    [ "$before" -gt 65536 ] && [ "$before" = "$(sed -n 's/^wchar: //p' "/proc/$1/io")" ]
}
is_state()
{
    [ "$(sed 's/.*) //; s/ .*//' "/proc/$1/stat")" = "$2" ]
}
expect_soon test -s pid.0
expect_soon is_stuck "$(cat pid.0)"
echo >stuck
expect_soon grep -qxF '[2] told' err
kill -s TERM "$pid"
expect_soon is_state "$(cat pid.0)" Z
kill -s TERM "$pid"
expect_end 143 out err
exec 9>&-

# Stopped and continued with the ranks, which end with a launch that is killed.
rm -f pid.0
start -n 1 sh -c 'sleep 1000 & echo $! >child.0; echo $$ >pid.0; wait'
expect_soon test -s pid.0
kill -s TSTP "$pid"
expect_soon is_state "$(cat pid.0)" T
expect_soon is_state "$pid" T
kill -s CONT "$pid"
expect_soon is_state "$(cat pid.0)" S
kill -s KILL "$pid"
expect_end 137 out err
expect_soon is_gone "$(cat pid.0)"
kill -s KILL "$(cat child.0)"

# A signal that is ignored stays so.
rm -f out
(trap '' HUP && exec "$program" launch -n 1 sh -c 'echo ready; exec sleep 1000') >out 2>err &
pid=$!
expect_soon has out 1 ready
kill -s HUP "$pid"
kill -s TERM "$pid"
expect_end 143 out err

# Output that cannot be written.
expect_full "$program" launch -n 2 yes
expect_contains "$(cat messages)" "standard output cannot be written: No space left on device; the ranks are ended"
{ "$program" launch -n 2 yes 2>err || echo $? >status; } | head -1 >/dev/null
[ "$(cat status)" -eq 1 ] || fail "with a closed standard output it ended with $(cat status)"
expect_contains "$(cat err)" "standard output cannot be written: Broken pipe"
"$program" launch -n 1 sh -c 'echo lost >&2; echo kept' >out 2>/dev/full || fail "standard error is full"
[ "$(cat out)" = "[0] kept" ] || fail "standard output has: $(cat out)"

# What cannot be launched.
expect_data 127 "$weir" launch -n 3 ./no-such-program
[ "$messages" = "weir: ./no-such-program cannot be run: No such file or directory" ] || fail "it said: $messages"
expect_data 126 "$weir" launch -n 3 /
[ "$messages" = "weir: / cannot be run: Permission denied" ] || fail "it said: $messages"
expect_data 3 bash -c "ulimit -n 24; exec '$program' launch -n 100 sleep 1000"
expect_contains "$messages" "of 100 cannot be started: Too many open files; start fewer, or raise the limit on open files (ulimit -n)"
if [ -z "${ASAN_OPTIONS-}${TSAN_OPTIONS-}" ]; then
    # The loader of programs needs one descriptor, and the sanitizers more.
    expect_data 3 bash -c "exec 3>&- 4>&- 0>&-; ulimit -n 3; exec '$program' launch -n 1 true"
    expect_contains "$messages" "no free port at 127.0.0.1 was found: Too many open files; name one with --port"
    expect_data 3 bash -c "exec 3>&- 4>&-; ulimit -n 4; exec '$program' launch -n 1 true"
    expect_contains "$messages" "a pipe cannot be made: Too many open files"
    # A stack of a thread has no room.
    expect_data 3 bash -c "ulimit -s 900000 -v 600000; exec '$program' launch -n 2 sleep 1000"
    [ "$(grep -c "there is no thread for the output of the ranks: " <<<"$messages")" -eq 1 ] || fail "it said: $messages"
    expect_message 1 "no memory for " bash -c "ulimit -v 120000; exec '$program' launch -n 1024 true"
fi

# Wrong command lines.
expect_message 2 "weir launch needs a command: weir launch PROGRAM [ARGUMENT]..." "$weir" launch -n 4
expect_message 2 "weir launch needs a number of ranks: weir launch -n 4 true" "$weir" launch true
expect_message 2 "-n takes a whole number from 1 to 1024, not '0'" "$weir" launch -n 0 true
