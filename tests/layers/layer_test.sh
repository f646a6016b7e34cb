#!/bin/bash
# What the layer is to a program: the same results, whatever happens to it.
. tests/support/shell.sh

export WEIR_MODULE_PATH="$PWD/lib/weir"
weir=cli/weir pairs=tests/layers/pairs
layer="$PWD/lib/weir/libweir_opencl_layer.so"

# Alone, without a plugin, and beside a layer that cannot be loaded.
expect_status 0 "$pairs" broken write_kernel
plain="$output"
expect_status 0 env OPENCL_LAYERS="$layer" "$pairs" broken write_kernel
[ "$output" = "$plain" ] || fail "the layer changes what the program prints: $output"
expect_says 0 "$plain" env OPENCL_LAYERS="$layer:/none/there.so" "$pairs" broken write_kernel
expect_says 0 "nothing is followed" env OPENCL_LAYERS="$layer" WEIR_PLUGINS=none_such "$pairs" broken write_kernel

# Khronos' loaders of 2025 and later ask for another entry.
expect_status 0 python3 -c '
import ctypes, sys
assert ctypes.CDLL(sys.argv[1]).clInitLayerWithProperties(0, None, None, None, None) == -30' "$layer"

# Left out.
expect_says 1 "was not checked" "$weir" check --no-opencl-layer "$pairs" broken write_kernel

# The lines of a library's callers; here all of the program is such a library.
expect_says 1 "read-after-write" "$weir" check --skip pairs "$pairs" broken write_kernel

# The program's own ways: text, JSON, suppressions, and its status.
expect_says 1 "'clEnqueueWriteBuffer' on 'queue 0' at tests/layers/pairs.c:" "$weir" check "$pairs" broken write_kernel
cat >"$TEST_TMPDIR/known.json" <<'JSON'
[{"kind": "read-after-write", "first": "pairs.c", "reason": "A test."}]
JSON
expect_status 0 "$weir" check --suppressions "$TEST_TMPDIR/known.json" "$pairs" broken write_kernel
expect_status 2 "$weir" check "$pairs" broken no_such_case

# An order that is not seen.
expect_status 1 "$weir" check "$pairs" broken flag
expect_contains "$output" "a flag or an atomic variable between their threads, which is not seen, may order them"
expect_status 1 "$weir" check "$pairs" broken write_kernel
expect_not_contains "$output" "a flag"

# What clang says is kept, but of a source that includes a file, whose comments do not count.
cat >"$TEST_TMPDIR/clang" <<SH
#!/bin/sh
echo run >>"$TEST_TMPDIR/runs"
echo 'define spir_kernel void @dbl(ptr addrspace(1) readonly %0, ptr addrspace(1) writeonly %1) {'
SH
chmod +x "$TEST_TMPDIR/clang"
while IFS='|' read -r runs source; do
    rm -rf "$TEST_TMPDIR/runs" "$TEST_TMPDIR/kept"
    for _ in 1 2; do
        expect_status 1 env WEIR_OPENCL_CLANG="$TEST_TMPDIR/clang" XDG_CACHE_HOME="$TEST_TMPDIR/kept" \
            PAIRS_SOURCE="$(printf '%b' "$source")"$'\n' "$weir" check "$pairs" broken write_kernel
        expect_contains "$output" "'dbl' on 'queue 1' at tests/layers/pairs.c"
        expect_not_contains "$output" "may read and write"
    done
    [ "$(wc -l <"$TEST_TMPDIR/runs")" -eq "$runs" ] || fail "clang ran $(wc -l <"$TEST_TMPDIR/runs") times: $source"
done <<'SOURCES'
1|// No #include.
1|/* No "\\n #include. */ constant char quote = '"'; // include
2|#if 0\n#include "none.h"\n#endif
2|constant char open[] = "/*";\n#if 0\n#include "none.h"\n#endif //*/
2|// goes on \\\n /* \n#if 0\n#include "none.h"\n#endif // */
SOURCES

# A trace has the driver's times.
expect_status 0 "$weir" trace --report --output "$TEST_TMPDIR/trace.json" "$pairs" mended write_kernel
expect_contains "$output" "clEnqueueWriteBuffer"
expect_contains "$output" "dbl"
expect_contains "$output" "to_device"
expect_not_contains "$output" "no times"

# A program that is killed leaves what was found so far.
expect_says 137 "read-after-write" "$weir" check "$pairs" killed write_kernel

# So does one whose driver crashes, and one that ends while a thread enqueues.
expect_says 134 "read-after-write" "$weir" check "$pairs" crashed write_kernel
expect_says 1 "1 finding" timeout 50 "$weir" check "$pairs" left write_kernel

# Signals at any instant of all calls, or of those that PoCL 7.1 makes in one process.
names="$("$pairs" --list 2>"$TEST_TMPDIR/messages")"
"$pairs" mended $names >"$TEST_TMPDIR/messages" 2>&1 || names="$(head -n 30 <<<"$names")"
expect_says 0 "nothing was found" timeout 50 "$weir" check "$pairs" signalled $names

