#!/bin/bash
# The sanitizers of this configuration report the defects of broken.c.

. tests/support/shell.sh

readonly program="$PWD/tests/support/broken"

# Elsewhere on purpose: the suppression file must be found from any folder.
cd "$TEST_TMPDIR"
expect_status 0 "$program" sanitizers
sanitizers="$output"
echo "built with: ${sanitizers:-none}"

# expect_found SANITIZER DEFECT TEXT: the defect ends the program exactly where
# that sanitizer is built in, and the report holds the text.
expect_found()
{
    local status=0
    output="$("$program" "$2" 2>&1)" || status=$?
    if [[ "$sanitizers" == *"$1"* ]]; then
        [ "$status" -ne 0 ] || fail "the $1 sanitizer did not report: $2"
        expect_contains "$output" "$3"
    elif [ -z "$sanitizers" ]; then
        [ "$status" -eq 0 ] || fail "$2 ended with $status without a sanitizer: $output"
    fi
}

expect_found address overflow 'heap-buffer-overflow'
expect_found address leak 'LeakSanitizer: detected memory leaks'
expect_found undefined undefined 'signed integer overflow'
expect_found thread race 'data race'
