#!/bin/bash
# Runs programs that know nothing of Weir alone, under `weir check` and under `weir trace`, and prints a table.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root="$PWD"

if [ "${1-}" = --help ] || [ $# -lt 1 ]; then
    cat <<'TEXT'
usage: tests/layers/programs.sh FOLDER [NAME]...

Runs the programs of tests/layers/programs.txt that are there, or those whose first word is NAME,
with the `weir` of PATH, and within 300 seconds each. One row a program:

  calls      commands that it enqueued, as a layer counts that knows nothing of Weir's
  followed   those that Weir's layer has told, as the trace has them
  findings   of `weir check`, and the longest seconds of processor and of time over those alone
  result     whether exit status and output are those of the program alone

Programs of Debian are installed with apt-get: clinfo clpeak hashcat gegl python3-pyopencl
python3-opencv libclblast-dev libblas-dev libviennacl-dev libboost-dev libboost-test-dev. Sources of
tests and examples are the user's, of the packages' versions, as FOLDER/src/NAME: clblast, viennacl,
compute (Boost.Compute) and pyopencl; what is compiled of them is kept in FOLDER/bin. Of each run
FOLDER/runs/PROGRAM has the output, findings.json and the counts.

Exit status 0: the results are equal, and what the layer did not follow is said; 2: one differs, or was not
done in time; 1: the table cannot be made.
TEXT
    exit 0
fi

mkdir -p "$1/bin" "$1/runs"
folder="$(cd "$1" && pwd)"
shift
export ROOT="$root" SRC="$folder/src" BIN="$folder/bin" IMAGE="$root/tests/data/images/coffee.png"
command -v weir >/dev/null || {
    echo "programs.sh: there is no weir in PATH: see docs/install.md" >&2
    exit 1
}
${CC:-cc} -O2 -fPIC -shared -I. tests/layers/count_calls.c -o "$folder/count_calls.so" || exit 1

# compile OUTPUT SOURCE FLAG...: where the source is there, and the output is not.
compile() {
    [ -e "$2" ] && [ ! -e "$1" ] || return 0
    ${CXX:-c++} -g -O1 -w -DCL_TARGET_OPENCL_VERSION=120 -DCL_USE_DEPRECATED_OPENCL_1_1_APIS \
        -DCL_USE_DEPRECATED_OPENCL_1_2_APIS "$2" "${@:3}" -lOpenCL -o "$1" 2>>"$folder/compile.log" ||
        echo "programs.sh: $2 was not compiled: see $folder/compile.log" >&2
}

# Of a program's source, by the beginning of its name.
build() {
    local name="${1#*_}"
    case "$1" in
    viennacl_*) compile "$BIN/$1" "$SRC/viennacl/examples/tutorial/$name.cpp" \
        -DVIENNACL_WITH_OPENCL -I"$SRC/viennacl/examples" ;;
    compute_test_*) compile "$BIN/$1" "$SRC/compute/test/$name.cpp" \
        -DBOOST_TEST_DYN_LINK -lboost_unit_test_framework ;;
    compute_*) compile "$BIN/$1" "$SRC/compute/example/$name.cpp" ;;
    clblast_*)
        local from="$SRC/clblast/test" common=() part
        local flags=(-DCLBLAST_REF_CBLAS -DOPENCL_API -I"$SRC/clblast" -I"$SRC/clblast/src" -I"$SRC/clblast/include")
        for part in test_utilities correctness/tester correctness/testblas; do
            compile "$BIN/${part##*/}.o" "$from/$part.cpp" -c "${flags[@]}"
            common+=("$BIN/${part##*/}.o")
        done
        compile "$BIN/$1" "$(echo "$from"/correctness/routines/*/"${name#test_}".cpp)" "${flags[@]}" \
            "${common[@]}" -lclblast -lblas -pthread
        ;;
    esac
}

