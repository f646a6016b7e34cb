#!/usr/bin/env bash
# The README's first program runs and prints the right number, and so does the one with
# its kernel as text.
. tests/support/shell.sh
export WEIR_MODULE_PATH=lib/weir WEIR_CONFIG=conf/opencl.ini
output=$(docs/first/first) || fail "docs/first/first failed: $output"
[ "$output" = "1000 * 2 = 2000" ] || fail "it printed '$output'"
output=$(docs/first/first_cpp) || fail "docs/first/first_cpp failed: $output"
[ "$output" = "1000 * 2 = 2000" ] || fail "it printed '$output'"
output=$(docs/first/overlap) || fail "docs/first/overlap failed: $output"
expect_contains "$output" "8 pieces, the sum is 1048576, timed"
expect_contains "$output" "thrown: the program has no kernel 'scael'; did you mean 'scale'? (docs/first/overlap.cc:"
output=$(docs/first/outside) || fail "docs/first/outside failed: $output"
[[ "$output" == "1000 * 2 = 2000 on "?* ]] || fail "it printed '$output'"
