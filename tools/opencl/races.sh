#!/bin/bash
# Runs the kernels of the tree in Oclgrind, which tells of races between work-items.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root="$PWD"

if [ "${1-}" = --help ] || [ $# -ne 1 ]; then
    cat <<'TEXT'
usage: tools/opencl/races.sh FOLDER

Runs the programs of tools/opencl/races.txt and the kernels of tools/opencl/races_kernels.txt on
Oclgrind with its detector of data races, at small sizes. The simulator is downloaded with apt-get and
unpacked into FOLDER, which may be used again; nothing is installed. Each has its output in
FOLDER/races/NUMBER.log. A kernel with a race, FOLDER/races/control.cl, shows that the detector tells.

Exit status 0: there is no race, and each kernel of the tree ran or is in
tools/opencl/not_in_oclgrind.txt; 2: a race, or a kernel that neither ran nor is there, or that ran
and is there, or a program that a signal or its time limit ended in each of five turns, unless its row
begins with may-end, or a detector that does not tell of the race in control.cl; 1: the simulator could not be had.
TEXT
    exit 0
fi

mkdir -p "$1"
folder="$(cd "$1" && pwd)"
tools/opencl/run.sh --unpack "$folder" oclgrind || exit 1
libraries="$folder/debian/usr/lib/$(uname -m)-linux-gnu"

rm -rf "$folder/races"
mkdir -p "$folder/races/tmp"
# Without LLVM's optimizer, as Oclgrind 21.10 does not know llvm.usub.sat.
printf '[arr_coc]\nside = 64\ngrid = 4\nbudget = 256\n[opencl]\nbuild_options = -cl-opt-disable\n' >"$folder/races/small.ini"
grep -v '^#' tools/opencl/races.txt >"$folder/races/rows"
grep -o '| [^ ]*' "$folder/races/rows" | sed 's#^| #//#; s#/\([^/]*\)$#:\1#' | sort -u |
    xargs bazel build --noshow_progress //:modules >&2

export LD_LIBRARY_PATH="$libraries:$folder/debian/usr/lib/oclgrind" OCL_ICD_VENDORS="$folder/vendors/oclgrind"
export OCLGRIND_DATA_RACES=1 OCLGRIND_INST_COUNTS=1 OCLGRIND_PCH_DIR="$libraries/oclgrind/21.10"
export WEIR_BACKEND=opencl WEIR_MODULE_PATH="$root/bazel-bin/lib/weir" TEST_TMPDIR="$folder/races/tmp"
export SMALL="$folder/races/small.ini" IMAGE="$root/tests/data/images/coffee.png"
number=0
while IFS='|' read -r _ command; do
    number=$((number + 1))
    read -ra words <<<"${command//\$SMALL/$SMALL}"
    words=("${words[@]//\$IMAGE/$IMAGE}")
    runfiles="$root/bazel-bin/${words[0]}.runfiles/weir"
    [ -d "$runfiles" ] || runfiles="$root"
    # Oclgrind has no locks and may end a program of several threads at any call: each has five turns.
    status=125
    for _ in 1 2 3 4 5; do
        [ "$status" -ge 124 ] || break
        status=0
        (cd "$runfiles" && exec timeout 180 "$root/bazel-bin/${words[0]}" "${words[@]:1}") \
            >>"$folder/races/$number.log" 2>&1 </dev/null || status=$?
    done
    # Numbers that the simulator computes otherwise are a failed test, and no end of the program.
    [ "$status" -lt 124 ] || echo "$status" >"$folder/races/$number.ended"
done <"$folder/races/rows"

# Also stores of the same bits by several work-items, which are none in texture_image where the side is a
# multiple of 32.
OCLGRIND_UNIFORM_WRITES=1 timeout 600 bazel-bin/cli/weir run arr-coc --config "$SMALL" --decoders 1 "$IMAGE" \
    >"$folder/races/uniform.log" 2>&1 </dev/null || echo "$?" >"$folder/races/uniform.ended"

# simulate NAME OPTIONS LINE...: a kernel with its lines for oclgrind-kernel.
simulate() {
    printf '%s\n' "${@:3}" | sed 's/^ *//; s/ *$//' >"$folder/races/$1.sim"
    timeout 60 "$folder/debian/usr/bin/oclgrind-kernel" --build-options "$2" \
        "$folder/races/$1.sim" >"$folder/races/$1.log" 2>&1 </dev/null || true
}

echo 'kernel void control(global int *out) { out[0] = (int)get_global_id(0); }' >"$folder/races/control.cl"
simulate control "" "$folder/races/control.cl" control "64 1 1" "32 1 1" "<size=4 fill=0 int>"
echo 'kernel void same_bits(global int *out) { out[0] = 7; }' >"$folder/races/same_bits.cl"
OCLGRIND_UNIFORM_WRITES=1 simulate same_bits "" "$folder/races/same_bits.cl" same_bits "64 1 1" "32 1 1" "<size=4 fill=0 int>"

grep -v '^#' tools/opencl/races_kernels.txt >"$folder/races/kernels"
while IFS='|' read -r what items block arguments; do
    number=$((number + 1))
    read -r source kernel options <<<"$what"
    simulate "$number" "-I$root $options" "$root/$source" "$kernel" "$items" "$block" "${arguments//;/$'\n'}"
done <"$folder/races/kernels"

python3 - "$folder/races" <<'PYTHON'
import os, re, subprocess, sys

folder, wrong, ran = sys.argv[1], [], set()
race = r"data race at .*\n\s*Kernel:\s*(\w+)"
if re.findall(race, open(folder + "/control.log", errors="replace").read())[:1] != ["control"]:
    wrong.append("the detector does not tell of the race in control.cl: %s/control.log" % folder)
if "same_bits" not in re.findall(race, open(folder + "/same_bits.log", errors="replace").read()):
    wrong.append("the detector does not tell of stores of the same bits: %s/same_bits.log" % folder)
log = open(folder + "/uniform.log", errors="replace").read()
if os.path.exists(folder + "/uniform.ended") or "for kernel 'texture_image'" not in log:
    wrong.append("texture_image did not run with OCLGRIND_UNIFORM_WRITES: %s/uniform.log" % folder)
if "texture_image" in re.findall(race, log):
    wrong.append("work-items of texture_image store the same bits twice, as %s/uniform.log tells" % folder)
rows = open(folder + "/rows").readlines() + [
    "%s | %s" % tuple(row.split()[:2]) for row in open(folder + "/kernels")]
for number, row in enumerate(rows, 1):
    log = open("%s/%d.log" % (folder, number), errors="replace").read()
    names = set(re.findall(r"for kernel '(\w+)'", log))
    ran |= {(path, name) for path in row.split("|")[0].split() for name in names}
    if os.path.exists("%s/%d.ended" % (folder, number)) and not row.startswith("may-end "):
        wrong.append("%s: the program was ended in each turn, the last with status %s, as %s/%d.log tells" % (
            row.split("|")[1].strip(), open("%s/%d.ended" % (folder, number)).read().strip(), folder, number))
    for kernel in sorted(set(re.findall(race, log))):
        wrong.append("%s: a data race in %s, as %s/%d.log tells" % (row.split("|")[1].strip(), kernel, folder, number))

kernels = set()
for path in subprocess.check_output(["git", "ls-files", "*.cl"], text=True).split():
    if not path.startswith("kernels/library/"):  # functions for GPUs' images, no kernels
        text = re.sub(r"__attribute__\(\(.*?\)\)\)?", "", open(path).read())
        kernels |= {(path, name) for name in re.findall(r"^(?:__)?kernel\s+void\s+(\w+)\(", text, re.M)}
lines = [line.split() for line in open("tools/opencl/not_in_oclgrind.txt") if line.strip() and line[0] != "#"]
left_out = {(path, name) for path, name, *_ in lines}
for path, name in sorted(kernels - ran - left_out):
    wrong.append("%s: %s did not run" % (path, name))
for path, name in sorted((left_out & ran) | (left_out - kernels)):
    wrong.append("%s: %s is in not_in_oclgrind.txt, and ran or does not exist" % (path, name))
print("\n".join(wrong))
print("%d kernels, %d ran, %d left out; %s" % (len(kernels), len(kernels & ran), len(left_out), "wrong: %d" % len(wrong) if wrong else "no race"))
sys.exit(2 if wrong else 0)
PYTHON
