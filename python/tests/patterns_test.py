"""Loader, pipeline, chunks, buckets: what they compute, and no finding under check."""

import os
import signal
import threading
import traceback

import pytest
import weir

numpy = pytest.importorskip("numpy")


@pytest.fixture
def device():
    with weir.open("", backend="opencl", plugins="check") as runtime, runtime.device() as device:
        yield device
        device.sync()
        assert [f["message"] for f in runtime.findings if not f["hint"]] == []


SOURCE = """
__kernel void add(__global const int *in, __global int *sums, int at)
{
    if (get_global_id(0) == 0)
        for (int i = 0; i < 64; i++)
            sums[at] += in[i];
}
__kernel void twice(__global const int *in, __global int *out)
{
    out[get_global_id(0)] = 2 * in[get_global_id(0)];
}
"""


def kernels(device):
    program = device.program(SOURCE)
    return program.kernel("add"), program.kernel("twice")


def test_loader(device):
    add, _ = kernels(device)
    queue = device.queue("train")
    sums = device.buffer(10, "int32", placement="host", label="sums")
    queue.fill(sums, 0)
    for number, batch in enumerate(weir.loader(queue, (numpy.full(64, i, "int32") for i in range(10)))):
        assert batch.shape == (64,) and batch.dtype == "int32"
        add[1, 1](queue, weir.In(batch), weir.InOut(sums), number)
    queue.sync()
    with sums.host("r") as array:
        assert list(array) == [64 * i for i in range(10)]


def test_loader_of_tuples_and_a_smaller_last_batch(device):
    queue = device.queue("train")
    items = [(numpy.zeros((4, 2), "float32"), numpy.zeros(4, "int64"))] * 3 + [(numpy.zeros((1, 2), "float32"),
                                                                               numpy.zeros(1, "int64"))]
    shapes = [(images.shape, labels.shape) for images, labels in weir.loader(queue, items, slots=2)]
    assert shapes == [((4, 2), (4,))] * 3 + [((1, 2), (1,))]


def test_loader_raises_in_place_of_the_batch(device):
    queue = device.queue("train")

    def broken():
        yield b"12345678"
        raise OSError("the disk is gone")

    batches = weir.loader(queue, broken())
    assert next(batches).nbytes == 8
    with pytest.raises(OSError, match="the disk is gone"):
        next(batches)
    with pytest.raises(ValueError, match="slots is 1"):
        weir.loader(queue, [], slots=1)


def test_loader_that_is_left_early(device):
    queue = device.queue("train")
    for batch in weir.loader(queue, (bytes(8) for _ in range(100000))):
        queue.fill(batch, 1)
        break
    queue.sync()


class Slot:
    def __init__(self, device, index):
        self.host = device.buffer(64, "int32", placement="host", label=f"host{index}")
        self.data = device.buffer(64, "int32", label=f"data{index}")
        self.out = device.buffer(64, "int32", placement="host", label=f"out{index}")


def test_pipeline(device):
    _, twice = kernels(device)
    results = []

    def upload(queue, slot, frame):
        with slot.host.host("w") as array:
            array[:] = frame
        queue.copy(slot.data, slot.host)

    def compute(queue, slot, frame):
        twice[1, 64](queue, weir.In(slot.data), weir.Out(slot.out))

    def deliver(slot, frame):
        with slot.out.host("r") as array:
            results.append((frame, int(array[7])))

    with weir.pipeline(device, upload, compute, make=lambda index: Slot(device, index), deliver=deliver) as frames:
        for frame in range(20):
            frames.submit(frame)
    assert results == [(frame, 2 * frame) for frame in range(20)]


