#!/bin/bash
# wheel_test.sh PYTHON: the wheel as a user has it, in a folder of pip's, without a network, and away from the sources.
. tests/support/shell.sh

python="$1"
wheel="$(echo "$PWD"/python/wheel/*.whl)"
unset WEIR_CONFIG WEIR_BACKEND WEIR_PLUGINS WEIR_MODULE_PATH WEIR_OPENCL_DRIVER PYTHONPATH
export POCL_CACHE_DIR="${POCL_CACHE_DIR:-$TEST_TMPDIR/pocl}" HOME="$TEST_TMPDIR" PIP_DISABLE_PIP_VERSION_CHECK=1
cd "$TEST_TMPDIR"
"$python" -m venv --system-site-packages venv ||
    fail "$python has no venv: install the Debian package python3-venv (tools/setup.sh --tests)"
expect_status 0 venv/bin/pip install --no-index --no-deps --quiet "$wheel"
export PATH="$PWD/venv/bin:$PATH"

# What is in it, and what its tag says: no test, and no glibc newer than the tag's.
tag="$(sed -n 's/^Tag: //p' venv/lib/python*/site-packages/weir_gpu-*.dist-info/WHEEL)"
[[ "$tag" =~ ^cp310-abi3-manylinux_2_([0-9]+)_x86_64$ ]] || fail "the tag is '$tag'"
[[ "$wheel" == *-"$tag".whl ]] || fail "$wheel has not the tag $tag"
newest="$(find venv/lib/python*/site-packages/weir -name '*.so*' -o -name weir -type f | xargs readelf -V -W |
    grep -o 'Name: GLIBC_2\.[0-9]*' | sed 's/.*\.//' | sort -n | tail -n 1)"
[ "$newest" -le "${BASH_REMATCH[1]}" ] || fail "a file asks for GLIBC_2.$newest, and the tag says $tag"
expect_status 1 grep -c 'tests\?/' venv/lib/python*/site-packages/weir_gpu-*.dist-info/RECORD
# pip refuses it where the C library is older, or is musl.
for platform in manylinux_2_17_x86_64 musllinux_1_2_x86_64 manylinux_2_35_aarch64; do
    expect_status 1 venv/bin/pip download --no-index --no-deps --only-binary :all: --platform "$platform" -d other "$wheel"
    expect_contains "$output" "not a supported wheel"
done
expect_status 0 venv/bin/pip download --no-index --no-deps --only-binary :all: --platform manylinux_2_40_x86_64 \
    --platform "${tag#cp310-abi3-}" -d other "$wheel"

# The command and the package find each other and the modules, from any folder.
mkdir away && cd away
expect_status 0 weir --version
expect_status 0 python -m weir doctor
expect_contains "$output" "site-packages/weir/"
expect_status 3 env WEIR_BACKEND=opencl WEIR_OPENCL_LIBRARY=libnone.so.1 python -m weir doctor
expect_contains "$output" "weir-gpu[pocl]"
cat >copies.py <<'END'
import weir
with weir.open(backend="null") as runtime, runtime.device() as device:
    up, run = device.queue("up"), device.queue("run")
    a, b = device.buffer(1024, "uint8", label="a"), device.buffer(1024, "uint8", label="b")
    up.fill(a, 1)
    run.copy(b, a)
    run.sync()
    for each in (up, run, a, b):
        each.close()
END
expect_status 1 weir check python copies.py
expect_contains "$output" "copies.py:5"
expect_contains "$output" "copies.py:6"
