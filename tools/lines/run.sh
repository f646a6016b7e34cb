#!/bin/bash
# Counts the instructions and the cache lines of one copy, launch, record and wait of the CUDA
# backend, on the tests' libcuda.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [ "${1-}" = --help ]; then
    cat <<'TEXT'
usage: tools/lines/run.sh

Needs valgrind. Takes about a minute; the trace of all accesses has 1 GB and goes to TMPDIR.
TEXT
    exit 0
fi
if ! command -v valgrind >/dev/null; then
    echo "lines: valgrind is not installed; install the package valgrind" >&2
    exit 77
fi

bazel build --noshow_progress //tools/lines:sequence //backends/cuda:weir_cuda.so \
    //tests/support/libcuda:libcuda.so.1
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
WEIR_MODULE_PATH="$PWD/bazel-bin/backends/cuda" LD_LIBRARY_PATH="$PWD/bazel-bin/tests/support/libcuda" \
    valgrind --tool=lackey --trace-mem=yes --log-file="$work/trace" \
    bazel-bin/tools/lines/sequence >"$work/places"
python3 tools/lines/lines.py "$work/places" "$work/trace"
