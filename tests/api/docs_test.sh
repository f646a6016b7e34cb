#!/bin/bash
# The program in docs/collectives.md is the one that is built and run, and the parts in docs/cooperative.md, docs/graphs.md,
# docs/migration.md and docs/pools.md are parts of such programs.
. tests/support/shell.sh

sed -n '/^```c whole$/,/^```$/{/^```/d;p}' docs/collectives.md >"$TEST_TMPDIR/page.c"
[ -s "$TEST_TMPDIR/page.c" ] || fail "docs/collectives.md has no program"
expect_status 0 diff "$TEST_TMPDIR/page.c" tests/api/collectives_example.c

for page in cooperative graphs migration pools; do
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
