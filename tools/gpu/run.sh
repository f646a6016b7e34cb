#!/bin/bash
# Tests and measures Weir on a machine with a GPU, from the archives that tools/gpu/build.sh packed;
# see docs/gpu-machine.md. No step ends the run: each has a time limit, writes a log, and is a line
# of the table at the end.

set -u

usage()
{
    cat <<'TEXT'
usage: run.sh [--out DIR] [--seconds N] [--steps LIST] [--help]

Runs the conformance suite, the ARR-COC pipeline on two photographs, and the
benchmarks on each of: CUDA; OpenCL on NVIDIA's driver; OpenCL on PoCL. What is
not on this machine is left out, with the reason. Ends with one table. Exit
status 0 when nothing failed and something ran.

  --out DIR    where to leave the table, the logs, and the benchmarks' figures
               and plots (default: $OUT, if set)
  --seconds N  time for all of it (default 500); later steps are left out
  --steps LIST which steps, of: conformance,arr-coc,reference,frames,bench and
               twins (kernels in CUDA C++ against OpenCL C), steady (100,000
               frames), faults (100,000 frames with one fault in a hundred
               operations, and the tests of the plugin fault), interop (cuBLAS
               and PyTorch), devices (two GPUs), comm (collectives by NCCL on
               one GPU, and on two), trace (times of operations
               and the plugin, with CUPTI and without, about a minute),
               builtins (every function of OpenCL C), races (missing waits,
               with check and perturb), orders (the suite with perturb, about
               a minute), layer (plain OpenCL programs under check); and, left out by default, verify (the suite with
               check --verify), ddp (a training step on two GPUs, beside raw
               NCCL and PyTorch, up to 3 minutes), frames-devices (ARR-COC on
               all GPUs over one), comm-failures (a rank of two that fails in
               each way, up to 5 minutes), comm-churn (1,000 communicators of
               two ranks, up to 3 minutes), train (weir train, and its
               work in PyTorch, a minute), sim (what the plugin sim is
               to predict, up to 6 minutes), peers (beside raw CUDA, OpenCL and
               PyTorch programs, up to 5 minutes) and memcheck (the suite on
               CUDA under compute-sanitizer)
  --filter F   of the conformance suite only the tests that match, as for
               weir conform
  --help       this text
TEXT
}

seconds=500
out="${OUT-}"
filter=
steps=conformance,arr-coc,reference,twins,frames,bench,steady,faults,interop,devices,comm,trace,builtins,races,orders,layer
# All, in their order. Those with a colon run on each backend.
readonly all=(conformance: arr-coc: agreement reference: twins frames: frames-devices: bench: steady: faults: builtins: races:
    orders: verify: layer: interop devices comm ddp comm-failures comm-churn train trace sim peers memcheck fault)
while [ "$#" -gt 0 ]; do
    case "$1" in
    --out | --seconds | --steps | --filter)
        [ "$#" -gt 1 ] || { echo "run: $1 needs a value" >&2 && exit 2; }
        declare "${1#--}=$2"
        shift
        ;;
    --help)
        usage
        exit 0
        ;;
    *)
        echo "run: unknown argument '$1'" >&2
        usage >&2
        exit 2
        ;;
    esac
    shift
done
case "$seconds" in
'' | *[!0-9]*)
    echo "run: --seconds takes a number, not '$seconds'" >&2
    exit 2
    ;;
esac

for step in ${steps//,/ }; do
    if [[ " ${all[*]//:/} " != *" $step "* || "$step" = agreement || "$step" = fault ]]; then
        echo "run: there is no step '$step'" >&2
        usage >&2
        exit 2
    fi
done
# What comes with others: the backends' results beside each other, and last a fault, which destroys the context.
[[ ",$steps," != *,arr-coc,* ]] || steps+=,agreement
[[ ",$steps," != *,bench,* ]] || steps+=,fault

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)" || exit 2
work="$(mktemp -d "${TMPDIR:-/tmp}/weir-gpu.XXXXXX")" || exit 2
logs="$work/logs"
figures="$work/bench"
mkdir "$logs" "$figures"
# No settings of the user, and no files of an earlier run.
unset WEIR_CONFIG WEIR_BACKEND WEIR_PLUGINS WEIR_MODULE_PATH POCL_DEVICES OCL_ICD_VENDORS
unset OCL_ICD_FILENAMES
export XDG_CACHE_HOME="$work/cache" POCL_CACHE_DIR="$work/cache/pocl"
export CUDA_CACHE_PATH="$work/cache/cuda"
mkdir -p "$POCL_CACHE_DIR" "$CUDA_CACHE_PATH"

