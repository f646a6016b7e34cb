"""Buffers, parts of them, and the host's access to their memory."""

import gc

import numpy
import pytest

import weir


@pytest.mark.parametrize(
    "dtype, name, size",
    [
        ("f4", "float32", 4),
        ("<f8", "float64", 8),
        ("int16", "int16", 2),
        (numpy.uint32, "uint32", 4),
        (numpy.dtype("c8"), "complex64", 8),
        ("float16", "float16", 2),
        (float, "float64", 8),
        (bool, "bool", 1),
        ("?", "bool", 1),
    ],
)
def test_types_have_many_names(device, dtype, name, size):
    buffer = device.buffer((2, 3), dtype, "host")
    assert (buffer.dtype, buffer.shape, buffer.nbytes) == (name, (2, 3), 6 * size)
    with buffer.host("w") as array:
        assert array.dtype.name == name
        array[:] = 1


def test_the_host_sees_and_writes_the_memory(device):
    buffer = device.buffer((4, 8), "float32", "host")
    with buffer.host("w") as array:
        array[:] = numpy.arange(32).reshape(4, 8)
        assert isinstance(array, numpy.ndarray)
    with buffer[1:3, 2:4].host("r") as array:
        assert array.tolist() == [[10, 11], [18, 19]]
        assert not array.flags.writeable


def test_an_array_kept_past_its_block_refuses_writes_and_keeps_the_memory(device):
    buffer = device.buffer(8, "float32", "host")
    with buffer.host("w") as array:
        array[:] = 5
        part = array[2:4]
    with pytest.raises(ValueError, match="read-only"):
        array[:] = 6
    buffer.close()
    assert array.tolist() == [5] * 8 and part.tolist() == [5, 5]


def test_a_memoryview_kept_past_its_block_refuses_every_use(device):
    access = device.buffer(8, "float32", "host").host("w")
    view = memoryview(access)
    assert (view.shape, view.format, view.readonly) == ((8,), "f", False)
    access.end()
    access.end()
    with pytest.raises(BufferError, match="the access has ended; begin another one with buffer.host"):
        memoryview(access)
    view.release()


def test_a_device_with_a_living_array_is_closed_when_the_array_has_gone(runtime):
    device = runtime.device()
    buffer = device.buffer(1 << 16, "uint8", "host", label="kept")
    with buffer.host("w") as array:
        array[:] = 7
    with pytest.warns(ResourceWarning, match="until arrays of buffer 'kept' have gone"):
        device.close()
    assert device.closed and buffer.closed
    with pytest.raises(weir.InvalidError, match="closed"):
        buffer.host()
    assert array.sum() == 7 << 16
    assert "1 open" in repr(runtime)
    del array
    gc.collect()
    assert "0 open" in repr(runtime)


def test_parts_are_numpys(device):
    buffer = device.buffer((4, 5, 6), "int32")
    whole = numpy.zeros((4, 5, 6), "int32")
    for index in (0, -1, slice(1, 3), (slice(None), 2), (1, slice(2, 4), 3), (slice(0, 2), slice(1, 2), slice(3, 6))):
        part, wanted = buffer[index], whole[index]
        assert part.shape == wanted.shape
        assert part.nbytes == wanted.nbytes
        assert all(a == b for a, b, n in zip(part.strides, wanted.strides, part.shape) if n > 1)
        assert part.offset == wanted.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    assert len(buffer) == 4


@pytest.mark.parametrize("index", [4, -5, (0, 0, 0, 0), (0, 9)])
def test_an_index_outside_is_an_index_error(device, index):
    with pytest.raises(IndexError):
        device.buffer((4, 5, 6))[index]


@pytest.mark.parametrize("index", [slice(0, 4, 2), slice(2, 2)])
def test_steps_and_empty_parts_are_refused(device, index):
    with pytest.raises(weir.InvalidError, match="no elements, or not every one"):
        device.buffer(4)[index]


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ((0,), "at least 1"),
        ((-3,), "at least 1"),
        (((1,) * 9,), "at most 8"),
        (((1 << 40, 1 << 40),), "2\\^63"),
        ((8, "flot32"), "such as 'float32'"),
        ((8, "f4", "hst"), "'device', 'host' \\(pinned\\) or 'managed'"),
    ],
)
def test_bad_sizes_types_and_placements_are_refused(device, arguments, sentence):
    with pytest.raises(weir.InvalidError, match=sentence):
        device.buffer(*arguments)


def test_memory_of_the_device_is_not_the_hosts(device):
    with pytest.raises(weir.InvalidError, match="queue.download"):
        device.buffer(8, label="far").host()
    with pytest.raises(weir.InvalidError, match="'r', 'w' or 'rw'"):
        device.buffer(8, "uint8", "host").host("x")


@pytest.mark.parametrize("size", [-1, 2**64, 1.5, "much"])
def test_sizes_in_bytes_are_whole_numbers_from_0_on(device, size):
    with device.pool() as pool:
        with pytest.raises(weir.InvalidError, match="number of bytes"):
            pool.trim(size)
    with pytest.raises(weir.InvalidError, match="number of bytes"):
        device.pool(size)


def test_a_pool_lends_memory_again(device, queue):
    pool = device.pool(1 << 20, label="pool")
    first = pool.allocate(queue, (4, 4), "float32")
    queue.fill(first, 1.5)
    first.free(queue)
    with pytest.raises(weir.InvalidError, match="closed"):
        queue.fill(first, 1)
    second = pool.allocate(queue, 64)
    second.free(queue)
    assert pool.statistics["reused"] == 1
    queue.sync()
    pool.trim(0)
    assert pool.statistics["kept_bytes"] == 0
    with pytest.raises(weir.InvalidError, match="not a whole one of a pool"):
        device.buffer(4).free(queue)


def test_reprs_say_what_they_are(device):
    buffer = device.buffer((2, 2), "f4", label="small")
    assert repr(buffer) == "<weir buffer 'small', float32 (2, 2) on the device>"
    assert repr(buffer[0]) == "<weir part of buffer 'small', float32 (2,) on the device>"
    buffer.close()
    assert repr(buffer).endswith("closed>")
    with pytest.raises(weir.InvalidError, match="the buffer 'small' is closed"):
        buffer[0]
