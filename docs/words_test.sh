#!/usr/bin/env bash
# Words that the tree does not use, each with what stands in its place. A file or folder is exempt if
# it is listed below, with its reason. The tree is the one that contains README.md.
. tests/support/shell.sh

python3 - "$(dirname "$(readlink -f README.md)")" <<'PYTHON' || fail "words that the tree does not use"
import os
import re
import sys

os.chdir(sys.argv[1])
ALLOWED = {
    "docs/words_test.sh": "names the words",
}
FORBIDDEN = {
    r"behind": "for an order in time: after, before, waits for",
    r"whoever|nobody|somebody|anybody|everybody": "a noun: the caller, another user, no thread",
    r"without memory": "if out of memory",
}
KINDS = (".c", ".h", ".cc", ".cl", ".cu", ".py", ".sh", ".bzl", ".js", ".md", ".ini", ".in", "BUILD")
words = [(re.compile(r"\b(%s)\b" % word, re.I), instead) for word, instead in FORBIDDEN.items()]
seen = 0
wrong = []
for folder, names, entries in os.walk("."):
    names[:] = [n for n in names if not n.startswith((".", "bazel-")) and n != "out"
                and os.path.normpath(os.path.join(folder, n)) not in ALLOWED]
    for entry in entries:
        path = os.path.normpath(os.path.join(folder, entry))
        if not (entry.endswith(KINDS) or re.search(r"\.[1-9]$", entry)) or path in ALLOWED:
            continue
        seen += 1
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                wrong += ["%s:%d: %s (%s)" % (path, number, line.strip(), instead)
                          for word, instead in words if word.search(line)]
print("\n".join(wrong))
sys.exit(bool(wrong) or seen < 300)
PYTHON
