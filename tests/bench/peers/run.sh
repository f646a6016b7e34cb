#!/bin/bash
# Weir and its peers side by side: unpacks the archives on a GPU machine, finds the programs, and
# starts side_by_side.py. In a build tree Bazel starts it in the folder of the runfiles.

set -eu
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)"
# If it is started by `bazel run`, its files are among its runfiles.
[ ! -d "${BASH_SOURCE[0]}.runfiles/weir" ] || root="$(cd "${BASH_SOURCE[0]}.runfiles/weir" && pwd)"

usage()
{
    cat <<'TEXT'
usage: tests/bench/peers/run.sh [--out DIR] [OPTION]...

Measures Weir beside raw CUDA, plain OpenCL and PyTorch doing the same work, and
prints one table of ratios with the targets. What this machine lacks is left out,
with the reason. Leaves side_by_side.txt, side_by_side.json and logs in DIR
(default: $OUT, else a new folder). Other options are those of side_by_side.py:
--rounds, --seconds, --groups, --bytes, --frames, --python, ...
TEXT
}

out="${OUT-}"
options=()
while [ "$#" -gt 0 ]; do
    case "$1" in
    --help)
        usage
        exit 0
        ;;
    --out)
        out="${2:?--out needs a folder}"
        shift
        ;;
    *) options+=("$1") ;;
    esac
    shift
done
if ! command -v python3 >/dev/null; then
    echo "run: python3 is not installed, and takes the turns" >&2
    exit 1
fi
[ -n "$out" ] || out="$(mktemp -d "${TMPDIR:-/tmp}/weir-peers.XXXXXX")"
mkdir -p "$out"
out="$(cd "$out" && pwd)"

# Without the user's settings, and with caches for this run only.
unset WEIR_CONFIG WEIR_BACKEND WEIR_PLUGINS
work="$(mktemp -d "${TMPDIR:-/tmp}/weir-peers.XXXXXX")"
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME="${XDG_CACHE_HOME:-$work/cache}"
export POCL_CACHE_DIR="${POCL_CACHE_DIR:-$work/cache/pocl}"
export TORCHINDUCTOR_CACHE_DIR="$work/cache/inductor" TRITON_CACHE_DIR="$work/cache/triton"
mkdir -p "$POCL_CACHE_DIR"

if [ -d "$root/archives" ]; then
    for archive in "$root"/archives/weir-[0-9]*.tar.gz "$root"/archives/weir-cuda-*.tar.gz; do
        tar -xzf "$archive" -C "$work"
    done
    weir="$(echo "$work"/weir-[0-9]*/bin/weir)"
    export WEIR_MODULE_PATH="${weir%/bin/weir}/lib/weir"
else
    weir="$root/cli/weir"
    export WEIR_MODULE_PATH="${WEIR_MODULE_PATH:-$root/lib/weir}"
fi

status=0
python3 "$root/tests/bench/peers/side_by_side.py" --root "$root" --weir "$weir" --out "$out" \
    --work "$work" ${options[@]+"${options[@]}"} || status=$?
echo "in $out: side_by_side.txt, side_by_side.json, peers/"
exit "$status"
