#!/bin/bash
# Packs the files for a GPU machine: the archives, the test programs with the files that they read,
# and run.sh. docs/gpu-machine.md describes its use.

set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage()
{
    cat <<'TEXT'
usage: tools/gpu/build.sh [--out FILE] [BAZEL OPTION]...

Builds the archives, test programs and benchmarks into FILE (.gpu/weir-gpu.tar.gz),
which is unpacked on the GPU machine. --define=weir_cuda=few makes a smaller one,
with CUDA images for fewer GPUs.
TEXT
}

out=.gpu/weir-gpu.tar.gz
options=()
while [ "$#" -gt 0 ]; do
    case "$1" in
    --help)
        usage
        exit 0
        ;;
    --out)
        out="${2:?--out needs a file}"
        shift
        ;;
    *) options+=("$1") ;;
    esac
    shift
done

# Small enough for slow links and for the limits of some machines.
readonly limit=$((64 * 1024 * 1024))

bazel build --noshow_progress "${options[@]}" //tests/dist:gpu
mkdir -p "$(dirname "$out")"
cp -f bazel-bin/tests/dist/weir-gpu.tar.gz "$out"
chmod 644 "$out"
size="$(stat -c %s "$out")"
echo "build: $out, $((size / 1024)) KiB"
if [ "$size" -gt "$limit" ]; then
    echo "build: that is more than $((limit / 1024 / 1024)) MiB; try --define=weir_cuda=few" >&2
    exit 1
fi