# The loader is closed, and opened again.
expect_status 0 timeout 50 "$weir" check python3 -c '
import ctypes, _ctypes
for _ in range(3):
    cl = ctypes.CDLL("libOpenCL.so.1")
    platform, device, code = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    cl.clCreateContext.restype = ctypes.c_void_p
    assert cl.clGetPlatformIDs(1, ctypes.byref(platform), None) == 0
    assert cl.clGetDeviceIDs(platform, 0xFFFFFFFF, 1, ctypes.byref(device), None) == 0
    assert cl.clCreateContext(None, 1, ctypes.byref(device), None, None, ctypes.byref(code))
    assert code.value == 0
    _ctypes.dlclose(cl._handle)
'

# What is not followed is told at the end: calls by their number, and functions of extensions.
expect_status 0 "$weir" check python3 -c '
import ctypes
cl = ctypes.CDLL("libOpenCL.so.1")
platform, device = ctypes.c_void_p(), ctypes.c_void_p()
for function in (cl.clCreateContext, cl.clCreateCommandQueue, cl.clGetExtensionFunctionAddressForPlatform):
    function.restype = ctypes.c_void_p
assert cl.clGetPlatformIDs(1, ctypes.byref(platform), None) == 0
assert cl.clGetDeviceIDs(platform, ctypes.c_ulong(0xFFFFFFFF), 1, ctypes.byref(device), None) == 0
context = ctypes.c_void_p(cl.clCreateContext(None, 1, ctypes.byref(device), None, None, None))
queue = ctypes.c_void_p(cl.clCreateCommandQueue(context, device, ctypes.c_ulong(0), None))
for _ in range(3):
    cl.clEnqueueAcquireGLObjects(queue, 0, None, 0, None, None)
    assert cl.clGetExtensionFunctionAddressForPlatform(platform, b"clCommandNDRangeKernelKHR")
'
expect_contains "$output" "3 calls of clEnqueueAcquireGLObjects were not followed: findings may be missed"
told="$(grep -c "the program asked for clCommandNDRangeKernelKHR, whose calls are not followed" <<<"$output")" || true
[ "$told" = 1 ] || fail "it is told $told times: $output"

# Beside another layer, on either side of it: that one sees the launches, and the layer the missing wait.
other="$PWD/tests/layers/libother_layer.so"
for layers in "$layer:$other" "$other:$layer"; do
    expect_status 0 env OPENCL_LAYERS="$layers" WEIR_PLUGINS=check WEIR_CHECK_JSON="$TEST_TMPDIR/two.json" \
        "$pairs" broken write_kernel
    expect_contains "$output" "the other layer: 1 launches"
    expect_contains "$(cat "$TEST_TMPDIR/two.json")" "read-after-write"
done
expect_says 1 "the other layer: 1 launches" env OPENCL_LAYERS="$other" "$weir" check "$pairs" broken write_kernel

# opencl-intercept-layer stands in front of OpenCL's loader, and its command may start the other one or be started by it.
if command -v cliloader >/dev/null; then
    for command in "$weir check cliloader -q -h" "cliloader -q -h $weir check"; do
        # shellcheck disable=SC2086 # words
        expect_says 1 "Total Enqueues: 2" $command "$pairs" broken write_kernel
        expect_contains "$output" "read-after-write, 1 time"
        # shellcheck disable=SC2086
        expect_status 0 $command "$pairs" mended write_kernel
    done
else
    echo "SKIPPED: there is no cliloader; opencl-intercept-layer has it"
fi

# Programs that the layer runs load nothing that the program's environment names.
printf '#!/bin/sh\nenv >"%s"\nexit 1\n' "$TEST_TMPDIR/environment" >"$TEST_TMPDIR/clang"
chmod +x "$TEST_TMPDIR/clang"
expect_status 1 env LD_AUDIT=/none/there.so WEIR_OPENCL_CLANG="$TEST_TMPDIR/clang" "$weir" check "$pairs" broken kernel_read
expect_contains "$(cat "$TEST_TMPDIR/environment")" "WEIR_PLUGINS="
expect_status 1 grep -E '^(LD_AUDIT|LD_PRELOAD|OPENCL_LAYERS)=' "$TEST_TMPDIR/environment"

# Children: one that uses nothing, and one that runs another program.
expect_status 0 "$pairs" forked write_kernel
expect_says 1 "1 finding" "$weir" check "$pairs" forked write_kernel

# A program of Weir's own is seen once: the layer sees that the process has Weir's backend.
expect_status 0 env WEIR_BACKEND=opencl OPENCL_LAYERS="$layer" "$weir" devices
expect_not_contains "$output" "not followed"

# A Python program has its own lines, also in a folder with the name of a wrapper.
if /usr/bin/python3 -c 'import pyopencl' 2>/dev/null; then
    mkdir -p "$TEST_TMPDIR/pyopencl"
    cat >"$TEST_TMPDIR/pyopencl/program.py" <<'PY'
import pyopencl as cl

context = cl.create_some_context(interactive=False)
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 64)
cl.enqueue_copy(cl.CommandQueue(context), bytearray(64), buffer)
PY
    expect_says 1 "pyopencl/program.py:5 reads bytes" "$weir" check /usr/bin/python3 "$TEST_TMPDIR/pyopencl/program.py"
else
    echo "lines of Python were not tested: there is no pyopencl; install python3-pyopencl"
fi
