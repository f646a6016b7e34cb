"""What the extension leaves to Python."""

import importlib.util
import os
import sys

from . import _types
from ._types import DeviceInfo

_weir = sys.modules["weir._weir"]  # whose initialisation imports this module
FOLDER = os.path.join(os.path.dirname(sys._getframe().f_code.co_filename), "")  # whose code is no caller
_ERRORS = {each.status: each for each in vars(_types).values() if isinstance(each, type) and issubclass(each, _types.Error)}
_PARTS = "message", "object", "native_call", "native_name", "native_code", "remedy", "file", "line"

# The library's functions as Python has them. Others are NOUN.VERB: weir_queue_recover() is queue.recover(), and
# weir_pool_create() is device.pool().
_NAMES = {
    "in": "weir.In",
    "out": "weir.Out",
    "inout": "weir.InOut",
    "local": "weir.Local",
    "upload": "queue.upload",
    "download": "queue.download",
    "open": "weir.open",
    "close": "runtime.close",
    "host_begin": "buffer.host",
    "host_end": "access.end",
    "device_open": "runtime.device",
    "queue_wrap": "device.wrap_queue",
    "queue_launch": "kernel[grid, block]",
    "queue_launch_count": "kernel[count]",
    "queue_graph": "graph.launch",
    "buffer_wrap": "device.wrap",
    "dlpack_import": "device.from_dlpack",
    "dlpack_export": "buffer.__dlpack__",
    "kernel_create": "program.kernel",
    "pool_free": "buffer.free",
    "capture_begin": "queue.capture",
    "capture_end": "queue.capture",
}


def _name(match):
    name = match[1].removeprefix("whole_")
    if name not in _NAMES and name.endswith("_create"):
        return "device." + name[:-7]
    return _NAMES.get(name) or name.replace("_destroy", ".close").replace("_", ".", 1)


def python_text(c_text):
    """The library's text with its C names as those of Python."""
    import re  # which would be a third of the time that importing weir takes

    return re.sub(r"\bweir_([a-z0-9_]+)(?=\()", _name, c_text)


def error(status, text, *parts):
    """The exception of a status, with its whole text; the parts of the library's detail are its attributes."""
    made = _ERRORS.get(status, _types.Error)(python_text(text))
    made.status = status
    for name, part in zip(_PARTS, parts):
        setattr(made, name, python_text(part) if name in ("message", "remedy") else part)
    if status == "WEIR_ERROR_HOST_CALL":
        made.__cause__ = _cause(made.message, (made.file, made.line))
    return made


# By host calls, the latest ones: [exception, its text, (file, line) of its call, whether it was told as a cause].
_raised: "list[list]" = []


def raised(exception, file, line):
    """Keeps what a host call raised; a sentence on it."""
    text = f"the function of a host call raised {type(exception).__name__}: {exception}"
    _raised.append([exception, text[:500], (file, line), False])
    if len(_raised) > 8:
        _show(_raised.pop(0))
    return text


def _cause(message, place):
    for row in reversed(_raised):
        if row[1] in message and row[2] in (place, (None, 0)):
            row[3] = True
            return row[0]
    return None


def _show(row):
    if not row[3]:
        sys.excepthook(type(row[0]), row[0], row[0].__traceback__)


def show_untold():
    """Shows what host calls raised and no error has told."""
    while _raised:
        _show(_raised.pop())


_found: "list[dict]" = []  # what weir.findings() has still to give


def found(findings):
    """Keeps what the plugin check has found, without hints and what is suppressed."""
    _found.extend(each for each in findings if not each["hint"] and not each["suppression"])


def take_found():
    """What was kept since the last time."""
    taken = _found[:]
    _found.clear()
    return taken


def close_all():
    """Waits for all work and closes what can be closed: when the interpreter ends."""
    for device in _weir._alive()[1]:
        try:
            device.close()
        except (_types.ForkedError, _types.InvalidError):
            pass  # a tensor of others' that lives on keeps its device
        except BaseException as raised:
            sys.excepthook(type(raised), raised, raised.__traceback__)
    _weir._end()


