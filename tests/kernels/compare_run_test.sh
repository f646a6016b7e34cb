#!/bin/bash
# The program that weir_kernels_test makes, with cases that fail, on PoCL.
. tests/support/shell.sh

program="$PWD/tests/kernels/matmul_twin_test"
export WEIR_MODULE_PATH="$PWD/lib/weir" WEIR_BACKEND=opencl
cd "$TEST_TMPDIR"

# cases BLOCK A: two of them, the first of which is fine.
cases()
{
    cat >cases.json <<TEXT
{"cases": [
  {"name": "fine", "kernel": "matmul", "grid": [1, 1], "block": [8, 16],
   "arguments": [{"values": [2, 3]}, {"values": [5, 7]}, {"values": [0]}, {"value": 1}, {"value": 1}, {"value": 2}]},
  {"name": "other", "kernel": "matmul", "grid": [1], "block": $1,
   "arguments": [{"values": $2}, {"values": [5, 7]}, {"values": [0]}, {"value": 1}, {"value": 1}, {"value": 2}]}
]}
TEXT
}

expect_says 2 "usage: " "$program"
expect_says 1 "absent.json: there is no such file" "$program" absent.json
cases "[8, 16]" "[1, 2]"
expect_says 0 "skipped: kernels/matmul/matmul.cu needs a CUDA device, and the backend is opencl" "$program" cases.json
[ "$(grep -c '^ok    [a-z]*: .c.: 1 elements, equal' <<<"$output")" -eq 2 ] || fail "$output"
cases "[8, 8]" "[1, 2]"
expect_says 1 "ok    fine: 'c'" "$program" cases.json
expect_contains "$output" "FAIL  other: launch: a block of 8×8×1; this kernel requires 8×16×1"
cases "[8, 16]" "[0, 0]"
expect_says 1 "FAIL  other: 'c': the OpenCL C leaves it as it was" "$program" cases.json
cases "[8, 16]" '["x", 0]'
expect_says 1 "case 'other', parameter 'a': its values are numbers" "$program" cases.json
expect_says 1 "null" env WEIR_BACKEND=null "$program" cases.json
expect_says 1 "nothing" env WEIR_BACKEND=nothing "$program" cases.json
