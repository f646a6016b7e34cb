#!/usr/bin/env bash
# Nothing in the tree says "behind" for an order in time: "after", "before" and "waits for" do.
# A place is allowed if it is listed below, with its reason. The tree is the one that contains
# README.md.
. tests/support/shell.sh

python3 - "$(dirname "$(readlink -f README.md)")" <<'PYTHON' || fail "the word is not for an order in time"
import os
import re
import sys

os.chdir(sys.argv[1])
ALLOWED = {
    "docs/words_test.sh": "names the word",
}
KINDS = (".c", ".h", ".cc", ".cl", ".cu", ".py", ".sh", ".bzl", ".js", ".md", ".ini", ".in", "BUILD")
word = re.compile(r"\bbehind\b", re.I)
seen = 0
wrong = []
for folder, names, entries in os.walk("."):
    names[:] = [n for n in names if not n.startswith((".", "bazel-")) and n != "out"]
    for entry in entries:
        path = os.path.normpath(os.path.join(folder, entry))
        if not (entry.endswith(KINDS) or re.search(r"\.[1-9]$", entry)) or path in ALLOWED:
            continue
        seen += 1
        with open(path, encoding="utf-8", errors="replace") as file:
            wrong += ["%s:%d: %s" % (path, number, line.strip())
                      for number, line in enumerate(file, 1) if word.search(line)]
print("\n".join(wrong))
sys.exit(bool(wrong) or seen < 300)
PYTHON
