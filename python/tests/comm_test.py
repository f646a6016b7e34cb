"""Communicators and collectives, with ranks in threads, in devices of one process, and in processes of `weir launch`."""

import ctypes
import os
import subprocess
import sys
import threading

import numpy
import pytest

import weir
from conftest import BACKEND, PLUGINS

RANKS = 3


def in_ranks(name, work):
    """Runs work(comm, device, queue) on each of RANKS threads, each with a runtime of its own; their results."""
    results, failures, met = [None] * RANKS, [], threading.Barrier(RANKS, timeout=60)

    def rank_of(rank):
        try:
            with weir.open("", backend=BACKEND, plugins=PLUGINS.replace("trace, ", "")) as runtime:
                with runtime.device() as device, device.comm(rank, RANKS, f"process:{name}", timeout=60) as comm:
                    met.wait()
                    results[rank] = work(comm, device, device.queue(f"rank{rank}"))
                    device.sync()
                    assert [f["message"] for f in runtime.findings if not f["hint"]] == []
        except BaseException as error:
            failures.append(error)
            met.abort()

    threads = [threading.Thread(target=rank_of, args=(rank,)) for rank in range(RANKS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    if failures:
        raise failures[0]
    return results


def run(comm, device, queue, name, to, of, *arguments):
    """One collective, with numbers 100 * rank + i; dst on the host, or None."""
    src = device.buffer(of, "int32") if of else None
    dst = device.buffer(to, "int32") if to else None
    if src:
        queue.upload(src, numpy.arange(of, dtype="int32") + 100 * comm.rank)
    if dst:
        queue.fill(dst, -1)
    getattr(comm, name)(queue, dst, src, *arguments)
    result = numpy.empty(to or 1, "int32")
    if dst:
        queue.download(result, dst)
        return result.tolist()
    queue.sync()


@pytest.mark.parametrize(
    "name, to, of, arguments, wanted",
    [
        ("all_reduce", 4, 4, (), [[300, 303, 306, 309]] * 3),
        ("all_reduce", 2, 2, ("maximum",), [[200, 201]] * 3),
        ("all_reduce", 2, 2, ("average",), [[100, 101]] * 3),
        ("reduce", 2, 2, ("minimum", 1), [[-1, -1], [0, 1], [-1, -1]]),
        ("broadcast", 2, 2, (2,), [[200, 201]] * 3),
        ("all_gather", 6, 2, (), [[0, 1, 100, 101, 200, 201]] * 3),
        ("reduce_scatter", 2, 6, (), [[300, 303], [306, 309], [312, 315]]),
        ("all_to_all", 3, 3, (), [[0, 100, 200], [1, 101, 201], [2, 102, 202]]),
        ("gather", 6, 2, (), [[0, 1, 100, 101, 200, 201], [-1] * 6, [-1] * 6]),
        ("scatter", 2, 6, (1,), [[100, 101], [102, 103], [104, 105]]),
    ],
)
def test_collectives(name, to, of, arguments, wanted):
    assert in_ranks(f"{name}-{arguments}", lambda *rank: run(*rank, name, to, of, *arguments)) == wanted


def test_operands_of_the_root_may_be_none_elsewhere():
    def work(comm, device, queue):
        is_root = comm.rank == 1
        gathered = run(comm, device, queue, "gather", 3 if is_root else None, 1, 1)
        return gathered, run(comm, device, queue, "broadcast", 2, 2 if is_root else None, 1)

    assert in_ranks("roots", work) == [(None, [100, 101]), ([0, 100, 200], [100, 101]), (None, [100, 101])]


def test_ranks_send_and_receive_in_a_ring():
    def work(comm, device, queue):
        own, got = device.buffer(2, "float64"), device.buffer(2, "float64")
        after, before = (comm.rank + 1) % RANKS, (comm.rank - 1) % RANKS
        queue.fill(own, comm.rank + 0.5)
        comm.exchange(queue, [(own, after)], [(got, before)])
        if comm.rank == 0:
            comm.send(queue, got, 1)
        elif comm.rank == 1:
            comm.recv(queue, own, 0)
        comm.barrier(queue)
        result = numpy.empty(2)
        queue.download(result, own if comm.rank == 1 else got)
        return result.tolist()

    assert in_ranks("ring", work) == [[2.5] * 2, [2.5] * 2, [1.5] * 2]


def test_a_communicator_is_split():
    def work(comm, device, queue):
        part = comm.split(comm.rank % 2, -comm.rank, label="part")
        none = comm.split(None if comm.rank < 2 else 0)
        assert (none is None) == (comm.rank < 2)
        with part:
            return part.rank, part.count, run(part, device, queue, "all_reduce", 1, 1)

    assert in_ranks("split", work) == [(1, 2, [100]), (0, 1, [0]), (0, 2, [100])]


def test_an_abort_fails_on_every_rank_with_its_reason():
    def work(comm, device, queue):
        if comm.rank == 0:
            comm.abort("rank 0 has no more data")
        numbers = device.buffer(4, "float32")
        queue.fill(numbers, 0)
        with pytest.raises(weir.CommError, match="rank 0 has no more data"):
            comm.all_reduce(queue, numbers, numbers)
            queue.sync()
        with pytest.raises(weir.CommError, match="rank 0 has no more data"):
            comm.error()
        queue.recover()

    in_ranks("abort", work)


def test_the_ranks_that_are_left_go_on():
    def work(comm, device, queue):
        if comm.rank == 2:
            return None
        with comm.shrink("left") as left:
            return run(left, device, queue, "all_reduce", 1, 1)

    assert in_ranks("shrink", work) == [[100], [100], None]


@pytest.fixture
def alone(device):
    with device.comm(label="alone") as comm:
        yield comm


def test_one_rank_needs_no_place_to_meet(device, queue, alone):
    assert (alone.rank, alone.count, alone.label, alone.device) == (0, 1, "alone", device)
    assert repr(alone) == "<weir comm 'alone'>"
    assert run(alone, device, queue, "all_reduce", 4, 4) == [0, 1, 2, 3]
    alone.error()
    alone.close()
    with pytest.raises(weir.InvalidError, match="the comm 'alone' is closed"):
        alone.rank


def test_devices_of_a_process_are_ranks(runtime):
    devices = [runtime.device(0) for _ in range(2)]
    comms = weir.comms(devices, label="pair")
    assert [(comm.rank, comm.count) for comm in comms] == [(0, 2), (1, 2)]
    queues = [device.queue() for device in devices]
    buffers = [device.buffer(4, "float32") for device in devices]
    for comm, queue, buffer in zip(comms, queues, buffers):
        queue.fill(buffer, 1 + comm.rank)
        comm.all_reduce(queue, buffer, buffer)
    for queue, buffer in zip(queues, buffers):
        result = numpy.empty(4, "float32")
        queue.download(result, buffer)
        assert (result == 3).all()
    with pytest.raises(weir.InvalidError, match="1 to 64"):
        weir.comms([])
    with pytest.raises(TypeError, match="device is 5; it is a weir.Device"):
        weir.comms([5])


@pytest.mark.parametrize(
    "call, sentence",
    [
        (lambda comm, queue, device: comm.all_reduce(queue, device.buffer(4, "f4"), device.buffer(5, "f4")), "4 elements of dst's type"),
        (lambda comm, queue, device: comm.all_reduce(queue, device.buffer(4, "f4"), device.buffer(4, "i4")), "4 elements of dst's type"),
        (lambda comm, queue, device: comm.all_reduce(queue, device.buffer(4, "c8"), device.buffer(4, "c8")), "integers and floats"),
        (lambda comm, queue, device: comm.all_reduce(queue, device.buffer(4), device.buffer(4), "total"), "'sum', 'product'"),
        (lambda comm, queue, device: comm.all_reduce(queue, device.buffer((4, 4))[:, 1], device.buffer(4)), "not contiguous"),
        (lambda comm, queue, device: comm.broadcast(queue, device.buffer(4), device.buffer(4), 7), "root|rank"),
        (lambda comm, queue, device: comm.exchange(queue, [device.buffer(4)], []), "buffer and the rank of its peer"),
        (lambda comm, queue, device: comm.split(-3), "from 0 on, or None"),
        (lambda comm, queue, device: device.comm(timeout=-1), "number of seconds"),
        (lambda comm, queue, device: device.comm(timeout=None), "0 for the configuration's"),
    ],
)
def test_wrong_operands_are_refused(device, queue, alone, call, sentence):
    with pytest.raises(weir.InvalidError, match=sentence) as raised:
        call(alone, queue, device)
    assert raised.value.file == __file__
    queue.sync()


def test_an_operand_that_is_missing_is_a_type_error(device, queue, alone):
    with pytest.raises(TypeError, match="dst is None; it is a weir.Buffer"):
        alone.all_reduce(queue, None, device.buffer(4))


def test_parts_for_each_rank_have_one_size():
    def work(comm, device, queue):
        with pytest.raises(weir.InvalidError, match="4 elements are no parts of one size for 3 ranks"):
            comm.all_gather(queue, device.buffer(4), device.buffer(1))

    in_ranks("parts", work)


PROGRAM = """
import weir
with weir.open("", backend=%r) as runtime, runtime.device() as device, device.comm(label="grads") as comm:
    queue, numbers = device.queue(), device.buffer(1024, "float32", "host")
    queue.fill(numbers, comm.rank + 1)
    comm.all_reduce(queue, numbers, numbers, "average")
    queue.sync()
    with numbers.host() as array:
        print("rank", comm.rank, "of", comm.count, array[1023])
"""


def test_processes_of_weir_launch_are_ranks(tmp_path):
    command = os.path.abspath("cli/weir")
    if not os.path.exists(command):
        pytest.skip(f"bazel makes {command}")
    (tmp_path / "rank.py").write_text(PROGRAM % BACKEND)
    result = subprocess.run([command, "launch", "-n", "2", sys.executable, str(tmp_path / "rank.py")],
                            capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert result.returncode == 0, result
    assert sorted(line[line.index("rank"):] for line in result.stdout.splitlines()) == ["rank 0 of 2 1.5", "rank 1 of 2 1.5"]


class Tensor:
    """What PyTorch gives of a bfloat16 tensor: DLPack's capsule, here with numpy's memory and another type of elements."""

    def __init__(self, bits):
        self.bits = bits

    def __dlpack_device__(self):
        return self.bits.__dlpack_device__()

    def __dlpack__(self, **unused):
        capsule = self.bits.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        # data, the device's type and number, dimensions: then the code of the elements' type
        ctypes.c_uint8.from_address(pointer(capsule, b"dltensor") + 20).value = 4
        return capsule


def test_tensors_of_bfloat16_are_reduced():
    def work(comm, device, queue):
        bits = (numpy.array([1, 2.5, -3], "float32") * (comm.rank + 1)).view("uint32") >> 16
        gradient = device.from_dlpack(Tensor(bits.astype("uint16")))
        assert (gradient.dtype, gradient.nbytes) == ("bfloat16", 6)
        total = device.buffer(3, "bfloat16")
        comm.all_reduce(queue, total, gradient)
        result = numpy.empty(3, "uint16")
        queue.download(result, total)
        return (result.astype("uint32") << 16).view("float32").tolist()

    assert in_ranks("bfloat16", work) == [[6, 15, -18]] * 3
