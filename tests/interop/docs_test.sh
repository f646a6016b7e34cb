#!/bin/bash
# The programs in docs/interop.md are those that are built and run, and its excerpts are excerpts of
# the tests that it names.
. tests/support/shell.sh

page=docs/interop.md
block()
{
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{/^\`\`\`/d;p}" "$page"
}
block 'c whole' >"$TEST_TMPDIR/page.c"
expect_status 0 diff "$TEST_TMPDIR/page.c" tests/interop/opencl_example.c
block 'c tensor' >"$TEST_TMPDIR/page.c"
expect_status 0 diff "$TEST_TMPDIR/page.c" tests/interop/tensor_example.c

python3 - "$page" <<'PYTHON' || fail "$page shows what is not there"
import re
import sys

page = open(sys.argv[1]).read()
parts = re.findall(r"^```\w+ part (\S+)\n(.*?)^```$", page, re.S | re.M)
missing = [(path, text) for path, text in parts if text not in open(path).read()]
for path, text in missing:
    print("not in %s:\n%s" % (path, text))
sys.exit(1 if missing or len(parts) < 5 else 0)
PYTHON
