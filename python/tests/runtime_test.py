"""Runtimes, devices, what their errors say, and what plugins say about Python programs."""

import inspect
import subprocess
import sys

import pytest

import weir
from conftest import BACKEND


def line():
    return inspect.currentframe().f_back.f_lineno


def test_a_runtime_lists_its_devices(runtime):
    assert runtime.backend in ("null", "opencl")
    assert runtime.devices[0].name
    assert runtime.devices[0].memory_bytes > 0


def test_an_error_names_the_line_of_the_caller_and_the_remedy(runtime):
    with pytest.raises(weir.NoDeviceError, match="nope") as raised:
        at = line() + 1
        runtime.device("nope")
    assert (raised.value.file, raised.value.line) == (__file__, at)
    assert raised.value.status == "WEIR_ERROR_NO_DEVICE"
    assert raised.value.remedy in str(raised.value)


def test_closing_the_runtime_closes_its_devices(runtime):
    device = runtime.device()
    runtime.close()
    assert device.closed and runtime.closed
    runtime.close()
    with pytest.raises(weir.InvalidError, match="closed"):
        device.limits


def test_threads_open_runtimes_at_once(runtime):
    program = (
        "import threading, weir\n"
        f"def work(): weir.open('', backend={runtime.backend!r}).device().close()\n"
        "threads = [threading.Thread(target=work) for _ in range(4)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_region_is_a_block(runtime, device, tmp_path):
    queue = device.queue()
    with runtime.region("frame", 7):
        with runtime.region("upload"):
            queue.fill(device.buffer(8), 1)
    queue.sync()
    with pytest.raises(TypeError):
        runtime.region(7)
    with pytest.raises(weir.InvalidError, match="number is -1; it is 0 or more"):
        runtime.region("frame", -1)
    region = runtime.region("late")
    runtime.close()
    if (tmp_path / "trace.json").exists():
        trace = (tmp_path / "trace.json").read_text()
        assert "frame" in trace and "upload" in trace
    with pytest.raises(weir.InvalidError, match="the runtime is closed"):
        region.__enter__()


def test_objects_of_two_runtimes_do_not_mix(runtime, device):
    queue, own = device.queue(), device.buffer(8)
    with weir.open("", backend="null") as other, other.device() as far:
        theirs, buffer, pool = far.queue(), far.buffer(8), far.pool()
        borrowed = pool.allocate(theirs, 8)
        event = theirs.record()
        for call in (
            lambda: queue.copy(own, buffer),
            lambda: queue.fill(buffer, 1),
            lambda: queue.download(bytearray(8), buffer),
            lambda: queue.wait(event),
            lambda: queue.wait(theirs),
            lambda: pool.allocate(queue, 8),
            lambda: borrowed.free(queue),
            lambda: far.comm().barrier(queue),
            lambda: weir.comms([device, far]),
        ):
            with pytest.raises(weir.Error) as raised:
                call()
            assert raised.value.file == __file__ and len(raised.value.message) > 20
    queue.fill(own, 1)
    queue.sync()


def test_a_free_threaded_build_is_refused_with_a_sentence():
    program = "import sysconfig; sysconfig.get_config_var = lambda name: name == 'Py_GIL_DISABLED'\nimport weir"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 1 and "does not support free-threaded builds" in result.stderr


def test_a_subinterpreter_is_refused_with_a_sentence():
    program = (
        "try: import _xxsubinterpreters as sub\n"
        "except ImportError: import _interpreters as sub\n"
        "i = sub.create()\n"
        "try: print(sub.run_string(i, 'import weir'))\n"
        "except Exception as error: print(error)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    # Python 3.12 and later refuse in its own words what does not say that it may be loaded there.
    assert "subinterpreter" in result.stdout, result


def test_an_access_of_the_host_without_a_sync_is_found():
    with weir.open("", backend=BACKEND, plugins="check") as runtime, runtime.device() as device:
        queue, host = device.queue(), device.buffer(64, "uint8", "host")
        queue.fill(host, 1)
        at = line() + 1
        with host.host("r") as array:
            array.sum()
        device.sync()
        found = [f for f in runtime.findings if not f["hint"]]
        assert [(f["kind"], f["second"]["line"]) for f in found] == [("host-read", at)]
        del array


def helper(queue, a, b):
    queue.copy(a, b)


def test_a_line_is_that_of_the_call_also_in_a_comprehension_and_in_exec():
    with weir.open("", backend=BACKEND, plugins="check") as runtime, runtime.device() as device:
        queue, other = device.queue(), device.queue()
        a, b = device.buffer(64), device.buffer(64)
        exec(compile("\n\nqueue.fill(b, 1)", "made.py", "exec"), {"queue": queue, "b": b})
        at = line() + 1
        [other.copy(a, b) for _ in range(1)]
        device.sync()
        found = runtime.findings[0]
        assert (found["first"]["file"], found["first"]["line"]) == ("made.py", 3)
        assert (found["second"]["file"], found["second"]["line"]) == (__file__, at)


def test_a_failure_on_purpose_names_the_line():
    text = "[fault]\nfault = fail\nkinds = copy\nat = 2\n"
    with weir.open("fault.ini", text=text, backend=BACKEND, plugins="fault") as runtime, runtime.device() as device:
        queue, a, b = device.queue("q"), device.buffer(64), device.buffer(64)
        queue.copy(a, b)
        at = line() + 2
        with pytest.raises(weir.Error) as raised:
            queue.copy(a, b)
            queue.sync()
        assert (raised.value.file, raised.value.line) == (__file__, at)
