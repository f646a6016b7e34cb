#!/bin/bash
# The messages for common mistakes in docs/migration.md, docs/graphs.md and docs/pools.md are the
# ones that the library gives. Numbers, labels and places may differ.
. tests/support/shell.sh

export WEIR_MODULE_PATH=lib/weir WEIR_BACKEND=opencl POCL_DEVICES="pthread pthread"
tests/api/mistakes >"$TEST_TMPDIR/said" || fail "tests/api/mistakes failed: $(cat "$TEST_TMPDIR/said")"

python3 - "$TEST_TMPDIR/said" <<'PYTHON' || fail "the pages promise other sentences"
import re
import sys


def plain(text):
    text = re.sub(r" \['.*?'\]", "", text)  # the object, before the remedy
    text = re.sub(r"[\w./-]+\.c:\d+", "PLACE", text)
    return re.sub(r"\d+", "N", re.sub(r"'[\w-]*'", "LABEL", text))


said = plain(open(sys.argv[1]).read())
count = 0
missing = []
for page in ("migration", "graphs", "pools"):
    text = open("docs/%s.md" % page).read()
    table = text[text.index("## Common mistakes"):]
    for row in re.findall(r"^\| .* \| (.*) \|$", table[:table.index("\n## ")], re.M):
        for sentence in re.findall(r"`([^`]* [^`]*)`", row):
            count += 1
            if plain(sentence.split("…")[0].strip(" ,")) not in said:
                missing.append("docs/%s.md: %s" % (page, sentence))
for sentence in missing:
    print(sentence)
if missing:
    print("What was said:\n" + open(sys.argv[1]).read())
sys.exit(bool(missing) or count < 20)
PYTHON
