# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154,SC2317 # what is read here is set in run.sh, and the reverse
# The steps of tools/gpu/run.sh, which sources this: one function each, which runs on $backend where the list of steps
# has a colon.

# The suite. A test that hangs is stopped by the command itself.

step_conformance()
{
    local line
    use "$backend"
    run 150 "conform-$backend" "${on[@]}" "$weir" conform --limit 60 ${filter:+"--filter=$filter"} \
        --xml "$logs/conform-$backend.xml"
    judge "$backend: conformance"
    while IFS= read -r line; do
        row - "$backend:   ${line%% *}" "${line#* }"
    done < <(printf '%s\n' "$output" | awk '
        /^FAILED / { print "failed " $2 }
        /^skipped:$/ { listed = 1; next }
        /^$/ { listed = 0 }
        listed { sub(/^ +/, ""); print "skipped " $0 }')
}

# ARR-COC on the two photographs. The first process runs with cold caches and runs
# each image ten times, then nine more processes run each once.

step_arr_coc()
{
    local number arr
    use "$backend"
    arr=("${on[@]}" "$weir" run arr-coc --quiet "$root/tests/data/images/coffee.png"
        "$root/tests/data/images/chelsea.png")
    run 150 "arr-coc-$backend" "${arr[@]}" --repeat 10 --output "$work/arr-coc/$backend.1"
    if [ "$status" -ne 0 ]; then
        judge "$backend: ARR-COC"
        return
    fi
    mkdir -p "$logs/results-$backend" && cp "$work/arr-coc/$backend.1/"*.json "$logs/results-$backend/"
    for number in 2 3 4 5 6 7 8 9 10; do
        run 30 "arr-coc-$backend" "${arr[@]}" --output "$work/arr-coc/$backend.$number"
        [ "$status" -eq 0 ] || break
        # All but NAME.json, which has the times, and the weights, which the relevance follows from.
        run 10 "arr-coc-$backend" diff -r --exclude '*.json' "$work/arr-coc/$backend.1" \
            "$work/arr-coc/$backend.$number"
        [ "$status" -eq 0 ] || break
    done
    judge "$backend: ARR-COC, ten processes" "both photographs bit-identical, caches cold and warm"
}

agreement()
{
    local a="$1" b="$2" line
    [ -d "$work/arr-coc/$a.1" ] && [ -d "$work/arr-coc/$b.1" ] || return 0
    run 20 "agree-$a-$b" "$prefix/libexec/weir/compare" "$work/arr-coc/$a.1" "$work/arr-coc/$b.1" \
        coffee chelsea
    judge "ARR-COC: $a, $b" "$(printf '%s' "$output" | sed -n 1p)"
    while IFS= read -r line; do
        row - "  ${line%%: *}" "${line#*: }"
    done < <(printf '%s\n' "$output" | sed 1d)
}

step_agreement()
{
    local i k
    for ((i = 0; i < ${#backends[@]}; i++)); do
        for ((k = i + 1; k < ${#backends[@]}; k++)); do
            agreement "${backends[i]}" "${backends[k]}"
        done
    done
}

# Test programs that find their data from the folder that they are started in.

in_root()
{
    local limit="$1" log="$2"
    shift 2
    use "$backend"
    run "$limit" "$log" env -C "$root" "${on[@]}" "WEIR_MODULE_PATH=$prefix/lib/weir" "$@"
}

# tests_of LIMIT LOG WHAT PROGRAM [ARGUMENT...]: a test program of the archive, where it has it.
tests_of()
{
    [ -x "$root/$4" ] || return 0
    in_root "$1" "$2-$backend" "${@:4}"
    judge_tests "$backend: $3"
}

# on_cuda PROGRAM: whether there are CUDA and that program; CUDA is the backend then.
on_cuda()
{
    [[ " ${backends[*]} " == *" cuda "* && -x "$root/$1" ]] || return 1
    backend=cuda
}

# Results against float64, and what else has a reference.
step_reference()
{
    tests_of 100 reference "ARR-COC, float64" tests/pipelines/agreement_test
    # The matrix product, against float64 and against fma() in the same order.
    tests_of 60 matmul "matrix product" tests/kernels/matmul_test
    library_functions
    # Images over buffers: formats, filters and addressing.
    tests_of 60 images images tests/kernels/images_test
    # Small networks: gradients against float64, updates, ranks on a grid, products.
    tests_of 100 training "networks, float64" tests/pipelines/train/model_test --gtest_filter=-TrainBlas.*
    porting
}

# The functions that kernels/library adds to libclc's, and drivers' own.
library_functions()
{
    [ -x "$root/tests/kernels/library_test" ] || return 0
    in_root 60 "library-$backend" tests/kernels/library_test
    judge "$backend: functions of OpenCL C" "$(printf '%s\n' "$output" | grep -c '\[       OK \]') tests, $(
        printf '%s\n' "$output" | grep -c '^\[  SKIPPED \] Library\.[A-Za-z0-9]* (') skipped"
}

# What docs/porting.md says to write in place of CUDA, row by row.
porting()
{
    [ -x "$root/tests/porting/device_test" ] || return 0
    in_root 100 "porting-$backend" bash -c "tests/porting/device_test && tests/porting/host_test"
    judge_tests "$backend: rows of porting.md"
}

# Every built-in function of OpenCL C against its definition. The log folder gets the table.
step_builtins()
{
    local table="$logs/builtins-$backend.txt"
    [ -x "$root/tests/kernels/builtins/builtins_test" ] || return 0
    : >"$table"
    in_root 200 "builtins-$backend" env "WEIR_BUILTINS_TABLE=$table" \
        tests/kernels/builtins/builtins_test
    judge "$backend: built-in functions" "$(grep -c '  ok$' "$table") right, $(
        grep -c '  expected: ' "$table") expected failures"
    notes "$backend: built-in functions" < <(grep -E '  (WRONG|expected): ' "$table" | tr -s ' ')
}

# Programs that lack a wait, and their mended forms, with `check` and with `perturb`. The log has a line
# for each.
step_races()
{
    local seeds=20
    [ -x "$root/tests/races/table" ] || return 0
    # NVIDIA's OpenCL takes long to open.
    [ "$backend" != opencl-nvidia ] || seeds=2
    in_root 200 "races-$backend" tests/races/table "$seeds"
    judge "$backend: missing waits" "$(printf '%s\n' "$output" | tail -n 1 | cut -c 1-200)"
    notes "$backend: missing waits" < <(printf '%s\n' "$output" | grep NOT)
    in_root 400 "check-conform-$backend" WEIR_CHECK_REPORT=fail \
        WEIR_CHECK_SUPPRESSIONS=tests/conformance/known.json "$weir" conform --plugins check --limit 60
    judge "$backend: conformance with check"
    # PoCL runs what it gets, which takes long.
    local turns=11
    [ "$backend" != opencl-pocl ] || turns=1
    in_root 100 "check-bench-$backend" tests/plugins/check_bench --turns "$turns"
    judge "$backend: the cost of check"
    notes "$backend: the cost of check" < <(printf '%s\n' "$output" | tail -n +2)
}

# Operations in other orders: programs that lack a wait, and the suite, but for what a native call
# does at its submission.
step_orders()
{
    local native="Interop.FailedNativeCall:Interop.NativeCallMayNotCallItsQueue"
    [ -x "$root/tests/plugins/perturb_null_test" ] || return 0
    in_root 100 "orders-$backend" tests/plugins/perturb_null_test
    judge "$backend: other orders" "$(printf '%s\n' "$output" | grep 'wrong with' | cut -d ' ' -f 1-4 | tr '\n' ';')"
    use "$backend"
    run 200 "orders-conform-$backend" "${on[@]}" "$weir" conform --plugins perturb --limit 60 \
        --filter "-$native:Interop.NativeCallRunsAtOnceUnlessHeld"
    judge "$backend: conformance in another order"
}

# pairs LANGUAGE OPTIONS COMMAND...: each broken one is found, with its two lines and nothing else; each mended one is silent.
pairs()
{
    local what="$backend: pairs, $1"
    in_root 200 "layer-$backend" env "PAIRS_OPTIONS=$2" python3 tests/layers/pairs.py "$weir" "${@:3}"
    judge "$what"
    notes "$what" < <(printf '%s\n' "$output" | grep -v ' pairs, ')
}

# Plain OpenCL programs under `weir check`, which an OpenCL layer follows. Without a clang the driver's word counts.
step_layer()
{
    local clang build=
    [ "$backend" != cuda ] && [ -x "$root/tests/layers/pairs" ] || return 0
    if ! command -v python3 >/dev/null; then
        row absent "$backend: pairs" "python3 is not installed"
        return
    fi
    in_root 20 "layer-$backend" python3 -c 'import ctypes; ctypes.CDLL("libdw.so.1")'
    if [ "$status" -ne 0 ]; then
        row absent "$backend: pairs" "lines need libdw.so.1 (Debian: libdw1, Ubuntu: libdw1t64)"
        return
    fi
    in_root 60 "layer-$backend" "$weir" check tests/layers/pairs broken write_kernel
    if [[ "$output" == *"was not checked"* ]]; then
        row absent "$backend: pairs" "$(last_line)"
        return
    fi
    clang="$(compgen -c clang | grep -m 1 -x 'clang\(-[0-9]*\)\?')" || build=-cl-kernel-arg-info
    row - "$backend: pairs" "accesses: ${clang:-no clang, the program is built with $build}"
    pairs C "" env "PAIRS_BUILD=$build" tests/layers/pairs
    pairs C++ "" tests/layers/pairs_cpp
    pairs "parts with --verify" --verify tests/layers/learn
    in_root 60 "layer-$backend" python3 -c "import pyopencl"
    if [ "$status" -ne 0 ]; then
        row absent "$backend: pairs, Python" "$(last_line)"
        return
    fi
    pairs Python "" python3 tests/layers/pyopencl_pairs.py
}

# What kernels do against what their launches declare. The copies of buffers are not flat.
step_verify()
{
    # Kernels run more than once: they print more often, and their copies are allocated.
    in_root 400 "verify-conform-$backend" WEIR_CHECK_VERIFY=1 WEIR_CHECK_REPORT=fail \
        WEIR_CHECK_SUPPRESSIONS=tests/conformance/known.json "$weir" conform --plugins check --limit 60 \
        --filter "-Counters.AWarmLoopIsFlat:Print.*"
    judge "$backend: conformance with verify"
}

# Kernels in CUDA C++ against the OpenCL C beside them: a row for each result of each case.
step_twins()
{
    on_cuda tests/kernels/matmul_twin_test || return 0
    in_root 60 twins tests/kernels/matmul_twin_test kernels/matmul/matmul.json
    check_rows "cuda: twin of matmul"
    in_root 60 ported tests/porting/device_and_cuda_test tests/porting/device.json
    check_rows "cuda: ported kernels"
    in_root 60 ported-sub-groups tests/porting/sub_groups_and_cuda_test tests/porting/sub_groups.json
    check_rows "cuda: ported kernels"
}

what=""

# What `weir bench` measures, on $backend. After each line: about how long it takes on
# an H200, with CUDA or with OpenCL. PoCL gets what a processor can do in that time.

# figures_of LIMIT NAME COMMAND...: the benchmark, under this name in the folder of figures.
figures_of()
{
    local limit="$1" name="$2-$backend"
    shift 2
    use "$backend"
    run "$limit" "bench-$name" "${on[@]}" "$@" --quiet \
        --output "$figures/$name.json" --plot "$figures/$name.svg"
    what="$backend: bench ${name%-"$backend"}"
    [ "$status" -eq 0 ] || judge "$what"
}

# bench LIMIT NAME ARGUMENT...: of the command.
bench()
{
    figures_of "$1" "$2" "$weir" bench "${@:3}"
}

# job LIMIT NAME ARGUMENT...: of tests/bench, beside the driver's own calls.
job()
{
    figures_of "$1" "$2" env "WEIR_MODULE_PATH=$prefix/lib/weir" \
        "$root/tests/bench/jobs/jobs" "${@:3}"
}

# bench_rows PATTERN: a row for each line of the last benchmark's tables that matches.
bench_rows()
{
    local line count=0
    [ "$status" -eq 0 ] || return 0
    while IFS= read -r line; do
        row ok "$what" "$line"
        count=$((count + 1))
    done < <(printf '%s\n' "$output" | grep -E "$1" | sed 's/^ *//' | tr -s ' ')
    [ "$count" -gt 0 ] || row FAILED "$what" "its output has none of the expected lines"
}

step_frames()
{
    # shellcheck disable=SC2054 # the commas are the benchmark's
    local slots=(--slots 1,2,3,4,8 --graphs off,on)
    [ "$backend" != opencl-pocl ] || slots=("--slots=1,2,3" --turns 2 --frames 5)
    bench 100 arr-coc arr-coc "$root/tests/data/images/coffee.png" \
        "$root/tests/data/images/chelsea.png" "${slots[@]}" # 20 s
    bench_rows '^  (coffee|chelsea)'
    bench 100 arr-coc-noise arr-coc "${slots[@]}" # 15 s
    bench_rows '^  noise'
    step_frames_devices
}

# The pipeline on all devices, where there are several.
step_frames_devices()
{
    local count
    use "$backend"
    run 60 "devices-$backend" "${on[@]}" "$weir" devices --json
    count="$(printf '%s' "$output" | grep -c '"name"')"
    if [ "$count" -lt 2 ]; then
        row absent "$backend: frames on several devices" "there is one device"
        return
    fi
    bench 100 arr-coc-devices arr-coc --devices all --slots 4,8 --graphs off,on # 20 s
    bench_rows '^  noise'
}

step_bench()
{
    local big=() few=()
    if [ "$backend" = cuda ]; then gpu_check; fi
    if [ "$backend" = opencl-pocl ]; then
        few=(--turns 3)
    else
        # shellcheck disable=SC2054 # the commas are the benchmark's
        big=(--size 16M,1G --chunks 16,64,256 --queues auto,8)
    fi
    bench 100 submit submit # 10 s
    bench_rows '^  (sequence|copy|launch|record|wait|round_trip)'
    job 100 submit-raw submit # 10 s
    bench_rows '^  (sequence|copy|launch|record|wait|round_trip|long|empty)|not measured'
    bench 100 overlap overlap --kernel light "${big[@]}" "${few[@]}" # 30 s
    bench_rows '^  .*( auto |at once|one piece)'
    bench 100 overlap-heavy overlap --kernel heavy --orders auto,depth --chunks 64 "${few[@]}" # 8 s
    bench_rows '^  .*( auto |at once|one piece|kernel, )'
    bench 100 pipeline pipeline --slots 1,2,3 --graphs off,on "${few[@]}" # 15 s
    bench_rows '^  (compute-heavy|balanced|copy-heavy) '
    job 60 start start "${few[@]}" # 5 s
    bench_rows '^  (main|first_result|ended) '
    job 60 graph graph "${few[@]}" # 5 s
    bench_rows '^ +[0-9]+ +(Weir|raw)'
    job 60 pool pool "${few[@]}" # 5 s
    bench_rows '^ +[0-9]+  +(pair|set) |^note'
    job 60 priority priority "${few[@]}" # 6 s
    bench_rows '^  (idle|same|high) '
    bench 100 swim swim "${few[@]}" # 20 s
    bench_rows '^  (products|pinned|pageable)|^note'
}

# A long-running pipeline: no allocations, and no leaks.
step_steady()
{
    [ -x "$root/tests/pipelines/loop_test" ] || return 0
    local frames=100000
    [ "$backend" != opencl-pocl ] || frames=5000
    in_root 100 "steady-$backend" env "WEIR_STEADY_FRAMES=$frames" tests/pipelines/loop_test \
        --gtest_filter=ArrCocSteady.ThreeSlots # 15 s
    judge "$backend: $frames frames" "$(printf '%s\n' "$output" | grep '^steady: ')"
    in_root 100 "steady-check-$backend" env "WEIR_STEADY_FRAMES=$frames" WEIR_PLUGINS=check \
        WEIR_CHECK_REPORT=fail tests/pipelines/loop_test --gtest_filter=ArrCocSteady.ThreeSlots
    judge "$backend: $frames frames with check" "$(printf '%s\n' "$output" | grep '^steady: ')"
}

# The plugin fault: its tests, and a long-running pipeline whose operations fail.
step_faults()
{
    local frames=100000
    [ -x "$root/tests/pipelines/loop_test" ] || return 0
    [ "$backend" != opencl-pocl ] || frames=5000
    tests_of 60 fault "plugin fault" tests/plugins/fault_null_test
    in_root 200 "faults-$backend" env "WEIR_INJECTED_FRAMES=$frames" \
        tests/pipelines/loop_test '--gtest_filter=ArrCocInjected.*-ArrCocInjected.Delays'
    judge "$backend: $frames frames with faults" \
        "$(printf '%s\n' "$output" | sed -n 's/^injected: //p' | paste -sd ';' | sed 's/;/; /g')"
}

# Checks that a fake driver does not allow: a row for each one that gpu_check prints.
gpu_check()
{
    [ -x "$root/tests/cuda/gpu_check" ] || return 0
    in_root 100 gpu-check tests/cuda/gpu_check
    check_rows "cuda: gpu_check"
}

# The report of a kernel that faults. The last step, because it destroys the device's
# context.
step_fault()
{
    on_cuda tests/cuda/gpu_check || return 0
    in_root 60 gpu-check-fault tests/cuda/gpu_check fault
    check_rows "cuda: gpu_check fault"
}

# check_rows WHAT: a row for each line that begins with "ok" or "FAIL", and one for an exit status that none
# of them explains.
check_rows()
{
    local line explained=0
    while IFS= read -r line; do
        case "$line" in
        "ok  "*) row ok "$1" "${line#ok    }" ;;
        "FAIL  "*)
            row FAILED "$1" "${line#FAIL  }"
            explained=1
            ;;
        esac
    done < <(printf '%s\n' "$output")
    if [ "$status" -gt 1 ] || [ "$status" -gt "$explained" ]; then judge "$1"; fi
}

# wheel PATTERN DEFAULT: the first such file of a library of NVIDIA's that is installed with pip. The linker finds that
# of a toolkit or a package.
wheel()
{
    python3 -c 'import glob, os, sys
paths = [p for d in sys.path for p in glob.glob(os.path.join(d, "nvidia", sys.argv[1]))]
print((paths + [sys.argv[2]])[0])' "$@" 2>/dev/null || echo "$2"
}

nccl() { wheel 'nccl/lib/libnccl.so.2' auto; }
cublas() { wheel '*/lib/libcublas.so.1?' ""; }

# The products of networks, which fail without cuBLAS.
blas_of_networks()
{
    [ "$status" -eq 0 ] && [[ "$output" != *"[  SKIPPED ]"* ]] || return 0
    in_root 100 blas env "WEIR_TEST_CUBLAS=$(cublas)" tests/pipelines/train/blas_test \
        '--gtest_filter=TrainBlas.*'
    judge_tests "cuda: cuBLAS in networks"
}

# Weir together with other libraries in one process, on CUDA only.
step_interop()
{
    on_cuda tests/interop/cublas_test || return 0
    in_root 100 cublas env "WEIR_TEST_CUBLAS=$(cublas)" tests/interop/cublas_test
    if [ "$status" -eq 0 ] && [[ "$output" == *"[  SKIPPED ]"* ]]; then
        row absent "cuda: cuBLAS" "$(printf '%s\n' "$output" | grep -m 1 -i 'cannot be opened\|no CUDA')"
    else
        judge "cuda: cuBLAS between two kernels" \
            "$(printf '%s\n' "$output" | sed -n 's/^\[ CUBLAS   \] //p')"
    fi
    blas_of_networks
    if ! command -v python3 >/dev/null; then
        row absent "cuda: PyTorch" "python3 is not installed"
        return
    fi
    in_root 200 torch python3 tests/interop/torch_test.py tests/interop/torch_bridge.so
    if [[ "$output" == "skipped: "* ]]; then
        row absent "cuda: PyTorch" "${output#skipped: }"
    else
        check_rows "cuda: PyTorch"
    fi
}

# The path of CUPTI: in a toolkit, or in a Python wheel.
find_cupti()
{
    local version="13 12"
    [[ "$(nvidia-smi 2>/dev/null)" != *"CUDA Version: 12"* ]] || version="12 13"
    for version in $version; do
        find /usr/local /opt /usr/lib /root /home -name "libcupti.so.$version*" -not -type d \
            2>/dev/null | head -n 1
    done | head -n 1
}

# Times of operations and the plugin trace, with CUPTI and without: cost and accuracy.
step_trace()
{
    local path starts
    on_cuda tests/plugins/trace_bench || return 0
    path="$(find_cupti)"
    if [ -n "$path" ]; then
        row ok "cuda: CUPTI" "$path"
    else
        row absent "cuda: CUPTI" "there is no libcupti.so"
    fi
    for starts in exact earliest; do
        [ -n "$path" ] || [ "$starts" = earliest ] || continue
        in_root 100 "times-$starts" env "WEIR_MODULE_PATH=$prefix/lib/weir:tests/plugins/times" \
            "WEIR_TEST_STARTS=$starts" \
            "WEIR_TEST_SECTION=$(printf '[cuda]\ncupti = %s\n' \
                "$([ "$starts" = exact ] && echo "$path" || echo off)")" \
            tests/plugins/times_null_test '--gtest_filter=Times.*'
        judge_tests "cuda: times of operations, $starts"
    done
    in_root 250 trace-bench tests/plugins/trace_bench --cupti "${path:-auto}"
    check_rows "cuda: trace"
    notes "cuda: trace" < <(printf '%s\n' "$output" | sed -n 's/^-     *//p')
}

# Copies between two GPUs.
step_devices()
{
    on_cuda tests/cuda/peer_check || return 0
    in_root 150 peer-check tests/cuda/peer_check
    if [[ "$output" == *"skipped: there is one GPU"* ]]; then
        row absent "cuda: two GPUs" "there is one"
    else
        check_rows "cuda: two GPUs"
    fi
}

# What needs one GPU: a call beside NCCL's own where nothing is sent, and communicators that come and go. Fails
# where there is no NCCL.
one_rank()
{
    local what missing
    job 60 comm comm --ranks 1 --collectives all-reduce,broadcast,all-gather
    missing="$(printf '%s\n' "$output" | sed -n 's/^note: no raw NCCL beside it: //p')"
    if [ -n "$missing" ]; then
        row absent "cuda: collectives" "$missing"
        return 1
    fi
    bench_rows '^  (all-reduce|broadcast|all-gather) '
    in_root 60 comm-submit tests/cuda/comm_check submit
    check_rows "cuda: collectives, submit of one rank"
    in_root 60 comm-churn tests/comm/churn 100 20
    judge "cuda: communicators come and go"
}

# has_two WHAT: whether there are two GPUs, or a row that says there are not.
has_two()
{
    on_cuda tests/cuda/comm_check || return 1
    [ "$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')" -lt 2 ] || return 0
    row absent "$1" "there is one GPU"
    return 1
}

# rank_fails WAYS TIMES SECONDS: a rank of two fails in each of the ways so often, with the time to the other's first
# cause.
rank_fails()
{
    in_root $(($3 + 20)) comm-failures python3 tests/bench/failures/measure.py --transports cuda \
        --ways "$1" --ranks 2 --repetitions "$2" --timeout 5 --seconds "$3"
    notes "cuda: a rank that fails" < <(printf '%s\n' "$output" | grep -E '^\| |^FAILED ')
    judge "cuda: a rank that fails"
}

# Of two processes: against NCCL's own calls, and what is told when a rank fails.
comm_processes()
{
    in_root 90 comm-speed WEIR_COMM_TIMEOUT=5 "$weir" launch -n 2 --no-prefix tests/cuda/comm_check speed
    check_rows "cuda: collectives, speed"
    rank_fails "kill,shrink,skip,count" 1 100
}

# comm_suite P2P-DISABLE: the suites, with the GPUs' direct path or without it.
comm_suite()
{
    in_root 60 "comm-conformance-$1" WEIR_TEST_COMM_DEVICES=2 "NCCL_P2P_DISABLE=$1" \
        tests/comm/conformance_nccl_test '--gtest_filter=*.MatrixOfTwo'
    judge_tests "cuda: collectives, NCCL_P2P_DISABLE=$1"
    in_root 60 "comm-host-$1" WEIR_TEST_COMM_DEVICES=2 "NCCL_P2P_DISABLE=$1" \
        tests/comm/conformance_nccl_test '--gtest_filter=*.MatrixOfTwoInHostMemory'
    judge_tests "cuda: collectives in host memory, NCCL_P2P_DISABLE=$1"
    in_root 60 "comm-steps-$1" "NCCL_P2P_DISABLE=$1" WEIR_COMM_TIMEOUT=30 "$weir" launch -n 2 tests/comm/rank 20
    judge "cuda: two processes, NCCL_P2P_DISABLE=$1"
}

# Collectives by NCCL on one GPU, and on two, of one process and of two. What matters most comes first.
step_comm()
{
    on_cuda tests/cuda/comm_check || return 0
    local -x WEIR_CUDA_NCCL
    WEIR_CUDA_NCCL="$(nccl)"
    one_rank || return 0
    has_two "cuda: collectives of two GPUs" || return 0
    comm_processes
    comm_suite 0
    comm_suite 1
    in_root 60 comm-graphs WEIR_TEST_COMM_DEVICES=2 tests/comm/conformance_nccl_test '--gtest_filter=CommGraph.*'
    judge_tests "cuda: collectives in graphs"
    in_root 60 comm-shrink WEIR_TEST_COMM_DEVICES=2 tests/comm/conformance_nccl_test \
        '--gtest_filter=CommShrink.*-*.ToThoseThatHaveNotLeft:*.Again'
    judge_tests "cuda: collectives, ranks that are left"
}

# A rank of two fails in each way, a few times: a row for each, with the times to the other's first cause.
step_comm_failures()
{
    has_two "cuda: a rank that fails" || return 0
    WEIR_CUDA_NCCL="$(nccl)" rank_fails soon,late 5 300
}

# Communicators of two ranks that come and go.
step_comm_churn()
{
    has_two "cuda: communicators of two ranks" || return 0
    in_root 200 comm-churn-two "WEIR_CUDA_NCCL=$(nccl)" WEIR_COMM_TIMEOUT=30 "$weir" launch -n 2 \
        tests/comm/churn 1000 170
    judge "cuda: communicators of two ranks"
}

# A training step whose gradients are reduced in buckets, beside the same step on the driver, and in PyTorch.
step_ddp()
{
    local nccl blas
    has_two "cuda: ddp" || return 0
    nccl="$(nccl)"
    blas="$(cublas)"
    use cuda
    run 90 ddp "${on[@]}" "WEIR_CUDA_NCCL=$nccl" "WEIR_MODULE_PATH=$prefix/lib/weir" "$weir" launch -n 2 \
        --no-prefix "$root/tests/bench/jobs/jobs" ddp --quiet \
        --cublas "${blas:-libcublas.so.12}" --nccl "${nccl/#auto/libnccl.so.2}" \
        --output "$figures/ddp.json" --plot "$figures/ddp.svg"
    judge "cuda: ddp" "$(printf '%s\n' "$output" | sed -n 's/.*; //; /results checked/p' | head -n 1)"
    notes "cuda: ddp" < <(printf '%s\n' "$output" | grep -E '^ +[0-9]+ +(comp|comm|[0-9.]+ MiB|.* auto: )|^note: ' | tr -s ' ')
    in_root 90 torch-ddp "$weir" launch -n 2 --no-prefix python3 tests/bench/peers/torch_ddp.py
    judge "cuda: ddp in PyTorch" "$(printf '%s\n' "$output" | tail -n 1 | cut -c 1-400)"
}

# train_way PROGRAM [OPTION]...: a row with the steps in a second; $digest is that of the parameters.
train_way()
{
    run 30 "train-$1" "${on[@]}" ${blas:+"LD_LIBRARY_PATH=${blas%/*}:${LD_LIBRARY_PATH-}"} "$weir" train "$@" \
        ${blas:+--products cublas} --side 32 --channels 32 --width 512 --batch 256 --rate 0.001
    judge "cuda: train $*" "$(printf '%s\n' "$output" | sed -n 's/^time *//p')"
    digest="$(printf '%s\n' "$output" | sed -n 's/^digest *//p')"
}

# The training programs, overlapped and serial, which have to have the same parameters; and in PyTorch.
step_train()
{
    local blas digest overlapped program
    [[ " ${backends[*]} " == *" cuda "* ]] || return 0
    blas="$(cublas)"
    use cuda
    for program in ddp accumulate augment encdec; do
        train_way "$program"
        overlapped="$digest"
        train_way "$program" --serial
        [ "$digest" = "$overlapped" ] || row FAILED "cuda: train $program" "overlapped and serial differ"
    done
    train_way augment --on-host
    in_root 60 torch-train python3 tests/bench/peers/torch_train.py --rounds 3
    judge "cuda: augment and encdec in PyTorch" "$(printf '%s\n' "$output" | tail -n 1 | cut -c 1-400)"
}

# Weir compared with raw CUDA, OpenCL and PyTorch programs: a row for each row of that table.
step_peers()
{
    if ! command -v python3 >/dev/null; then
        row absent "side by side" "python3 is not installed"
        return
    fi
    mkdir -p "$work/icd/peers"
    cp "$work"/icd/opencl-*/*.icd "$work/icd/peers/" 2>/dev/null || true
    local folder="${loader_folder[opencl-nvidia]-}"
    folder="${folder:-${loader_folder[opencl-pocl]-}}"
    run 320 peers env ${folder:+"LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"} \
        "OCL_ICD_VENDORS=$work/icd/peers" "WEIR_MODULE_PATH=$prefix/lib/weir" \
        python3 "$root/tests/bench/peers/side_by_side.py" \
        --weir "$weir" --out "$figures" --seconds 290
    notes "side by side" < <(sed '1d; $d' "$figures/side_by_side.txt" 2>/dev/null | tr -s ' ')
    judge "side by side" "$(printf '%s\n' "$output" | grep ' rounds, ')"
}

# The model of the GPU, what kernels cost, and what both are to predict (tests/bench/sim/compare.py, on
# a machine without a GPU). The folder of figures gets all of it.
step_sim()
{
    on_cuda tests/bench/sim/measure.py || return 0
    use cuda
    run 350 sim "${on[@]}" "WEIR_MODULE_PATH=$prefix/lib/weir" python3 "$root/tests/bench/sim/measure.py" --weir "$weir" \
        --jobs "$root/tests/bench/jobs/jobs" --out "$figures/sim"
    notes "cuda: sim" < <(printf '%s\n' "$output" | grep '^measure: ')
    judge "cuda: what sim is to predict" "$(printf '%s\n' "$output" | grep -c '^measured ') cases"
}

# Calls that the driver refuses are not reported: the suite asserts every status, and the end of
# a kernel's parameters is found by such a call.
step_memcheck()
{
    local tool
    if ! tool="$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)"; then
        row absent "cuda: memcheck" "there is no compute-sanitizer"
        return
    fi
    use cuda
    run 240 memcheck "${on[@]}" "$tool" --tool memcheck --target-processes all --error-exitcode 9 \
        --report-api-errors no "$prefix/libexec/weir/conformance"
    judge "cuda: memcheck" "$(printf '%s\n' "$output" | grep -a 'ERROR SUMMARY' |
        sort | uniq -c | tr -s ' ' | tr '\n' ';')"
}