def find_pocl():
    """Names the driver of the extra `pocl` to the library, unless $WEIR_OPENCL_DRIVER names one."""
    spec = importlib.util.find_spec("pocl_binary_distribution")
    if "WEIR_OPENCL_DRIVER" in os.environ or spec is None or not spec.origin:
        return
    folder = os.path.join(os.path.dirname(os.path.dirname(spec.origin)), "pyopencl", ".libs")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    drivers = [name for name in names if name.startswith("libpocl") and ".so" in name]
    if drivers:
        os.environ["WEIR_OPENCL_DRIVER"] = os.path.join(folder, drivers[0])


async def complete(event):
    """Waits in asyncio for an event, and raises its failure."""
    import asyncio  # which the caller has, and others need not

    descriptor = event.fd()
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(descriptor, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    event.sync(0)


class Capture:
    """A block whose submits become a graph. Made by queue.capture()."""

    _active, _graph = False, None

    def __init__(self, queue, label):
        self._queue, self._label = queue, label

    @property
    def graph(self):
        """The graph, after the block; else None."""
        return self._graph

    def __enter__(self):
        if self._active:
            _weir._refuse("the capture has begun already")
        self._queue._begin_capture()
        self._active = True
        return self

    def __exit__(self, *raised):
        if self._active:
            self._active = False
            self._graph = self._queue._end_capture(self._label, any(raised))

    def __del__(self):
        self.__exit__(Capture)


class region:
    """A named section of the program, for traces: the work that the thread submits in its block."""

    def __init__(self, runtime, name, number):
        number = _NO_NUMBER if number is None else number
        if not 0 <= number <= _NO_NUMBER:
            _weir._refuse(f"number is {number}; it is 0 or more, and below 2^64")
        self._runtime, self._arguments = runtime, (name, number)

    def __enter__(self):
        self._runtime._push(*self._arguments)

    def __exit__(self, *unused):
        if not self._runtime.closed:
            self._runtime._pop()


_NO_NUMBER = (1 << 64) - 1


def dtype(value):
    """The name that a type of elements has: "float32" of "<f4", numpy.float32, numpy.dtype("f4"), torch.float32, float."""
    for part in ("name", "__name__"):
        value = getattr(value, part, value)
    name = str(value).rpartition(".")[2].lstrip("<|=")
    return _OTHER_NAMES.get(name, name)


# The built-in types, and what the buffer protocol calls a long.
_OTHER_NAMES = {"int": "int64", "float": "float64", "complex": "complex128", "l": "int64", "L": "uint64"}


def array(access):
    """numpy's array of a host access, or a memoryview where numpy is not installed."""
    try:
        import numpy
    except ImportError:
        return memoryview(access)
    return numpy.asarray(access)


def take_back(view):
    """Makes the array that a host access handed out refuse: a memoryview every use, numpy's the writes.

    What else was made of it stays readable: it keeps the access, and with it the memory.
    """
    if not isinstance(view, memoryview):
        view.setflags(write=False)
        return
    try:
        view.release()
    except BufferError:
        pass


def read(path):
    """A file's bytes."""
    with open(path, "rb") as file:
        return file.read()


def limits(values):
    """A device's limits, of their values in order."""
    return _types.Limits(*values)


def stream(value):
    """The handle of a stream: an int, or what has __cuda_stream__ (CUDA's protocol), cuda_stream (torch) or ptr (CuPy)."""
    for name in ("__cuda_stream__", "cuda_stream", "ptr"):
        found = getattr(value, name, value)
        if found is not value:
            value = found() if callable(found) else found
            break
    if isinstance(value, tuple) and len(value) == 2:
        value = value[1]
    if not isinstance(value, int) or value <= 0:
        _weir._refuse(
            f"the stream is {value!r}; it is the handle of a stream or command queue as an int, or has "
            "__cuda_stream__, cuda_stream or ptr; CUDA's default stream is 1"
        )
    return value


_CUDA = 2  # DLPack's device types


def capsule(tensor, queue):
    """DLPack's capsule of a tensor; one in device memory makes the queue's stream wait for its writer."""
    kind, _ = tensor.__dlpack_device__()
    if kind != _CUDA:
        return tensor.__dlpack__()
    if queue is None:
        _weir._refuse(
            "the tensor is in device memory; pass the queue that will use it, which then waits for the work that "
            "writes the tensor"
        )
    return tensor.__dlpack__(stream=queue.native)
