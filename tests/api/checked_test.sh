#!/bin/bash
# WEIR_CHECK and WEIR_TRY: what they print, and the exit status.
. tests/support/shell.sh

export WEIR_MODULE_PATH=lib/weir
checked=tests/api/checked
place='tests/api/checked\.c:[0-9]*'

# ends STATUS OUTPUT MESSAGE MODE: the program's ends, MESSAGE as a pattern of the whole line.
ends()
{
    local code=0
    "$checked" "$4" >"$TEST_TMPDIR/out" 2>"$TEST_TMPDIR/messages" || code=$?
    [ "$code" -eq "$1" ] || fail "$4: exit status $code"
    [ "$(cat "$TEST_TMPDIR/out")" = "$2" ] || fail "$4 printed: $(cat "$TEST_TMPDIR/out")"
    if [ -z "$3" ]; then
        [ ! -s "$TEST_TMPDIR/messages" ] || fail "$4 said: $(cat "$TEST_TMPDIR/messages")"
    else
        grep -qx "$3" "$TEST_TMPDIR/messages" || fail "$4 said: $(cat "$TEST_TMPDIR/messages")"
    fi
}

ends 0 done '' ''
ends 1 '' "$place: wait_for(queue, strcmp(mode, \"timeout\") != 0): WEIR_TIMEOUT: the timeout passed first" timeout
ends 0 'late
done' '' try
ends 1 '' "$place: weir_queue_copy(queue, buffer, 60, buffer, 0, 8): .*64 bytes.*" error
ends 1 '' "$place: own_error(): .*" own