# run MODE FILTER COMMAND [PREFIX...]: in a folder of its own, whose files are results. Leaves "SECONDS OF-PROCESSOR STATUS" in
# MODE.time.
run() {
    local mode="$1" filter="$2" command="$3" status=0 TIMEFORMAT='%R %U %S'
    shift 3
    mkdir -p "$runs/$mode"
    { time (cd "$runs/$mode" && eval "timeout 300 $* $command" </dev/null >"$runs/$mode/output" 2>"$runs/$mode.err") || status=$?; } \
        2>"$runs/time"
    sed -i -E "$filter" "$runs/$mode/output"
    echo "$(awk '{ print $1, $2 + $3 }' "$runs/time") $status" >"$runs/$mode.time"
}

# What one needs and lacks; nothing if it is there.
lacking() {
    local need
    for need in $1; do
        eval "need=$need"
        [[ "$need" != "$BIN/"* ]] || build "${need##*/}"
        command -v "$need" >/dev/null || [ -e "$need" ] || python3 -c "import $need" 2>/dev/null || echo "$need"
    done
}

failed=0
format='%-24s %8s %8s %9s %9s %14s %14s %s\n'
# shellcheck disable=SC2059 # one format, twice
printf "$format" program calls followed findings seconds 'check  alone=1' 'trace  alone=1' result
while IFS='|' read -r name needs filter command; do
    name="${name% }"
    [ $# -eq 0 ] || [[ " $* " = *" ${name%% *} "* ]] || continue
    lacks="$(lacking "$needs")"
    if [ "$lacks" ]; then
        echo "$name: skipped: there is no $lacks"
        continue
    fi
    runs="$folder/runs/${name// /_}"
    rm -rf "$runs"
    mkdir -p "$runs"
    : >"$runs/calls"
    # What is compiled once, and kept: the program's kernels, and by check's clang.
    run plain "$filter" "$command" weir check -q
    rm -rf "$runs/plain"
    run plain "$filter" "$command"
    run check "$filter" "$command" weir check -q --text "$runs/findings.txt"
    COUNT_CALLS="$runs/calls" OPENCL_LAYERS="$folder/count_calls.so" \
        run trace "$filter" "$command" weir trace -o "$runs/trace.json.gz"
    read -r plain_s plain_cpu plain_status <"$runs/plain.time"
    read -r check_s check_cpu check_status <"$runs/check.time"
    read -r trace_s trace_cpu trace_status <"$runs/trace.time"
    calls="$(awk '/^clEnqueue/ && !/Marker|Barrier|WaitForEvents/ { n += $2 } END { print n + 0 }' "$runs/calls")"
    # A trace counts those that it had no time to write.
    followed="$(zcat "$runs/trace.json.gz" 2>/dev/null |
        awk '/"name":"weir_queue_note"/ { n++ } match($0, /"weir.dropped":[0-9]+/) { n += substr($0, RSTART + 15, RLENGTH - 15) }
            END { print n + 0 }')"
    findings="$(grep -cE '^[a-z-]+, [0-9]+ times?$' "$runs/findings.txt" 2>/dev/null || true)"
    findings="${findings:-0}"
    result=equal
    # Findings make a status of 0 a 1.
    [ "$findings" -eq 0 ] || [ "$check_status $plain_status" != '1 0' ] || check_status=0
    if ! diff -r "$runs/plain" "$runs/check" >"$runs/diff" || ! diff -r "$runs/plain" "$runs/trace" >>"$runs/diff" ||
        [ "$plain_status $plain_status" != "$check_status $trace_status" ]; then
        result="differs: $plain_status $check_status $trace_status, $runs/diff"
        failed=2
    fi
    ratio() { awk -v a="$1" -v b="$2" -v c="$3" -v d="$4" 'BEGIN { printf "%.2f (%.2f)", a / b, c / (d > 0 ? d : 0.001) }'; }
    # shellcheck disable=SC2059
    printf "$format" "$name" "$calls" "$followed" "$findings" "$plain_s" \
        "$(ratio "$check_s" "$plain_s" "$check_cpu" "$plain_cpu")" \
        "$(ratio "$trace_s" "$plain_s" "$trace_cpu" "$plain_cpu")" "$result"
    sed -n 's/.*weir: OpenCL layer: /  /p' "$runs/check.err"
done < <(grep -v '^#' tests/layers/programs.txt | sed 's/ | /|/g')
exit "$failed"
