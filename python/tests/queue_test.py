"""Copies, fills, transfers, events, waits, host calls."""

import asyncio
import os
import signal
import select
import threading
import time

import numpy
import pytest

import weir


def filled(device, queue, shape, dtype="float32"):
    """A buffer on the device with 0, 1, 2, …, and the same array."""
    array = numpy.arange(numpy.prod(shape)).astype(dtype).reshape(shape)
    buffer = device.buffer(shape, dtype)
    queue.upload(buffer, array)
    return buffer, array


def content(queue, buffer):
    array = numpy.empty(buffer.shape, buffer.dtype)
    queue.download(array, buffer)
    return array


@pytest.fixture
def gate(queue):
    """An event that holds the queue's host call until it is set."""
    gate = threading.Event()
    yield gate
    gate.set()


@pytest.mark.parametrize(
    "to, where",
    [
        (numpy.s_[1:3, 2:5], numpy.s_[4:6, 0:3]),
        (numpy.s_[:, 1], numpy.s_[:, 4]),
        (numpy.s_[2], numpy.s_[5]),
        (numpy.s_[0:1, 3:4], numpy.s_[7:8, 5:6]),
    ],
)
def test_parts_copy_as_numpys_do_in_two_dimensions(device, queue, to, where):
    src, wanted_src = filled(device, queue, (8, 6))
    dst, wanted = filled(device, queue, (8, 6))
    queue.copy(dst[to], src[where])
    wanted[to] = wanted_src[where]
    assert (content(queue, dst) == wanted).all()


def test_parts_copy_as_numpys_do_in_three_dimensions(device, queue):
    src, array = filled(device, queue, (6, 5, 4), "int16")
    dst = device.buffer((3, 2, 2), "int16")
    queue.copy(dst, src[2:5, 1:3, 1:3])
    assert (content(queue, dst) == array[2:5, 1:3, 1:3]).all()


def test_fills_have_the_buffers_type(device, queue):
    buffer, array = filled(device, queue, (6, 4))
    queue.fill(buffer[1:3, 1:3], 9)
    array[1:3, 1:3] = 9
    queue.fill(buffer[5], b"\0\0\x80\x3f")
    array[5] = 1
    assert (content(queue, buffer) == array).all()


@pytest.mark.parametrize("dtype, value", [("int8", 128), ("uint8", -1), ("uint16", 1 << 16), ("int64", 1 << 63), ("int32", 1.5), ("float32", "one")])
def test_a_value_outside_its_type_is_refused(device, queue, dtype, value):
    with pytest.raises(weir.InvalidError, match="value is"):
        queue.fill(device.buffer(8, dtype), value)


@pytest.mark.parametrize("dtype, value", [("int8", -128), ("uint8", 255), ("int64", -(1 << 63)), ("int64", (1 << 63) - 1), ("uint64", (1 << 64) - 1), ("float16", 0.5), ("bool", True), ("int32", numpy.int64(7))])
def test_values_at_the_edge_of_their_type_are_taken(device, queue, dtype, value):
    buffer = device.buffer(8, dtype)
    queue.fill(buffer, value)
    assert (content(queue, buffer) == numpy.array([value], dtype)).all()


