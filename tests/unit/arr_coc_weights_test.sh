#!/bin/bash
# The weights generator: the same bytes on every machine, and a message for every wrong argument.

. tests/support/shell.sh

generate="$PWD/pipelines/arr_coc/weights/generate"
built="$PWD/pipelines/arr_coc/weights/arr_coc_weights.safetensors"
cd "$TEST_TMPDIR"

digest()
{
    sha256sum "$1" | cut -d ' ' -f 1
}

# A change here changes all results with these weights.
[ "$(digest "$built")" = 021926dbff3398db541580795ef0aaf1e55c7069c1098ea72b8482e4ead52e8d ] ||
    fail "the default weights are $(digest "$built")"

expect_status 0 "$generate" again.safetensors
cmp again.safetensors "$built" || fail "two runs differ"
expect_status 0 "$generate" --query-size 1536 --seed 20240607 named.safetensors
cmp named.safetensors "$built" || fail "the defaults are not what the usage says"
expect_status 0 "$generate" --seed 1 other.safetensors
cmp -s other.safetensors "$built" && fail "another seed gave the same weights"
expect_status 0 "$generate" --query-size 1 small.safetensors
[ "$(stat -c %s small.safetensors)" -lt 100000 ] || fail "--query-size was ignored"

expect_refusal()
{
    local part="$1"
    shift
    expect_status 1 "$generate" "$@"
    expect_contains "$output" "$part"
}

expect_refusal "the file to write is missing"
expect_refusal "'second' was not expected" first second
expect_refusal "'--sed' was not expected" --sed 1 x
expect_refusal "--query-size takes a whole number from 1 to 65536, not '0'" --query-size 0 x
expect_refusal "not '65537'" --query-size 65537 x
expect_refusal "not '8x'" --query-size 8x x
expect_refusal "not ''" --query-size
expect_refusal "--seed takes" --seed -1 x
expect_refusal "--seed takes" --seed 18446744073709551616 x
expect_refusal "no/such/folder/x" no/such/folder/x
[ ! -e x ] && [ ! -e first ] || fail "a refused run left a file"

expect_status 0 "$generate" --help
expect_contains "$output" "--query-size"