# The table.

rows=()
failures=0
passes=0

# row RESULT WHAT DETAIL
row()
{
    rows+=("$(printf '%-7s  %-36s  %s' "$1" "$2" "$3")")
    echo "$(printf '%4d' $SECONDS) s  ${rows[-1]}"
    case "$1" in
    FAILED) failures=$((failures + 1)) ;;
    ok) passes=$((passes + 1)) ;;
    esac
}

finish()
{
    trap - EXIT INT TERM
    {
        printf '\n%-7s  %-36s  %s\n' result what detail
        printf '%s\n' "${rows[@]}"
        printf '%d steps passed, %d failed, %d s\n' "$passes" "$failures" "$SECONDS"
    } | tee "$work/table.txt"
    if [ -n "$out" ]; then
        mkdir -p "$out" && cp "$work/table.txt" "$out/table.txt" &&
            tar -czf "$out/logs.tar.gz" -C "$work" logs && echo "logs: $out/logs.tar.gz"
        if [ -n "$(ls "$figures")" ]; then cp -r "$figures" "$out/"; fi
        rm -rf "$work"
    else
        rm -rf "${work:?}"/cache "${work:?}"/weir*
        echo "logs: $logs"
    fi
    # A bare exit would end a trap with the status from before it.
    if [ "$failures" -eq 0 ] && [ "$passes" -gt 0 ]; then exit 0; fi
    exit 1
}
trap finish EXIT
trap 'row FAILED interrupted ""; finish' INT TERM

# run LIMIT LOG COMMAND...: stores the exit status in $status and the output in $output.
# 124: it took more than LIMIT seconds; 125: there was no time left for it.
run()
{
    local limit="$1" log="$logs/$2.log" left=$((seconds - SECONDS)) late=124
    shift 2
    if [ "$left" -lt "$limit" ]; then
        limit="$left"
        late=125
    fi
    status=125
    output=""
    [ "$limit" -ge 1 ] || return 0
    status=0
    printf '$ %s\n' "$*" >>"$log"
    output="$(timeout -k 5 "$limit" "$@" 2>&1 </dev/null)" || status=$?
    printf '%s\n[status %d]\n' "$output" "$status" >>"$log"
    if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then status="$late"; fi
}

last_line()
{
    printf '%s\n' "$output" | grep -v '^[[:space:]]*$' | tail -n 1 | cut -c 1-160
}

# judge WHAT [DETAIL]: a row with the result of the last run.
judge()
{
    case "$status:${2-}" in
    "0:0 tests") row FAILED "$1" "no test ran" ;;
    0:*) row ok "$1" "${2-$(last_line)}" ;;
    124:*) row FAILED "$1" "took too long; the log tells how far it came" ;;
    125:*) row "no time" "$1" "--seconds gives more" ;;
    *) row FAILED "$1" "status $status: $(last_line)" ;;
    esac
}

# judge_tests WHAT: the same of a test program, with the count of its tests.
judge_tests()
{
    judge "$1" "$(printf '%s\n' "$output" | grep -c '\[       OK \]') tests"
}

# notes WHAT: a row for each line of its input.
notes()
{
    local line
    while IFS= read -r line; do
        row - "$1" "$line"
    done < <(cut -c 1-300)
}

# The machine.

describe_machine()
{
    local name=""
    [ ! -r /etc/os-release ] || name="$(. /etc/os-release && echo "$PRETTY_NAME")"
    row - machine "$name, $(getconf GNU_LIBC_VERSION), $(nproc) processors"
    if command -v nvidia-smi >/dev/null; then
        run 30 nvidia-smi nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
        row - GPU "$(printf '%s' "$output" | tr '\n' ';')"
    else
        row - GPU "there is no nvidia-smi"
    fi
}

# Installation: the first archive alone, then the CUDA module added to it.

