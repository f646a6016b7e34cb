"""What the tests share: a runtime and a device on the chain that $WEIR_TEST_BACKEND and $WEIR_TEST_PLUGINS name."""

import os

import pytest

import weir

BACKEND = os.environ.get("WEIR_TEST_BACKEND", "null")
PLUGINS = os.environ.get("WEIR_TEST_PLUGINS", "")
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")

SOURCE = """
kernel void scale(global const float *src, global float *dst, float factor)
{
    size_t i = get_global_id(0);
    dst[i] = src[i] * factor;
}
kernel void every(global int *dst, char c, ushort u, long l, float4 v, int count, local int *scratch)
{
    size_t i = get_global_id(0);
    scratch[get_local_id(0)] = c + u + (int)l + (int)(v.x + v.y + v.z + v.w);
    if (i < count)
        dst[i] = scratch[get_local_id(0)];
}
"""


@pytest.fixture
def runtime(tmp_path):
    text = f"[trace]\nfile = {tmp_path}/trace.json\n" if "trace" in PLUGINS else ""
    with weir.open("test.ini", text=text, backend=BACKEND, plugins=PLUGINS) as runtime:
        yield runtime
        # Tests that make findings have a runtime of their own.
        if not runtime.closed:
            assert [f["message"] for f in runtime.findings if not f["hint"]] == []


@pytest.fixture
def device(runtime):
    with runtime.device() as device:
        yield device


@pytest.fixture
def queue(device):
    return device.queue("queue")


@pytest.fixture
def program(device):
    return device.program(SOURCE, label="program")


@pytest.fixture
def runs_kernels():
    return BACKEND != "null"
