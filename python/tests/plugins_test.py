"""What plugins say about Python programs: the lines of both operations, and failures on purpose."""

import inspect

import pytest

import weir
from conftest import BACKEND


def line():
    return inspect.currentframe().f_back.f_lineno


def test_a_missing_wait_is_found_with_both_lines():
    with weir.open("", backend=BACKEND, plugins="check") as runtime, runtime.device() as device:
        copy, work = device.queue("copy"), device.queue("work")
        a, b = device.buffer(64, label="a"), device.buffer(64, label="b")
        first = line() + 1
        copy.fill(a, 1)
        second = line() + 1
        work.copy(b, a)
        device.sync()
        found = [f for f in runtime.findings if not f["hint"]]
        assert [f["kind"] for f in found] == ["read-after-write"]
        assert (found[0]["first"]["file"], found[0]["first"]["line"]) == (__file__, first)
        assert (found[0]["second"]["file"], found[0]["second"]["line"]) == (__file__, second)
        assert found[0]["buffer"] == "a"


def test_the_wait_mends_it():
    with weir.open("", backend=BACKEND, plugins="check") as runtime, runtime.device() as device:
        copy, work = device.queue("copy"), device.queue("work")
        a, b = device.buffer(64), device.buffer(64)
        copy.fill(a, 1)
        work.wait(copy.record())
        work.copy(b, a)
        device.sync()
        assert [f for f in runtime.findings if not f["hint"]] == []


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


def test_the_simulated_machine_waits_in_its_own_time():
    with weir.open("sim.ini", text="[sim]\ngpu = h200\n", backend="null", plugins="sim") as runtime, runtime.device() as device:
        queue, a, b = device.queue(), device.buffer(1 << 26), device.buffer(1 << 26)
        for _ in range(100):
            queue.copy(a, b)
        queue.sync(timeout=60)
        assert queue.record().sync() is None
