#!/bin/bash
# Mistake 24: a status that is dropped. The compiler warns, in C and in C++, also after (void), and not of
# WEIR_IGNORE(); of functions, of their macros and of the short forms.
. tests/support/shell.sh

compile() # compiler options... <program
{
    "$@" -Wall -Wextra -Wpedantic -Werror -Iapi -O0 -c -o "$TEST_TMPDIR/object" - 2>"$TEST_TMPDIR/said"
}

# A program that makes the call.
program()
{
    cat <<TEXT
#include <weir/short.h>
#include <weir/weir.h>
void use(weir_queue *queue, weir_kernel *kernel, weir_comm *comm);
void use(weir_queue *queue, weir_kernel *kernel, weir_comm *comm)
{
    (void)kernel;
    (void)comm;
    $1;
}
TEXT
}

try()
{
    local call
    for call in 'weir_queue_sync(queue, WEIR_MS(5))' 'weir_queue_sync_at(queue, 5, "a.c", 1)' \
        'weir_queue_launch(queue, kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1), 2.0f)' \
        'weir_queue_barrier(queue, comm)' 'weir_queue_after(queue, queue)'; do
        if program "$call" | compile "$@"; then
            fail "$1 does not warn of: $call;"
        fi
        grep -q 'unused' "$TEST_TMPDIR/said" || fail "$1 says of $call: $(cat "$TEST_TMPDIR/said")"
        program "WEIR_IGNORE($call)" | compile "$@" || fail "$1 refuses WEIR_IGNORE($call): $(cat "$TEST_TMPDIR/said")"
    done
    [[ $1 == clang* ]] && return # it lets (void) pass
    if program '(void)weir_queue_sync(queue, 5)' | compile "$@"; then
        fail "$1 does not warn of (void)"
    fi
}

for compiler in gcc clang; do
    command -v "$compiler" >/dev/null || { echo "SKIPPED: $compiler is not installed"; continue; }
    try "$compiler" -std=c11 -x c
    try "$compiler" -std=c++17 -x c++
done
