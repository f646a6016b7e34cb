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

# The plugin of pytest, which its entry point loads.
python -c 'import pytest' 2>/dev/null || fail "$python has no pytest: install the Debian package python3-pytest"
cat >test_loop.py <<'END'
import pytest
import weir


@pytest.fixture
def device():
    with weir.open(backend="opencl") as runtime, runtime.device() as device:
        yield device


def work(device, is_mended):
    up, run = device.queue("up"), device.queue("run")
    a, b = device.buffer(1024, "uint8", label="a"), device.buffer(1024, "uint8", label="b")
    up.fill(a, 1)
    if is_mended:
        run.wait(up.record())
    run.copy(b, a)
    run.sync()


def test_broken(device):
    work(device, False)


def test_mended(device):
    work(device, True)


def test_without_weir():
    pass


def overlap(device, is_serial):
    up, run = device.queue("up"), device.queue("run")
    a, b = device.buffer(1 << 22, "float32", placement="host"), device.buffer(1 << 22, "float32")
    c = device.buffer(1 << 22, "float32")
    program = device.program("__kernel void twice(__global float *x) { x[get_global_id(0)] *= 2; }")
    twice = program.kernel("twice")
    run.fill(c, 1.0)
    up.fill(a, 1.0)
    for _ in range(4):
        up.copy(b, a)
        if is_serial:
            run.wait(up.record())
        twice[1 << 14, 256](run, weir.InOut(c))
        if is_serial:
            up.wait(run.record())
    up.sync(), run.sync()


@pytest.mark.weir(overlap="copy/compute>=0.5", costs="costs.ini", gpu="k20c")
def test_overlap(device):
    overlap(device, False)


@pytest.mark.weir(overlap="copy/compute>=0.5", costs="costs.ini", gpu="k20c")
def test_serial(device):
    overlap(device, True)
END
cat >costs.ini <<'END'
[kernel twice]
fixed_ns = 3000000
END
expect_status 1 python -m pytest -q -p no:cacheprovider --weir-check --junitxml=junit.xml test_loop.py -k "not overlap and not serial"
echo "$output"
expect_contains "$output" "test_loop.py:14"
expect_contains "$output" "test_loop.py:17"
expect_contains "$output" "1 failed, 2 passed"
expect_contains "$(cat junit.xml)" "test_loop.py:17"
expect_status 0 python -m pytest -q -p no:cacheprovider --weir-perturb 2 test_loop.py -k "mended"
expect_contains "$output" "3 passed"
expect_status 0 python -m pytest -q -p no:cacheprovider test_loop.py -k "broken"
expect_status 1 python -m pytest -q -p no:cacheprovider test_loop.py -k "overlap or serial"
echo "$output"
expect_contains "$output" "2 passed, 3 deselected, 1 error"
expect_contains "$output" "the overlap of copy/compute is"
