#!/bin/bash
# What kernels print on CUDA, in PTX: run by an interpreter, and taken by ptxas where there is one.
. tests/support/shell.sh

expect_status 0 python3 tests/kernels/printf_ptx.py kernels/ptx/printf.ptx

ptxas="$(command -v ptxas || echo "${CUDA_HOME:-/usr/local/cuda}/bin/ptxas")"
[ -x "$ptxas" ] || exit 0
for version in "6.3 75" "7.0 80" "7.8 90" "8.7 120"; do
    read -r ptx architecture <<<"$version"
    printf '.version %s\n.target sm_%s\n.address_size 64\n' "$ptx" "$architecture" >"$TEST_TMPDIR/module.ptx"
    cat kernels/ptx/printf.ptx >>"$TEST_TMPDIR/module.ptx"
    expect_status 0 "$ptxas" -arch="sm_$architecture" -c "$TEST_TMPDIR/module.ptx" -o "$TEST_TMPDIR/module.cubin"
done
