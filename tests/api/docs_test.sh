#!/bin/bash
# The programs in docs/collectives.md and docs/migration.md are those that are built and run, and the parts in docs/cooperative.md,
# docs/graphs.md and docs/pools.md are parts of such programs.
. tests/support/shell.sh

for page in collectives migration; do
    sed -n '/^```c whole$/,/^```$/{/^```/d;p}' "docs/$page.md" >"$TEST_TMPDIR/page.c"
    [ -s "$TEST_TMPDIR/page.c" ] || fail "docs/$page.md has no program"
    expect_status 0 diff "$TEST_TMPDIR/page.c" "tests/api/${page}_example.c"
done

for page in cooperative graphs pools; do
    python3 - "docs/$page.md" <<'PYTHON' || fail "docs/$page.md shows what is not built"
import re
import sys

parts = re.findall(r"^```c part (\S+)\n(.*?)^```$", open(sys.argv[1]).read(), re.S | re.M)
missing = [(path, text) for path, text in parts if text not in open(path).read()]
for path, text in missing:
    print("not in %s:\n%s" % (path, text))
sys.exit(bool(missing) or not parts)
PYTHON
done
