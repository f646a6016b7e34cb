#!/bin/bash
# The files for users' CI: their shell lines run here, with the archive, on a program with a missing
# wait and on the same one mended, and on a job in chunks with a needless wait and without. What needs
# root and the network is left out.
. tests/dist/dist.sh
need pkg-config cc python3
cp "$root"/docs/ci/*.yml "$TEST_TMPDIR"
cp "$root/tests/plugins/check/frames_mended.c" "$TEST_TMPDIR"
cd "$TEST_TMPDIR"
unpack weir

# Each step of GitHub's is a program of its own; GitLab runs all lines in one shell.
python3 - <<'PYTHON' || fail "no shell lines"
import re


def block(lines, start, indent):
    """The lines after `start` that are indented by `indent` at least."""
    taken = []
    for line in lines[start + 1:]:
        if line.strip() and not line.startswith(" " * indent):
            break
        taken.append(line[indent:])
    return "\n".join(taken).rstrip() + "\n"


def write(name, text):
    with open(name, "w") as out:
        out.write("sudo() { :; }\napt-get() { :; }\n" + text)


lines = open("github.yml").read().split("\n")
steps = []
for i, line in enumerate(lines):
    if line == "        run: |":
        steps.append(block(lines, i, 10))
    elif line.startswith("        run: "):
        steps.append(line[len("        run: "):] + "\n")
assert len(steps) == 5, steps
for number, step in enumerate(steps):
    write("github%d.sh" % number, step)

lines = open("gitlab.yml").read().split("\n")
script = ""
for i, line in enumerate(lines):
    if line == "    - |":
        script += block(lines, i, 6)
    elif re.match("    - .*", line):
        script += line[len("    - "):] + "\n"
    if line == "  artifacts:":
        break
assert "weir check --json" in script and "PYTHON\n" in script, script
write("gitlab.sh", script)
PYTHON

# prepare PROGRAM CHUNKS: the files of a repository.
prepare()
{
    rm -rf work
    mkdir work
    cp "$1" work/check.c
    cp "$2" work/chunks.c
    printf '[kernel twice]\nfixed_ns = 5000\nper_item_ns = 0.5\n' >work/kernels.ini
}

# run_github STATUS PROGRAM STATUS CHUNKS: the steps, of which the check and the last one end so.
run_github()
{
    prepare "$2" "$4"
    cd work
    expect_status 0 bash -e -o pipefail ../github0.sh
    expect_status 0 bash -e -o pipefail ../github1.sh
    expect_status "$1" bash -e -o pipefail ../github2.sh
    found="$output"
    expect_status 0 bash -e -o pipefail ../github3.sh
    grep -q '<html' trace.html || fail "no page of the trace"
    expect_status "$3" bash -e -o pipefail ../github4.sh
    simulated="$output"
    cd ..
}
# run_gitlab STATUS PROGRAM CHUNKS
run_gitlab()
{
    prepare "$2" "$3"
    cd work
    expect_status "$1" bash -e -o pipefail ../gitlab.sh
    cd ..
}

export WEIR_ARCHIVE="$main_archive" WEIR_BACKEND=opencl
broken="$PWD/weir/share/weir/examples/check.c"
expect_status 0 diff -r "$PWD/weir/share/weir/examples/ci" "$root/docs/ci"

# A change lets the host wait for each kernel before it submits the next chunk.
chunks="$PWD/weir/share/weir/examples/chunks.c"
sed 's|    return weir_queue_launch(\(.*\)|    weir_status status = weir_queue_launch(\1|
    s|^\( *(uint32_t)chunk->count);\)|\1\n    return status ? status : weir_queue_sync(queue, WEIR_FOREVER);|' \
    "$chunks" >needless.c
[ "$(diff "$chunks" needless.c | grep -c '^>')" -eq 2 ] || fail "no needless wait: $(diff "$chunks" needless.c)"

run_github 1 "$broken" 0 "$chunks"
expect_contains "$found" "write-after-read, 6 times"
expect_contains "$(cat work/check.sarif)" '"uri": "check.c"'
expect_contains "$simulated" "copy/compute"
run_github 0 frames_mended.c 1 needless.c
expect_contains "$simulated" "copy/compute"
expect_contains "$found" "nothing was found"
expect_contains "$(cat work/check.sarif)" '"results": []'

run_gitlab 1 "$broken" "$chunks"
python3 - work/quality.json <<'PYTHON' || fail "no report of code quality: $(cat work/quality.json)"
import json
import sys

entries = json.load(open(sys.argv[1]))
assert len(entries) == 1
entry = entries[0]
assert entry["check_name"] == "write-after-read" and entry["severity"] == "major"
assert entry["location"]["path"] == "check.c" and entry["location"]["lines"]["begin"] > 1
assert len(entry["fingerprint"]) == 64 and "To do: record on 'run'" in entry["description"]
PYTHON
run_gitlab 1 frames_mended.c needless.c
[ "$(cat work/quality.json)" = "[]" ] || fail "$(cat work/quality.json)"
run_gitlab 0 frames_mended.c "$chunks"
[ "$(cat work/quality.json)" = "[]" ] || fail "$(cat work/quality.json)"
