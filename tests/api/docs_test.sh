#!/bin/bash
# The programs in docs/collectives.md, docs/cooperative.md, docs/graphs.md, docs/pools.md and docs/migration.md are those that are built and run.
. tests/support/shell.sh

for page in collectives cooperative graphs pools migration; do
    sed -n '/^```c whole$/,/^```$/{/^```/d;p}' "docs/$page.md" >"$TEST_TMPDIR/page.c"
    [ -s "$TEST_TMPDIR/page.c" ] || fail "docs/$page.md has no program"
    expect_status 0 diff "$TEST_TMPDIR/page.c" "tests/api/${page}_example.c"
done
