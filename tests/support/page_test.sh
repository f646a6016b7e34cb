#!/bin/bash
# page_test.sh PAGE[=PROGRAM]...: the program that the page shows in full is PROGRAM, and its parts are parts of the
# files that they name, which are built and run. With a PROGRAM the page shows it, in full or in parts.
. tests/support/shell.sh

python3 - "$@" <<'PYTHON' || fail "a page shows what is not built"
import re
import sys

wrong = False
for page, _, program in (word.partition("=") for word in sys.argv[1:]):
    text = open(page).read()
    whole = re.findall(r"^```c whole\n(.*?)^```$", text, re.S | re.M)
    parts = re.findall(r"^```\w+ part (\S+)\n(.*?)^```$", text, re.S | re.M)
    missing = [(program, each) for each in whole if each != open(program).read()]
    missing += [(path, part) for path, part in parts if part not in open(path).read()]
    for path, each in missing:
        print("%s shows what is not in %s:\n%s" % (page, path, each))
    wrong = wrong or missing or not whole + [path for path, _ in parts if program in ("", path)]
sys.exit(bool(wrong))
PYTHON