unpack()
{
    local archive
    for archive in "$root"/archives/weir-[0-9]*.tar.gz "$root"/archives/weir-cuda-*.tar.gz; do
        run 60 unpack tar -xzf "$archive" -C "$work"
        judge "unpack $(basename "$archive" .tar.gz)" ""
    done
    weir="$(echo "$work"/weir-[0-9]*/bin/weir)"
    prefix="${weir%/bin/weir}"
    run 30 unpack "$weir" --version
    judge "weir --version"
    [ "$status" -eq 0 ] || finish
}

# Which of the three backends the machine has. Each has a folder of ICDs of its own, so
# that only the platform meant is found.

backends=()

# library NAME: its path, from the dynamic linker's cache, or from the usual folders of drivers.
library()
{
    local path driver
    path="$(ldconfig -p 2>/dev/null | awk -v name="$1" '$1 == name && /x86-64/ { print $NF; exit }')"
    driver="$(ldconfig -p 2>/dev/null | awk '$1 == "libcuda.so.1" && /x86-64/ { print $NF; exit }')"
    for path in "$path" "${driver:+$(dirname "$driver")/$1}" \
        "${driver:+$(dirname "$(readlink -f "$driver")")/$1}" \
        "/usr/lib/x86_64-linux-gnu/$1" "/usr/lib64/$1" "/usr/local/nvidia/lib64/$1"; do
        [ -n "$path" ] && [ -e "$path" ] && echo "$path" && return 0
    done
    return 1
}

# Some loaders of OpenCL, among them the one that comes with the CUDA toolkit, do not read OCL_ICD_VENDORS
# and list what is registered on the machine. So the folder of the loader that found the wanted platform is
# kept for each backend; "" means the loader that the dynamic linker finds.
declare -A loader_folder=()

# use BACKEND: $on then runs a command on it.
use()
{
    local folder="${loader_folder[$1]-}"
    case "$1" in
    cuda) on=(env WEIR_BACKEND=cuda) ;;
    *) on=(env WEIR_BACKEND=opencl "OCL_ICD_VENDORS=$work/icd/$1"
        ${folder:+"LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"}) ;;
    esac
}

# try BACKEND PLATFORM: adds it to the backends to run, if its first device belongs to the platform.
try()
{
    local folder
    for folder in "" /usr/lib/x86_64-linux-gnu /usr/lib64; do
        [ -z "$folder" ] || [ -e "$folder/libOpenCL.so.1" ] || continue
        loader_folder[$1]="$folder"
        use "$1"
        run 60 "devices-$1" "${on[@]}" "$weir" devices
        if [ "$status" -eq 0 ] && [[ "${output%%compute*}" == *"$2"* ]]; then
            backends+=("$1")
            row ok "$1: devices" "$(printf '%s\n' "$output" | grep -m 1 '^0: ')"
            return
        fi
        [ "$1" != cuda ] || break
    done
    row absent "$1: devices" "$(printf '%s\n' "$output" | grep . | head -n 1 | cut -c 1-300)"
}

find_backends()
{
    local path icd
    try cuda ""

    mkdir -p "$work/icd/opencl-nvidia" "$work/icd/opencl-pocl"
    if path="$(library libnvidia-opencl.so.1)"; then
        echo "$path" >"$work/icd/opencl-nvidia/nvidia.icd"
        try opencl-nvidia "NVIDIA CUDA"
    else
        row absent "opencl-nvidia: devices" "libnvidia-opencl.so.1 is not on this machine"
    fi

    for icd in /etc/OpenCL/vendors/*pocl*.icd; do
        [ ! -r "$icd" ] || cp "$icd" "$work/icd/opencl-pocl/"
    done
    if [ -z "$(ls "$work/icd/opencl-pocl")" ] && path="$(library libpocl.so.2)"; then
        echo "$path" >"$work/icd/opencl-pocl/pocl.icd"
    fi
    if [ -n "$(ls "$work/icd/opencl-pocl")" ]; then
        try opencl-pocl "Portable Computing Language"
    else
        row absent "opencl-pocl: devices" "PoCL is not installed (Debian, Ubuntu: pocl-opencl-icd)"
    fi
}

# shellcheck source=tools/gpu/steps.sh
. "$root/tools/gpu/steps.sh"

describe_machine
unpack
find_backends
for step in "${all[@]}"; do
    [[ ",$steps," == *",${step%:},"* ]] || continue
    name="${step%:}"
    if [ "$name" = "$step" ]; then
        "step_${name//-/_}"
        continue
    fi
    for backend in "${backends[@]}"; do "step_${name//-/_}"; done
done
exit 0
