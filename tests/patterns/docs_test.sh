#!/bin/bash
# docs_test.sh PAGE PROGRAM: the program that the page shows, in full or in parts, is the one that is built and run.
. tests/support/shell.sh

python3 - "$1" "$2" <<'PYTHON' || fail "$1 shows what is not in $2"
import re
import sys

page, program = open(sys.argv[1]).read(), open(sys.argv[2]).read()
whole = re.findall(r"^```c whole\n(.*?)^```$", page, re.S | re.M)
parts = re.findall(r"^```c part %s\n(.*?)^```$" % re.escape(sys.argv[2]), page, re.S | re.M)
sys.exit(not whole + parts or whole not in ([], [program]) or any(part not in program for part in parts))
PYTHON
