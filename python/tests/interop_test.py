"""Memory of other libraries, and streams. No byte is copied: addresses are compared, and later writes are seen."""

import gc
import sys

import numpy
import pytest

import weir


def address(array):
    return array.__array_interface__["data"][0]


def test_numpy_takes_a_buffers_memory(device):
    buffer = device.buffer((4, 4), "float32", "host")
    array = numpy.from_dlpack(buffer)
    with buffer.host("w") as view:
        view[:] = 3
        assert address(view) == address(array)
    assert (array == 3).all()
    assert buffer.__dlpack_device__() == (1, 0)
    part = numpy.from_dlpack(buffer[1:3, 1:2])
    assert part.shape == (2, 1) and address(part) == address(array) + 20
    buffer.close()
    assert (array == 3).all()
    del array, part, view


def test_a_tensor_keeps_its_device_until_it_has_gone(runtime):
    device = runtime.device()
    array = numpy.from_dlpack(device.buffer(64, "uint8", "host", label="kept"))
    with pytest.warns(ResourceWarning, match="until arrays of buffer 'kept' have gone"):
        device.close()
    array.sum()
    del array
    runtime.close()
    assert "closed" in repr(runtime)


def test_a_buffer_takes_numpys_memory(device, queue):
    array = numpy.arange(16, dtype="int32").reshape(4, 4)
    buffer = device.from_dlpack(array, label="theirs")
    assert (buffer.shape, buffer.dtype, buffer.placement) == ((4, 4), "int32", "host")
    with buffer.host("r") as view:
        assert address(view) == address(array)
    far = device.buffer((4, 4), "int32")
    array[0] = 9
    queue.copy(far, buffer)
    result = numpy.empty((4, 4), "int32")
    queue.download(result, far)
    assert (result == array).all()


@pytest.mark.parametrize("take", ["wrap", "from_dlpack"])
def test_an_array_lives_as_long_as_its_buffer(device, queue, take):
    array = numpy.ones(1024, "float32")
    count = sys.getrefcount(array)
    buffer = getattr(device, take)(array)
    if take == "wrap":
        assert sys.getrefcount(array) > count
    queue.fill(buffer, 2)
    queue.sync()
    assert (array == 2).all()
    buffer.close()
    queue.sync()
    device.trim()
    device.buffer(1)  # what was dropped meanwhile is freed with the lock
    gc.collect()
    assert sys.getrefcount(array) == count


def test_arrays_that_cannot_be_wrapped_are_refused(device):
    with pytest.raises(weir.InvalidError, match="read-only"):
        device.wrap(b"constant")
    with pytest.raises(weir.InvalidError, match="contiguous"):
        device.wrap(numpy.zeros((4, 4))[:, 1])
    with pytest.raises(weir.InvalidError, match="dtype"):
        device.wrap(numpy.zeros(4, "datetime64[s]").view([("a", "i4"), ("b", "i4")]))
    with pytest.raises(AttributeError, match="__dlpack_device__"):
        device.from_dlpack(5)


def test_a_tensor_that_is_refused_stays_its_owners(device):
    array = numpy.ones((1,) * 9, "float32")
    count = sys.getrefcount(array)
    with pytest.raises(weir.InvalidError, match="9 dimensions"):
        device.from_dlpack(array)
    device.buffer(1)
    assert sys.getrefcount(array) == count and array.sum() == 1


def test_bytes_are_wrapped(device):
    memory = bytearray(b"abcd")
    buffer = device.wrap(memory)
    assert (buffer.dtype, buffer.shape) == ("uint8", (4,))
    with pytest.raises(BufferError):
        memory.extend(b"more")


def test_native_handles_need_a_driver(device, queue):
    if not device.limits.native:
        with pytest.raises(weir.UnsupportedError):
            queue.native
        return
    assert queue.native > 0
    with pytest.raises(weir.InvalidError, match="no CUDA stream"):
        queue.__cuda_stream__()

    class Stream:
        cuda_stream = queue.native

    wrapped = device.wrap_queue(Stream(), label="theirs")
    buffer = device.buffer(8)
    wrapped.fill(buffer, 1)
    wrapped.sync()
    wrapped.close()
    with pytest.raises(weir.InvalidError, match="__cuda_stream__, cuda_stream or ptr"):
        device.wrap_queue("stream")


def test_torch_shares_memory(device):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    buffer = device.buffer(8, "float32", "host")
    tensor = torch.from_dlpack(buffer)
    tensor[:] = 4
    with buffer.host() as array:
        assert (array == 4).all()
    assert device.from_dlpack(torch.zeros(4)).shape == (4,)
