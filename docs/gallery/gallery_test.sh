#!/usr/bin/env bash
# The gallery's page shows parts of the files that are built, links to all of them and has their lines, of which those
# of calls are no more in Weir. By its commands the programs find their own results right on PoCL, and make its pictures; and what it says of the overlap
# holds.
. tests/support/shell.sh
export WEIR_MODULE_PATH=lib/weir WEIR_BACKEND=opencl

python3 - docs/gallery.md docs/gallery <<'PYTHON' || fail "docs/gallery.md shows what is not built"
import glob
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[2])
import lines

page = open(sys.argv[1]).read()
parts = re.findall(r"^```\w+ part docs/gallery/(\S+)\n(.*?)^```$", page, re.S | re.M)
files = {path.split("/")[-1]: open(path).read() for path in glob.glob(sys.argv[2] + "/*.c*") if not path.endswith(".cuh")}
wrong = ["not in %s:\n%s" % part for part in parts if part[1] not in files.get(part[0], "")]
wrong += ["no link to " + name for name in files if "](gallery/%s)" % name not in page]

rows = re.findall(r"^\| \[(\w+)\]\(.*?\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", page, re.M)
told = {name: tuple(map(int, counts)) for name, *counts in rows}
for name, all_cuda, all_weir, calls_cuda, calls_weir in lines.rows(sys.argv[2]):
    if told.get(name) != (calls_cuda, calls_weir, all_cuda, all_weir):
        wrong.append("%s has %d and %d lines of calls, %d and %d lines" % (name, calls_cuda, calls_weir, all_cuda, all_weir))
    if not 0 < calls_weir <= calls_cuda:
        wrong.append("%s has more calls in Weir: %d lines, and %d in CUDA" % (name, calls_weir, calls_cuda))
# What it counts, by hand: a call of two lines, two of one line, and none.
counted = "a = weir_x(b,\n  c); // weir_y()\nif (cudaX(d)) weir_z(e);\nx<<<1,\n 2>>>(f);\n/* clX(g) */ weir_status status;\n"
if lines.call_lines(counted) != 5:
    wrong.append("lines.py counts %d lines of calls, not 5" % lines.call_lines(counted))
print("\n".join(wrong))
sys.exit(bool(wrong) or len(rows) < 3 or len(parts) < 2 * len(rows) or len(files) != 3 * len(rows))
PYTHON

work="$TEST_TMPDIR"
made=0

# How a copy of pageable memory is cut into pieces depends on the number of threads.
printf '[weir]\ncopy_threads = 8\n' >"$work/weir.ini"
export WEIR_CONFIG="$work/weir.ini"

while read -r _ _ arguments; do
    name="${arguments##*/}"
    read -ra words <<<"${arguments/bazel-bin\//}"
    for i in "${!words[@]}"; do
        [[ "${words[i]}" != docs/images/* ]] || words[i]="$work/${words[i]##*/}"
    done
    [ "$name" != simple_p2p ] || export POCL_DEVICES="pthread basic"
    cli/weir sim --quiet --output "$work/$name.json" "${words[@]}" >"$work/log" 2>&1 || fail "$name: $(cat "$work/log")"
    expect_contains "$(cat "$work/log")" " 0 wrong"
    cmp "$work/gallery-$name.svg" "docs/images/gallery-$name.svg" || fail "gallery-$name.svg is another picture now"
    made=$((made + 1))
    unset POCL_DEVICES
done < <(grep '^    weir sim ' docs/gallery.md)
sources=(docs/gallery/*.cl)
[ "$made" -eq "${#sources[@]}" ] || fail "$made programs have a command"
[ "$made" -eq "$(grep -c '^!\[' docs/gallery.md)" ] || fail "$made pictures have a command"

cli/weir trace check "$work/simple_streams.json" --overlap 'copy/compute>=0.3' || fail "the copies are not hidden"
