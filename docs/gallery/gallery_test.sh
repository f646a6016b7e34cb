#!/usr/bin/env bash
# The gallery's page shows parts of the files that are built, links to all of them and counts their lines, and the
# programs find their own results right on PoCL.
. tests/support/shell.sh
export WEIR_MODULE_PATH=lib/weir WEIR_BACKEND=opencl

python3 - docs/gallery.md docs/gallery <<'PYTHON' || fail "docs/gallery.md shows what is not built"
import glob
import re
import sys

page = open(sys.argv[1]).read()
parts = re.findall(r"^```\w+ part docs/gallery/(\S+)\n(.*?)^```$", page, re.S | re.M)
files = {path.split("/")[-1]: open(path).read() for path in glob.glob(sys.argv[2] + "/*.c*") if not path.endswith(".cuh")}
wrong = ["not in %s:\n%s" % part for part in parts if part[1] not in files.get(part[0], "")]
wrong += ["no link to " + name for name in files if "](gallery/%s)" % name not in page]


def lines(text):
    return sum(1 for line in map(str.strip, text.splitlines()) if line and not line.startswith("//"))


rows = re.findall(r"^\| \[(\w+)\]\(.*?\| (\d+) \| (\d+) \|$", page, re.M)
for name, cuda, ours in rows:
    counts = lines(files[name + ".cu"]), lines(files[name + ".c"]) + lines(files[name + ".cl"])
    if counts != (int(cuda), int(ours)):
        wrong.append("%s has %d and %d lines" % (name, *counts))
print("\n".join(wrong))
sys.exit(bool(wrong) or len(rows) < 3 or len(parts) < 2 * len(rows) or len(files) != 3 * len(rows))
PYTHON

for source in docs/gallery/*.cl; do
    program="${source%.cl}"
    [[ "$program" != */simple_p2p ]] || export POCL_DEVICES="pthread basic"
    output="$("$program")" || fail "$program ended with $?: $output"
    expect_contains "$output" " 0 wrong"
    unset POCL_DEVICES
done
