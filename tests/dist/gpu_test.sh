#!/bin/bash
# tools/gpu/run.sh on this machine, from the files that tools/gpu/build.sh packs. Without a GPU only
# PoCL runs.
. tests/dist/dist.sh
bundle="$root/tests/dist/weir-gpu.tar.gz"
unset XML_OUTPUT_FILE # what the steps run are not this test's own
there="$TEST_TMPDIR/machine"
mkdir "$there"
tar -xzf "$bundle" -C "$there"
size="$(stat -L -c %s "$bundle")"
[ "$size" -le $((64 * 1024 * 1024)) ] || fail "the bundle has $size bytes"

expect_says 0 "usage: run.sh" bash "$there/tools/gpu/run.sh" --help
expect_says 2 "unknown argument '--second'" bash "$there/tools/gpu/run.sh" --second 3
expect_says 2 "there is no step 'conformanse'" bash "$there/tools/gpu/run.sh" --steps conformanse
expect_says 2 "not 'soon'" bash "$there/tools/gpu/run.sh" --seconds soon

# What a step needs, which is left out without a GPU.
[ -x "$there/tests/kernels/matmul_twin_test" ] && [ -e "$there/kernels/matmul/matmul.json" ] ||
    fail "the bundle lacks the twin of matmul"

# The suite, ARR-COC, and the benchmarks with the files that they write to the folder of results. The programs must
# find their own files, and not this test's.
status=0
output="$(env -u TEST_SRCDIR -u TEST_WORKSPACE -u RUNFILES_DIR bash "$there/tools/gpu/run.sh" \
    --steps conformance,arr-coc,frames,steady,faults,layer --filter 'Copy*' --seconds 500 --out "$TEST_TMPDIR/out" 2>&1)" ||
    status=$?
table="$(cat "$TEST_TMPDIR/out/table.txt")"
[ "$status" -eq 0 ] || fail "run.sh ended with $status: $output"
for row in "unpack $folder" "opencl-pocl: conformance" "0 failed" "both photographs bit-identical" \
    "opencl-pocl: bench arr-coc            coffee.png" "opencl-pocl: bench arr-coc-noise      noise 1024x1024" \
    "opencl-pocl: 5000 frames" "steady: 5000 frames, 0 failed, after a tenth and at the end: " "opencl-pocl: plugin fault" \
    "opencl-pocl: 5000 frames with faults" "refuse: 5000 frames, " "opencl-pocl: pairs, C "; do
    expect_contains "$table" "$row"
done
expect_contains "$(tar -tzf "$TEST_TMPDIR/out/logs.tar.gz")" "logs/conform-opencl-pocl.xml"
[ -e /dev/nvidia0 ] || expect_contains "$table" "libcuda.so.1"
for name in arr-coc arr-coc-noise; do
    file="$TEST_TMPDIR/out/bench/$name-opencl-pocl"
    grep -q '"benchmark": "arr-coc"' "$file.json" || fail "there are no figures of $name"
    grep -q '^<svg ' "$file.svg" || fail "there is no plot of $name"
done

# Collectives of one rank, on the tests' driver and NCCL. The stand-in of comm_check takes no time, and that of
# Python tells where NCCL is.
mkdir "$TEST_TMPDIR/bin"
printf '#!/bin/bash\necho "$NCCL_OF_TEST"\n' >"$TEST_TMPDIR/bin/python3"
printf '#!/bin/bash\necho "ok    $1 with $WEIR_CUDA_NCCL"\n' >"$there/tests/cuda/comm_check"
chmod +x "$TEST_TMPDIR/bin/python3"

# collectives NCCL [VARIABLE=VALUE]
collectives()
{
    expect_status 0 env "PATH=$TEST_TMPDIR/bin:$PATH" "NCCL_OF_TEST=$1" ${2+"$2"} \
        "LD_LIBRARY_PATH=$root/tests/support/libcuda:$root/tests/support/libnccl" \
        bash "$there/tools/gpu/run.sh" --steps comm --out "$TEST_TMPDIR/comm"
}
collectives "$root/tests/support/libnccl/libnccl.so.2"
expect_contains "$output" "cuda: bench comm"
expect_contains "$output" "all-gather 16777216"
expect_contains "$output" "cuda: collectives, submit of one rank  submit with $root/tests/support"
expect_contains "$output" "cuda: communicators come and go       descriptors "
collectives auto WEIR_TEST_NCCL_VERSION=21000
expect_contains "$output" "absent   cuda: collectives                     NCCL 2.10.0 is older than 2.18"
expect_not_contains "$output" "come and go"

# On two GPUs, with stand-ins for what needs NCCL in two processes: each step, also after one that fails.
printf '#!/bin/bash\nprintf "GPU 0: a card\\nGPU 1: a card\\n"\n' >"$TEST_TMPDIR/bin/nvidia-smi"
printf '#!/bin/bash\n[ "$1" = -c ] || { echo "| killed | 1.0 / 2.0 |"; echo "$*"; exit; }\necho "$NCCL_OF_TEST"\n' \
    >"$TEST_TMPDIR/bin/python3"
printf '#!/bin/bash\necho "rank $RANK of $WORLD_SIZE, $*, NCCL_P2P_DISABLE=${NCCL_P2P_DISABLE-}"\n' >"$there/tests/comm/rank"
printf '#!/bin/bash\necho "churn $*"\nexit $((RANK * 7))\n' >"$there/tests/comm/churn"
chmod +x "$TEST_TMPDIR/bin/nvidia-smi" "$there/tests/comm/rank" "$there/tests/comm/churn"
expect_status 1 env "PATH=$TEST_TMPDIR/bin:$PATH" "NCCL_OF_TEST=$root/tests/support/libnccl/libnccl.so.2" \
    "LD_LIBRARY_PATH=$root/tests/support/libcuda:$root/tests/support/libnccl" WEIR_TEST_CUDA_DEVICES=2 \
    bash "$there/tools/gpu/run.sh" --steps comm-churn,comm-failures,comm --out "$TEST_TMPDIR/two"
for row in "ok       cuda: collectives, speed              speed with " \
    "--transports cuda --ways kill,shrink,skip,count --ranks 2 --repetitions 1" \
    "ok       cuda: collectives, NCCL_P2P_DISABLE=1  1 tests" "of 2, 20, NCCL_P2P_DISABLE=1" \
    "-        cuda: a rank that fails               | killed | 1.0 / 2.0 |" \
    "--transports cuda --ways soon,late --ranks 2 --repetitions 5" \
    "FAILED   cuda: communicators of two ranks      status 7: "; do
    expect_contains "$output" "$row"
done

# If there was no time for any step, nothing has passed, which is not a success.
expect_status 1 bash "$there/tools/gpu/run.sh" --seconds 0 --out "$TEST_TMPDIR/none" \
    --steps conformance,verify,ddp,train,sim,peers,memcheck
expect_contains "$output" "no time"
expect_contains "$output" "0 steps passed"

# A step that fails does not end the run, but sets the exit status.
printf '#!/bin/bash\nexit 7\n' >"$there/tests/pipelines/agreement_test"
expect_status 1 bash "$there/tools/gpu/run.sh" --steps reference --out "$TEST_TMPDIR/failed"
expect_contains "$output" "opencl-pocl: ARR-COC, float64"
expect_contains "$output" "status 7"
expect_contains "$output" ", 1 failed"
