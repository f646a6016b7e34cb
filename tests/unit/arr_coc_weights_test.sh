#!/bin/bash
# The weights generator: the same bytes on every machine, and the usage for wrong arguments.

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
expect_status 0 "$generate" named.safetensors 1536
cmp named.safetensors "$built" || fail "the default is another size of the query"
expect_status 0 "$generate" small.safetensors 1
[ "$(stat -c %s small.safetensors)" -lt 100000 ] || fail "the size of the query was ignored"

expect_usage()
{
    expect_status 1 "$generate" "$@"
    expect_contains "$output" "usage: generate"
}

expect_usage
expect_usage x 0
expect_usage x 65537
expect_usage x 1 2
expect_status 1 "$generate" no/such/folder/x
expect_contains "$output" "no/such/folder/x"
[ ! -e x ] || fail "a refused run left a file"
