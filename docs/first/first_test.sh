#!/usr/bin/env bash
# The README's first program runs and prints the right number.
. tests/support/shell.sh
output=$(WEIR_MODULE_PATH=lib/weir WEIR_CONFIG=conf/opencl.ini docs/first/first) || fail "docs/first/first failed: $output"
[ "$output" = "1000 * 2 = 2000" ] || fail "it printed '$output'"
