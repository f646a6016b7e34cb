#!/bin/bash
# The program in docs/trace.md is the one that is built, and it does what the page says.
. tests/support/shell.sh

sed -n '/^```c whole$/,/^```$/{/^```/d;p}' docs/trace.md >"$TEST_TMPDIR/page.c"
expect_status 0 diff "$TEST_TMPDIR/page.c" tests/report/example.c

export WEIR_MODULE_PATH="$PWD/lib/weir"
example="$PWD/tests/report/example"
cd "$TEST_TMPDIR"
for backend in opencl null; do
    rm -f trace.json
    WEIR_BACKEND="$backend" expect_status 0 "$example"
    expect_contains "$output" "holds: the number of dropped operations is 0"
    expect_contains "$output" "holds: the share of the span with queue:clear is"
    expect_contains "$output" "holds: the idle share of the span is"
    [ -s trace.json ] || fail "there is no trace.json"
done
