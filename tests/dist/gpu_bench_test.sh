#!/bin/bash
# The benchmarks of tools/gpu/run.sh on this machine: the files that they write to the folder of
# results. Without a GPU only PoCL is measured.
. tests/dist/dist.sh
bundle="$root/tests/dist/weir-gpu.tar.gz"
there="$TEST_TMPDIR/machine"
mkdir "$there"
tar -xzf "$bundle" -C "$there"

status=0
# The programs must find their own files, and not this test's.
output="$(env -u TEST_SRCDIR -u TEST_WORKSPACE -u RUNFILES_DIR bash "$there/tools/gpu/run.sh" --steps frames,steady,faults --seconds 300 \
    --out "$TEST_TMPDIR/out" 2>&1)" || status=$?
[ "$status" -eq 0 ] || fail "run.sh ended with $status: $output"
table="$(cat "$TEST_TMPDIR/out/table.txt")"
expect_contains "$table" "opencl-pocl: bench arr-coc            coffee.png"
expect_contains "$table" "opencl-pocl: bench arr-coc-noise      noise 1024x1024"
expect_contains "$table" "opencl-pocl: 5000 frames"
expect_contains "$table" "steady: 5000 frames, after a tenth and at the end: "
expect_contains "$table" " 0 failed"
expect_contains "$table" "opencl-pocl: plugin fault"
expect_contains "$table" "opencl-pocl: 5000 frames with faults"
expect_contains "$table" "refuse: 5000 frames, "
for name in arr-coc arr-coc-noise; do
    file="$TEST_TMPDIR/out/bench/$name-opencl-pocl"
    grep -q '"benchmark": "arr-coc"' "$file.json" || fail "there are no figures of $name"
    grep -q '^<svg ' "$file.svg" || fail "there is no plot of $name"
done
