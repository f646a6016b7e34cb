#!/bin/bash
# Traces ARR-COC, a chunked job and collectives on PoCL and compares the reports on them with those
# of PyTorch's Holistic Trace Analysis, which is installed into a folder of its own.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [ "${1-}" = --help ]; then
    cat <<'TEXT'
usage: tools/hta/run.sh

Needs python3 with venv, and PyPI once: HolisticTraceAnalysis goes into weir/hta in
XDG_CACHE_HOME or HOME/.cache. Exit status 0: the figures agree; 1: they do not;
77: it could not be installed, as said.
TEXT
    exit 0
fi

readonly version=0.5.0
venv="${XDG_CACHE_HOME:-$HOME/.cache}/weir/hta"
if ! "$venv/bin/python" -c 'import hta' 2>/dev/null; then
    if ! { python3 -m venv "$venv" &&
        "$venv/bin/pip" install --quiet "HolisticTraceAnalysis==$version" "pandas<3"; }; then
        echo "hta: HolisticTraceAnalysis $version cannot be installed; it needs python3-venv, and PyPI once"
        exit 77
    fi
fi

bazel build --noshow_progress //cli:weir //:modules //tests/data/images
weir="$PWD/bazel-bin/cli/weir"
export WEIR_MODULE_PATH="$PWD/bazel-bin/lib/weir" WEIR_BACKEND=opencl
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

"$weir" trace --quiet --output "$folder/arr-coc.json" -- \
    "$weir" run arr-coc --quiet --output "$folder/out" tests/data/images/*.*g >/dev/null
"$weir" trace --quiet --output "$folder/overlap.json.gz" -- \
    "$weir" bench overlap --quiet --turns 1 --chunks 4 --orders depth --kernel heavy >/dev/null
"$weir" trace --quiet --output "$folder/comm.json" -- \
    "$weir" bench comm --quiet --turns 3 --size 4M >/dev/null
for trace in arr-coc.json overlap.json.gz comm.json; do
    "$weir" trace report --json "$folder/$trace" >"$folder/$trace.report"
done
"$venv/bin/python" tools/hta/check.py \
    "$folder/arr-coc.json" "$folder/arr-coc.json.report" \
    "$folder/overlap.json.gz" "$folder/overlap.json.gz.report" \
    "$folder/comm.json" "$folder/comm.json.report"