def test_pipeline_raises_what_a_stage_raises(device):
    def stage(queue, slot, frame):
        if frame == 2:
            raise KeyError("frame 2")

    frames = weir.pipeline(device, stage)
    frames.submit(1)
    with pytest.raises(KeyError, match="frame 2") as raised:
        frames.submit(2)
    assert traceback.extract_tb(raised.value.__traceback__)[-1].name == "stage"
    frames.submit(3)
    frames.drain()

    def fails(queue, slot, frame):
        queue.host_call(lambda: 1 / 0)

    frames = weir.pipeline(device, fails)
    with pytest.raises(weir.Error) as raised:
        frames.submit(1)  # may see it already
        frames.drain()
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert traceback.extract_tb(raised.value.__cause__.__traceback__)[-1].name == "<lambda>"
    frames.close()


@pytest.mark.parametrize("what", ["loader", "pipeline", "pool"])
def test_their_waits_are_interrupted_by_ctrl_c(device, what):
    gate = threading.Event()

    def never():
        gate.wait()
        yield bytes(8)

    queue, pool = device.queue("train"), weir.queue_pool(device)
    frames = weir.pipeline(device, lambda queue, slot, frame: queue.host_call(gate.wait))
    batches = weir.loader(queue, never())
    frames.submit(1)
    pool.get().host_call(gate.wait)
    # The loader ends its thread, which has the iterable, and so waits for the next item.
    threading.Timer(0.5, gate.set).start()
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        {"loader": lambda: next(batches), "pipeline": frames.drain, "pool": pool.sync}[what]()
    assert what == "loader" or not gate.is_set()
    gate.set()


def test_chunks(device):
    _, twice = kernels(device)
    source = device.buffer((100, 64), "int32", placement="host", label="source")
    result = device.buffer((100, 64), "int32", placement="host", label="result")

    def work(queue, out, data):
        twice[data.shape[0], 64](queue, weir.In(data), weir.Out(out))

    job = weir.chunks(result, source, work, count=7, slots=2)
    for turn in range(3):
        with source.host("w") as array:
            array[...] = numpy.arange(6400).reshape(100, 64) + turn
        job.run().sync()
        with result.host("r") as array:
            assert (array == 2 * (numpy.arange(6400).reshape(100, 64) + turn)).all()
    with pytest.raises(ValueError, match="100 rows"):
        weir.chunks(result, source, work, count=101)


def test_queue_pool(device):
    pool = weir.queue_pool(device, normal=2, high=1, label="requests")
    assert [pool.get().label for _ in range(3)] == ["requests/normal/0", "requests/normal/1", "requests/normal/0"]
    assert pool.get("high").label == "requests/high/0" and len(pool.queues) == 3
    for number in range(4):
        pool.get().fill(device.buffer(8), number)
    pool.sync(timeout=60)
    with pytest.raises(ValueError, match="no queue of the class 'low'; it has normal, high"):
        pool.get("low")
    with pytest.raises(ValueError, match="each has 0 or more"):
        weir.queue_pool(device, normal=-1)
    calls = []
    first, second = pool.get(), pool.get()
    first.host_call(lambda: 1 / 0)
    second.host_call(calls.append, 1)
    with pytest.raises(weir.HostCallError, match="ZeroDivisionError"):
        pool.sync()
    assert calls == [1]
    pool.close()
    assert 1 <= len(weir.queue_pool(device).queues) <= 8


def test_buckets(device):
    compute = device.queue("compute")
    gradients = [device.buffer(64, "int32", placement="host", label=f"gradient{i}") for i in range(4)]
    _, twice = kernels(device)
    other = device.buffer(64, "int32", label="other")
    weights = device.buffer(64, "int32", placement="host", label="weights")

    def reduce(queue, gradient):
        queue.copy(other, gradient)
        twice[1, 64](queue, weir.In(other), weir.Out(gradient))

    reduction = weir.buckets(device, gradients, reduce)
    with pytest.raises(ValueError, match="bucket 3"):
        reduction.wait(3, compute)
    for step in range(3):
        for i in reversed(range(4)):
            compute.fill(gradients[i], step + i)
            reduction.ready(i, compute)
        reduction.wait(3, compute)
        reduction.finish(compute)
        compute.copy(weights, gradients[2])
    compute.sync()
    with weights.host("r") as array:
        assert array[5] == 8
