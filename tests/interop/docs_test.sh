#!/bin/bash
# The excerpts in docs/interop.md are excerpts of the tests and programs that it names.
. tests/support/shell.sh

page=docs/interop.md

python3 - "$page" <<'PYTHON' || fail "$page shows what is not there"
import re
import sys

page = open(sys.argv[1]).read()
parts = re.findall(r"^```\w+ part (\S+)\n(.*?)^```$", page, re.S | re.M)
missing = [(path, text) for path, text in parts if text not in open(path).read()]
for path, text in missing:
    print("not in %s:\n%s" % (path, text))
sys.exit(1 if missing or len(parts) < 8 else 0)
PYTHON
