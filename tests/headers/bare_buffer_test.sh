#!/bin/bash
# What the compiler says to a weir_buffer * as an argument of a kernel names the functions to use.
. tests/support/shell.sh
command -v cc >/dev/null && command -v c++ >/dev/null || fail "install gcc and g++"

launch() { # $1: the argument
    cat <<SOURCE
#include <weir/weir.h>

weir_status run(weir_queue *queue, weir_kernel *kernel, weir_buffer *buffer, float *host);
weir_status run(weir_queue *queue, weir_kernel *kernel, weir_buffer *buffer, float *host)
{
    (void)buffer, (void)host;
    return weir_queue_launch(queue, kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1), $1, 2.0f);
}
SOURCE
}

# expect_said TEXT ARGUMENT COMMAND...: the compiler refuses the argument with the text.
expect_said() {
    local text="$1" argument="$2"
    shift 2
    ! "$@" -fsyntax-only -Iapi - <<<"$(launch "$argument")" 2>"$TEST_TMPDIR/said" ||
        fail "$1 takes $argument"
    grep -qF "$text" "$TEST_TMPDIR/said" || fail "$1 says: $(cat "$TEST_TMPDIR/said")"
}

c=(cc -std=c11 -x c)
cxx=(c++ -std=c++17 -x c++)
for language in c cxx; do
    declare -n compiler=$language
    "${compiler[@]}" -fsyntax-only -Iapi - <<<"$(launch "weir_whole_in(buffer)")" ||
        fail "${compiler[*]} refuses weir_whole_in()"
done
expect_said weir__pass_weir_in_or_weir_out buffer "${c[@]}"
expect_said "pass a buffer by weir_in(), weir_out() or weir_inout()" buffer "${cxx[@]}"
expect_said "kernels take no pointers to the host's memory" host "${cxx[@]}"
