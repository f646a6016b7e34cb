#!/bin/bash
# With --fast a kernel's code on CUDA has the library's functions in it, as without: a function that treats
# denormals in another way than its caller stays a call, which is two times slower in some programs.
. tests/support/shell.sh

tool="$PWD/kernels/compiler/weir_kernels"
cd "$TEST_TMPDIR"
cat >k.cl <<'TEXT'
__kernel void k(__global float *a, __local float *s)
{
    s[get_local_id(0)] = exp(a[get_global_id(0)]);
    barrier(CLK_LOCAL_MEM_FENCE);
    a[get_global_id(0)] = sin(s[0]) / s[get_num_groups(0)];
}
TEXT
for way in "" --fast; do
    status=0
    output="$("$tool" --symbol s --label l --header s.h --out out --ptx 75 $way k.cl 2>&1)" || status=$?
    if [[ "$output" == *"libdevice.10.bc is not found"* ]]; then
        echo "SKIPPED: $output"
        exit 0
    fi
    [ "$status" -eq 0 ] || fail "$output"
    grep -q 'bar\.sync' out.c || fail "the bundle has no PTX"
    ! grep -o 'call[.a-z]* *[^;]*' out.c || fail "calls stay with '$way'"
done