@pytest.mark.parametrize(
    "array, sentence",
    [
        (numpy.ones(8, "float64"), "array.astype\\('float32'\\)"),
        (numpy.ones(8, "int32"), "array.astype\\('float32'\\)"),
        (numpy.ones(16, "float32")[::2], "numpy.ascontiguousarray"),
        (numpy.ones(4, "float32"), "has 16 bytes"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(device, queue, array, sentence):
    with pytest.raises(weir.InvalidError, match=sentence):
        queue.upload(device.buffer(8, "float32"), array)


def test_a_download_into_a_read_only_array_is_refused(device, queue):
    buffer, _ = filled(device, queue, 8)
    array = numpy.ones(8, "float32")
    array.flags.writeable = False
    with pytest.raises(weir.InvalidError, match="read-only"):
        queue.download(array, buffer)
    with pytest.raises(TypeError):
        queue.upload(buffer, 5)


def test_copies_of_other_shapes_and_types_are_refused(device, queue):
    with pytest.raises(weir.InvalidError, match="their shapes differ"):
        queue.copy(device.buffer(8), device.buffer(9))
    with pytest.raises(weir.InvalidError, match="their elements differ"):
        queue.copy(device.buffer(8, "f4"), device.buffer(8, "i4"))
    with pytest.raises(TypeError, match="src is 5; it is a weir.Buffer"):
        queue.copy(device.buffer(8), 5)
    with pytest.raises(TypeError, match="copy\\(dst, src\\)"):
        queue.copy(device.buffer(8))


def test_events_have_times(device):
    if device.limits.timing_history == 0:
        pytest.skip("this backend has no times of events")
    queue = device.queue("timed", timing=True)
    buffer = device.buffer(1 << 20)
    first = queue.record()
    queue.fill(buffer, 1)
    last = queue.record()
    queue.sync()
    assert last.time_ns >= first.time_ns
    assert first.elapsed_ns(last) == last.time_ns - first.time_ns == -last.elapsed_ns(first)
    with pytest.raises(TypeError, match="end is 5; it is a weir.Event"):
        first.elapsed_ns(5)


def test_several_events_are_waited_for(device, queue, gate):
    other = device.queue("other")
    queue.host_call(gate.wait)
    held, free = queue.record(), other.record()
    assert weir.sync_any([held, free], timeout=60) == 1
    with pytest.raises(weir.Timeout):
        weir.sync_all([held, free], timeout=0.02)
    with pytest.raises(weir.Timeout):
        weir.sync_any([held], 0)
    gate.set()
    weir.sync_all(iter([held, free]))
    assert weir.sync_any([held]) == 0
    weir.sync_all([])
    with pytest.raises(TypeError, match="event is 5; it is a weir.Event"):
        weir.sync_all([held, 5])
    with pytest.raises(TypeError, match="not iterable"):
        weir.sync_all(held)


def test_a_wait_that_is_too_short_times_out(device, queue, gate):
    queue.host_call(gate.wait)
    event = queue.record()
    assert not event.done
    for wait in (event.sync, queue.sync, device.sync):
        with pytest.raises(weir.Timeout) as raised:
            wait(timeout=0.02)
        assert isinstance(raised.value, TimeoutError)
    with pytest.raises(weir.Timeout):
        event.sync(0)
    gate.set()
    event.sync(timeout=60)
    assert event.done


@pytest.mark.parametrize("timeout", [-1, float("nan"), "soon"])
def test_a_timeout_is_a_number_of_seconds(queue, timeout):
    with pytest.raises((weir.InvalidError, TypeError)):
        queue.sync(timeout)


@pytest.mark.parametrize("what", ["event", "queue", "device", "close", "runtime", "all", "any", "upload", "download", "await"])
def test_every_wait_is_interrupted_by_ctrl_c(device, queue, gate, what):
    queue.host_call(gate.wait)
    buffer, memory = device.buffer(8), bytearray(8)

    async def wait():
        await event

    event = queue.record()
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        {
            "event": event.sync,
            "queue": queue.sync,
            "device": device.sync,
            "close": device.close,
            "all": lambda: weir.sync_all([event]),
            "any": lambda: weir.sync_any([event]),
            "runtime": device.runtime.close,
            "upload": lambda: queue.upload(buffer, memory),
            "download": lambda: queue.download(memory, buffer),
            "await": lambda: asyncio.run(wait()),
        }[what]()
    assert not device.closed


def test_other_threads_run_while_one_waits(queue, gate):
    queue.host_call(gate.wait)
    thread = threading.Thread(target=queue.sync)
    thread.start()
    ticks = 0
    while ticks < 100:
        time.sleep(0)
        ticks += 1
    assert thread.is_alive()
    gate.set()
    thread.join(60)
    assert not thread.is_alive()


def test_a_descriptor_becomes_readable(queue, gate):
    queue.host_call(gate.wait)
    descriptor = queue.record().fd()
    try:
        assert select.select([descriptor], [], [], 0)[0] == []
        gate.set()
        assert select.select([descriptor], [], [], 60)[0] == [descriptor]
    finally:
        os.close(descriptor)


def test_events_are_awaited(queue, gate):
    order = []

    async def wait(event):
        await event
        order.append("event")

    async def both():
        queue.host_call(gate.wait)
        task = asyncio.create_task(wait(queue.record()))
        await asyncio.sleep(0.02)
        order.append("sleep")
        gate.set()
        await task

    asyncio.run(both())
    assert order == ["sleep", "event"]


def test_a_cancelled_await_closes_its_descriptor(queue, gate):
    queue.host_call(gate.wait)
    before = len(os.listdir("/proc/self/fd"))

    async def cancelled():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(wait(), 0.02)

    async def wait():
        await queue.record()

    for _ in range(3):
        asyncio.run(cancelled())
    assert len(os.listdir("/proc/self/fd")) <= before + 3  # Weir's own, until the events are complete


def test_a_host_call_may_submit(device, queue):
    buffer = device.buffer(8)
    done = threading.Event()

    def more():
        queue.fill(buffer, 7)
        queue.host_call(done.set)

    queue.host_call(more)
    assert done.wait(60)
    assert (content(queue, buffer) == 7).all()


def test_an_exception_in_a_host_call_is_the_cause_with_its_traceback(device, queue):
    def wrong():
        raise LookupError("no such frame")

    at = wrong.__code__.co_firstlineno + 4
    queue.host_call(wrong)
    with pytest.raises(weir.HostCallError, match="LookupError: no such frame") as raised:
        queue.sync()
    assert (raised.value.file, raised.value.line) == (__file__, at - 0)
    cause = raised.value.__cause__
    assert isinstance(cause, LookupError)
    frames = []
    traceback = cause.__traceback__
    while traceback:
        frames.append(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    assert frames[-1] == "wrong"
    # The failure is the queue's until its recovery.
    with pytest.raises(weir.HostCallError):
        queue.fill(device.buffer(8), 1)
    queue.recover()
    queue.fill(device.buffer(8), 1)
    queue.sync()


def test_functions_that_cannot_be_called_are_refused(queue):
    with pytest.raises(TypeError, match="something that can be called"):
        queue.host_call(5)


def test_a_cause_is_that_of_its_own_line(device, queue):
    other, causes = device.queue("other"), []

    def wrong():
        causes.append(KeyError("the same"))
        raise causes[-1]

    queue.host_call(wrong)
    pytest.raises(weir.HostCallError, queue.sync)
    other.host_call(wrong)
    pytest.raises(weir.HostCallError, other.sync)
    queue.recover()
    queue.host_call(wrong)
    with pytest.raises(weir.HostCallError) as raised:
        other.sync()
    assert raised.value.__cause__ is causes[1]
    with pytest.raises(weir.HostCallError) as raised:
        queue.sync()
    assert raised.value.__cause__ is causes[2]
    queue.recover()
    other.recover()
