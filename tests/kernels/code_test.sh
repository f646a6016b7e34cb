#!/bin/bash
# What code comes of the kernels for CUDA.
. tests/support/shell.sh

tool="$PWD/kernels/compiler/weir_kernels"
cd "$TEST_TMPDIR"

# Makes out.c, a bundle with PTX, of k.cl.
make() {
    local output status=0
    output="$("$tool" --symbol s --label l --out out --ptx 75 "$@" k.cl 2>&1)" || status=$?
    if [[ "$output" == *"libdevice.10.bc is not found"* ]]; then
        echo "SKIPPED: $output"
        exit 0
    fi
    [ "$status" -eq 0 ] || fail "$output"
    grep -q 'entry k' out.c || fail "the bundle has no PTX"
}

# The loads, stores and barriers of out.c, in their order.
steps() {
    grep -oE '(ld|st)\.(global\.nc|global|shared)|bar\.sync' out.c | tr '\n' ' '
}

expect_steps() {
    [ "$(steps)" = "$1 " ] || fail "$2: $(steps)"
}

# With --fast a kernel's code has the library's functions in it, as without: a function that treats
# denormals in another way than its caller stays a call, which is two times slower in some programs.
cat >k.cl <<'TEXT'
__kernel void k(__global float *a, __local float *s)
{
    s[get_local_id(0)] = exp(a[get_global_id(0)]);
    barrier(CLK_LOCAL_MEM_FENCE);
    a[get_global_id(0)] = sin(s[0]) / s[get_num_groups(0)];
}
TEXT
for way in "" --fast; do
    make $way
    ! grep -o 'call[.a-z]* *[^;]*' out.c || fail "calls stay with '$way'"
done

# What others write through a pointer that is restrict is read after a barrier, not kept from before.
cat >k.cl <<'TEXT'
void rotate_in(__local float *restrict s, int i)
{
    const float next = s[i + 1];
    barrier(CLK_LOCAL_MEM_FENCE);
    s[i] += next;
}
__kernel void k(__global float *restrict o, __local float *restrict s, __global const float *restrict in)
{
    const int i = get_local_id(0);
    s[i] = in[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    rotate_in(s, i);
    barrier(CLK_LOCAL_MEM_FENCE);
    o[i] = s[i + 2];
    barrier(CLK_GLOBAL_MEM_FENCE);
    o[i + 64] = o[i];
}
TEXT
make
expect_steps "ld.global.nc st.shared bar.sync ld.shared bar.sync ld.shared st.shared bar.sync ld.shared st.global \
bar.sync ld.global st.global" "barriers are passed over"

# With --restrict loads do not wait for stores.
cat >k.cl <<'TEXT'
__kernel void k(__global const float *a, __global float *o, __global float *p)
{
    o[get_global_id(0)] = 2 * a[0];
    p[get_global_id(0)] = a[0];
}
TEXT
make
expect_steps "ld.global st.global ld.global st.global" "a load is left out"
make --restrict
expect_steps "ld.global.nc st.global st.global" "--restrict"

# A vector of halves is compared as others are: -1 is true.
cat >k.cl <<'TEXT'
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
__kernel void k(__global short2 *o, __global half2 *h)
{
    o[0] = isinf(h[0]);
}
TEXT
make
grep -qE 'selp.b16.*, -1, 0,' out.c || fail "isinf of halves: $(grep selp out.c)"
