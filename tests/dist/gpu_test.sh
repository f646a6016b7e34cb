#!/bin/bash
# tools/gpu/run.sh on this machine, from the files that tools/gpu/build.sh packs. Without a GPU only
# PoCL runs.
. tests/dist/dist.sh
bundle="$root/tests/dist/weir-gpu.tar.gz"
there="$TEST_TMPDIR/machine"
mkdir "$there"
tar -xzf "$bundle" -C "$there"
size="$(stat -L -c %s "$bundle")"
[ "$size" -le $((64 * 1024 * 1024)) ] || fail "the bundle has $size bytes"

expect_status 0 bash "$there/tools/gpu/run.sh" --help
expect_contains "$output" "usage: run.sh"
expect_status 2 bash "$there/tools/gpu/run.sh" --second 3
expect_contains "$output" "unknown argument '--second'"
expect_status 2 bash "$there/tools/gpu/run.sh" --steps conformanse
expect_contains "$output" "there is no step 'conformanse'"
expect_status 2 bash "$there/tools/gpu/run.sh" --seconds soon
expect_contains "$output" "not 'soon'"

# What a step needs, which is left out without a GPU.
[ -x "$there/tests/kernels/matmul_twin_test" ] && [ -e "$there/kernels/matmul/matmul.json" ] ||
    fail "the bundle lacks the twin of matmul"

status=0
output="$(bash "$there/tools/gpu/run.sh" --steps conformance,arr-coc --seconds 200 \
    --out "$TEST_TMPDIR/out" 2>&1)" || status=$?
table="$(cat "$TEST_TMPDIR/out/table.txt")"
[ "$status" -eq 0 ] || fail "run.sh ended with $status: $output"
expect_contains "$table" "unpack $folder"
expect_contains "$table" "opencl-pocl: conformance"
expect_contains "$table" "0 failed"
expect_contains "$table" "both photographs bit-identical"
expect_contains "$(tar -tzf "$TEST_TMPDIR/out/logs.tar.gz")" "logs/conform-opencl-pocl.xml"
[ -e /dev/nvidia0 ] || expect_contains "$table" "libcuda.so.1"

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
