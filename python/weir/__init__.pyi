# Types of the package. What each call does is in the docstrings: help(weir.Queue).
import os
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager
from typing import Any, Final, Literal, NamedTuple, Protocol, SupportsFloat, SupportsIndex, TypedDict, Union, final

from typing_extensions import Self, TypeAlias

from ._patterns import buckets as buckets, chunks as chunks, loader as loader, pipeline as pipeline
from ._patterns import queue_pool as queue_pool

__version__: str

# Whatever has the buffer protocol: numpy arrays, bytearrays, memoryviews.
_Memory: TypeAlias = Any
_Shape: TypeAlias = Union[SupportsIndex, tuple[SupportsIndex, ...], list[int]]
_Index: TypeAlias = Union[SupportsIndex, slice]
_Placement: TypeAlias = Literal["device", "host", "managed"]
_Reduction: TypeAlias = Literal["sum", "product", "minimum", "maximum", "average"]
_Limit: TypeAlias = float
_Stream: TypeAlias = Any
_Color: TypeAlias = Union[int, None]
_Dtype: TypeAlias = Any
_Mode: TypeAlias = Literal["r", "w", "rw", "wr"]
_Bytes: TypeAlias = int
_U64: TypeAlias = int
_Seconds: TypeAlias = Union[SupportsFloat, None]
_Extent: TypeAlias = Union[SupportsIndex, tuple[SupportsIndex, ...]]
_Number: TypeAlias = Union[SupportsFloat, SupportsIndex]
_Value: TypeAlias = Union[Argument, _Number, tuple[_Number, ...], bytes, None]

class _Tensor(Protocol):
    def __dlpack__(self, *, stream: Any = ...) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, Any]: ...

class _Use(TypedDict):
    operation: str
    queue: str
    kernel: str
    file: str
    line: int

class _Finding(TypedDict):
    kind: str
    count: int
    buffer: str
    offset: int
    size: int
    hint: bool
    message: str
    remedy: str
    suppression: str | None
    first: _Use
    second: _Use

def open(
    config: Union[str, bytes, os.PathLike[str], None] = None,
    *,
    text: str | None = None,
    backend: str | None = None,
    plugins: str | None = None,
    module_path: str | None = None,
) -> Runtime:
    """Opens a runtime: one configuration and the modules that it names.

    config is the path of an INI file, "" for none; None takes $WEIR_CONFIG, else the defaults. text is INI text in
    its place. backend ("opencl"), plugins ("check, trace") and module_path (folders with ':' between them) go
    before the environment and the file.

    Raises ConfigError with the file, the line and the nearest name; ModuleError if no listed backend can be used,
    with every reason.
    """
def findings() -> list[_Finding]:
    """What the plugin check has found since the last call, in all runtimes: a list of weir.Finding."""
def In(buffer: Buffer, /) -> Argument:
    """A launch's argument that the kernel only reads."""
def Out(buffer: Buffer, /) -> Argument:
    """A launch's argument that the kernel overwrites without reading its old contents."""
def InOut(buffer: Buffer, /) -> Argument:
    """A launch's argument that the kernel reads and writes."""
def Local(bytes: SupportsIndex, /) -> Argument:
    """Local memory of each block, for a __local pointer."""
def sync_all(events: Iterable[Event], timeout: _Seconds = None) -> None:
    """Waits on the host until all events are complete; timeout in seconds. Raises Timeout; the first failure."""
def sync_any(events: Iterable[Event], timeout: _Seconds = None) -> int:
    """Waits on the host until one event is complete, and returns its index. Raises Timeout; that event's failure."""
def comms(devices: Iterable[Device], *, timeout: _Limit = 0, label: str | None = None) -> tuple[Comm, ...]:
    """A communicator whose ranks are devices of this process: one Comm for each. See Device.comm()."""

# The comment is the status.
class Error(Exception):  # WEIR_OK
    """What Weir refuses or reports, with its first cause.

    status is "WEIR_ERROR_INVALID", say; message, remedy and object (a label) are parts of the text;
    native_call, native_name and native_code are the driver's; file and line are those of the first cause.
    """

    message = object = native_call = native_name = remedy = file = status = ""
    native_code = line = 0

class Timeout(Error, TimeoutError):  # WEIR_TIMEOUT
    """A wait's time passed."""
class NotReadyError(Error):  # WEIR_NOT_READY
    """What was asked for is not complete yet."""
class InvalidError(Error, ValueError):  # WEIR_ERROR_INVALID
    """An argument breaks the call's contract."""
class OutOfMemoryError(Error, MemoryError):  # WEIR_ERROR_OUT_OF_MEMORY
    """Memory of the host or of the device is exhausted."""
class UnsupportedError(Error):  # WEIR_ERROR_UNSUPPORTED
    """The device does not support it."""
class NotFoundError(Error, LookupError):  # WEIR_ERROR_NOT_FOUND
    """Nothing has that name."""
class ConfigError(Error):  # WEIR_ERROR_CONFIG
    """The configuration is wrong."""
class ModuleError(Error):  # WEIR_ERROR_MODULE
    """No listed backend or plugin can be used."""
class NoDeviceError(Error):  # WEIR_ERROR_NO_DEVICE
    """No device matches."""
class BuildError(Error):  # WEIR_ERROR_BUILD
    """Device code does not build."""
class ExpiredError(Error):  # WEIR_ERROR_EXPIRED
    """It is no longer known."""
class DeviceError(Error):  # WEIR_ERROR_DEVICE
    """The driver reported an error."""
class DeviceLostError(DeviceError):  # WEIR_ERROR_DEVICE_LOST
    """The device is lost."""
class HostCallError(Error):  # WEIR_ERROR_HOST_CALL
    """A function of queue.host_call() raised; __cause__ is what it raised."""
class ForkedError(Error):  # WEIR_ERROR_FORKED
    """The process was forked after Weir was used."""
class FileError(Error):  # WEIR_ERROR_IO
    """A file cannot be read or written."""
class SystemCallError(Error):  # WEIR_ERROR_SYSTEM
    """The operating system refused a request."""
class CommError(Error):  # WEIR_ERROR_COMM
    """A collective failed between ranks."""

class _Block:
    """What `with` closes."""

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
    def close(self) -> None:
        """Destroys the object; work that was submitted still runs. Never waits. A second call does nothing."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *arguments: object) -> None: ...

class _Child(_Block):
    label: Final[str | None]  # The label, or None.
    device: Final[Device]  # The object's device.

@final
class Runtime(_Block):
    """A configuration and the chain of modules that it names. Made by weir.open()."""
    devices: Final[list[DeviceInfo]]  # The devices of the backend, open or not: a list of DeviceInfo.
    backend: Final[str]  # The name of the backend ("opencl").
    report: Final[str]  # Which modules were tried, and why some are not used: text.
    @property
    def findings(self) -> list[_Finding]:
        """What the plugin `check` found so far: a list of dicts with kind, message, remedy, hint, first and second
        (file, line, operation, queue).
        """
    def device(
        self, select: Union[str, int, None] = None, *, label: str | None = None, default_timing: bool = False
    ) -> Device:
        """Opens a device.

        select is its index, or part of its name; None takes the configuration's, else the first. default_timing
        gives times to events of the device's default queues.

        Raises NoDeviceError with the list of devices; DeviceError with the driver's error.
        """
    def region(self, name: str, number: int | None = None) -> AbstractContextManager[None]:
        """A named section for traces: the work that the thread submits in `with runtime.region("frame", 3):`."""
    def _push(self, name: str, number: _U64) -> None: ...
    def _pop(self) -> None: ...
    def close(self) -> None:
        """Waits for all work, and closes the runtime's devices and the runtime. A device with arrays that show its
        memory is closed when these have gone, and the runtime after it.
        """

class DeviceInfo(NamedTuple):
    """A device, which need not be open."""
    name: str  # the device's name
    platform: str  # the driver's platform
    driver: str  # the driver's version in its own words
    memory_bytes: int  # bytes of the device

class Limits(NamedTuple):
    """What a device can do; 0 or False: not supported."""
    memory_bytes: int  # bytes of the device
    max_buffer_bytes: int  # bytes of the largest buffer
    argument_alignment_bytes: int  # offsets of launch arguments that are always valid
    unified_memory: bool  # device and host share one memory
    host_in_kernels: bool  # "host" buffers may be launch arguments
    max_block_items: int  # work-items in a block
    max_block: tuple[int, int, int]  # work-items in a block, per dimension
    max_grid: tuple[int, int, int]  # blocks, per dimension
    max_local_bytes: int  # bytes of local memory of a block
    compute_units: int  # compute units
    concurrent_kernels: int  # kernels that may run at once
    copy_engines_to_device: int  # copies to the device that may run at once
    copy_engines_to_host: int  # copies to the host that may run at once
    priority_lowest: int  # a queue's lowest priority
    priority_highest: int  # a queue's highest priority
    timing_resolution_ns: int  # nanoseconds
    timing_history: int  # timed records of a queue that are kept; 0: no times
    native: bool  # native handles, streams and DLPack of device memory work
    cuda_source: bool  # programs are compiled from CUDA C++
    managed_memory: bool  # "managed" buffers work
    byte_offsets: bool  # offsets of arguments need only the parameter's alignment
    device_addresses: bool  # kernels may use addresses
    max_constant_bytes: int  # bytes of a __constant argument
    collectives: int  # 1: collectives by the host, 2: by the device, 0: none

@final
class Device(_Block):
    """An opened device. Made by runtime.device()."""
    runtime: Final[Runtime]  # The device's runtime.
    limits: Final[Limits]  # What the device can do: a weir.Limits.
    info: Final[DeviceInfo]  # Its name, platform, driver and memory: a weir.DeviceInfo.
    def queue(self, label: str | None = None, *, priority: int = 0, timing: bool = False) -> Queue:
        """A queue. priority is between limits.priority_lowest and limits.priority_highest; timing gives times to its
        events.
        """
    def wrap_queue(self, stream: _Stream, *, label: str | None = None, timing: bool = False) -> Queue:
        """A queue of a stream that exists: a CUDA stream or command queue by its handle, or an object with
        __cuda_stream__, cuda_stream (torch) or ptr (CuPy). It must outlive the queue's work.
        """
    def buffer(
        self, shape: _Shape, dtype: _Dtype = "uint8", placement: _Placement = "device", *, label: str | None = None
    ) -> Buffer:
        """A buffer, contents undefined. shape is a number of elements, bytes by default, or a tuple; placement
        'device', 'host' (pinned) or 'managed'.

        Raises InvalidError with the limit; OutOfMemoryError.
        """
    def wrap(self, array: _Memory, *, label: str | None = None) -> Buffer:
        """A 'host' buffer of the memory of a contiguous array that can be written, without a copy. The array lives
        until no work uses the buffer.
        """
    def from_dlpack(self, tensor: _Tensor, *, queue: Queue | None = None, label: str | None = None) -> Buffer:
        """A buffer of a tensor's memory (torch, cupy, jax, numpy), without a copy. queue, for tensors in device
        memory, waits for the work that writes the tensor.
        """
    def pool(
        self, limit_bytes: _Bytes = 0, placement: _Placement = "device", *, label: str | None = None
    ) -> Pool:
        """A pool of buffers; limit_bytes 0: the device's."""
    def comm(
        self,
        rank: int = 0,
        count: int = 0,
        rendezvous: str | None = None,
        *,
        timeout: _Limit = 0,
        check: bool = False,
        label: str | None = None,
    ) -> Comm:
        """Makes the device one rank of a communicator, and waits for the other ranks.

        rank and count, and the place where the ranks meet, come from `weir launch`, torchrun and others where count
        is 0; rendezvous is "process:NAME" for ranks in threads of one process, "unix:PATH", "file:PATH" or
        "tcp://HOST:PORT". timeout in seconds is also that of each collective; 0: the configuration's. check compares
        the arguments on all ranks.

        Raises CommError with the ranks that are missing; ConfigError for variables that contradict each other. Ctrl-C
        is seen when the wait has ended.
        """
    def program(
        self,
        source: str | None = None,
        *,
        file: Union[str, os.PathLike[str], None] = None,
        bundle: str | None = None,
        options: str | None = None,
        cuda_source: str | None = None,
        cuda_options: str | None = None,
        exact: bool = False,
        fast: bool = False,
        label: str | None = None,
    ) -> Program:
        """Device code: OpenCL C as text or of a file, CUDA C++ beside it, or a bundle, 'FILE.so:SYMBOL', of `weir
        kernels build`.

        Raises BuildError with the compiler's log.
        """
    def sync(self, timeout: _Seconds = None) -> None:
        """Waits on the host for everything submitted so far to the device's queues; timeout in seconds.

        Raises Timeout; the first failure.
        """
    def trim(self) -> None:
        """Returns cached memory to the driver. May wait for the whole device."""
    def close(self) -> None:
        """Waits for all work, destroys the device's objects and closes it. Where an array still shows the memory of a
        buffer, the native device is closed when that has gone.
        """

@final
class Queue(_Child):
    """An in-order stream of work; queues overlap. Made by device.queue()."""
    native: Final[int]  # The CUstream or cl_command_queue as an int, for torch.cuda.ExternalStream and others.
    def __cuda_stream__(self) -> tuple[int, int]:
        """(0, handle) of the queue's CUDA stream."""
    def copy(self, dst: Buffer, src: Buffer, /) -> None:
        """Copies a buffer, or a part of one, to another of the same shape, or of as many contiguous bytes. Rows of
        parts go as 2-D and 3-D copies. Asynchronous.

        Raises InvalidError for other shapes, types or overlapping ranges; the queue's first failure.
        """
    def fill(self, dst: Buffer, value: Union[_Number, bytes], /) -> None:
        """Fills a buffer or a part with a number of its type, or a pattern of 1, 2, 4, 8 or 16 bytes. Asynchronous."""
    def upload(self, dst: Buffer, array: _Memory) -> None:
        """Copies a contiguous array of as many bytes to a buffer or part, in the queue's order, and blocks until that
        is done.
        """
    def download(self, array: _Memory, src: Buffer) -> None:
        """Copies a buffer or part to a contiguous array of as many bytes, in the queue's order, and blocks until that
        is done.
        """
    def record(self) -> Event:
        """An event that is complete when everything submitted before has finished."""
    def wait(self, event: Union[Event, Queue], /) -> None:
        """Later work of this queue waits for the event, or for all work so far of another queue, on the device. The
        host does not wait.
        """
    def sync(self, timeout: _Seconds = None) -> None:
        """Waits on the host for everything submitted so far; timeout in seconds, 0 polls.

        Raises Timeout; the queue's first failure.
        """
    def flush(self) -> None:
        """Hands submitted work to the device."""
    def recover(self) -> None:
        """Waits for the rest of a failed queue's work and clears its failure."""
    def host_call(self, function: Callable[..., object], /, *arguments: Any) -> None:
        """Runs the function on a thread of Weir's after all earlier work of the queue; later work waits until it has
        returned. It may submit work, but not wait. What it raises fails the queue with HostCallError, whose
        __cause__ it is.
        """
    def capture(self, label: str | None = None) -> Capture:
        """Captures what is submitted to the queue, and to queues that wait for it, as a graph:

            with queue.capture() as capture:
                queue.copy(a, b)
            capture.graph.launch(queue)
        """
    def _begin_capture(self) -> None: ...
    def _end_capture(self, label: str | None, drop: bool) -> Graph | None: ...

@final
class Event:
    """A point in the order of a queue. Made by queue.record(); `await event` waits in asyncio."""
    @property
    def done(self) -> bool:
        """Whether everything before the event has finished. Raises its failure."""
    def elapsed_ns(self, end: Event, /) -> int:
        """Nanoseconds of the device from this event to another one, both of queues with timing=True."""
    time_ns: Final[int]  # When the device reached the event, in nanoseconds on a timeline of the device;
    # of queues with timing=True.
    def sync(self, timeout: _Seconds = None) -> None:
        """Waits on the host until the event is complete; timeout in seconds, 0 polls.

        Raises Timeout; the first failure that the event depends on.
        """
    def fd(self) -> int:
        """A new eventfd that becomes readable when the event is complete; the caller closes it."""
    def __await__(self) -> Generator[Any, None, None]: ...

@final
class Buffer(_Child):
    """Memory with a shape and a type of elements. buffer[a:b], buffer[i], buffer[a:b, c:d] are parts of it, without a
    copy, which are buffers too. Made by device.buffer(), pool.allocate(), device.wrap().
    """
    shape: Final[tuple[int, ...]]  # Elements in each dimension.
    strides: Final[tuple[int, ...]]  # Bytes from one element to the next, in each dimension.
    dtype: Final[str]  # The elements' type: "float32".
    placement: Final[str]  # "device", "host" or "managed".
    nbytes: Final[int]  # Bytes of its elements.
    offset: Final[int]  # Bytes from the start of the whole buffer to the first element.
    address: Final[int]  # The device's address of the first element.
    def host(self, mode: _Mode = "r") -> Access:
        """Begins an access of the host to a 'host' or 'managed' buffer, or to a part of one:

            with buffer.host('w') as array:
                array[:] = 1

        array is numpy's, or a memoryview where numpy is not installed. mode is 'r', 'w' or 'rw'. The call waits for
        nothing: sync with the work that wrote the bytes first, and leave the block before work needs them. After
        the block a memoryview refuses every use and the array every write; arrays made of it stay readable, and
        keep the memory.
        """
    def free(self, queue: Queue, /) -> None:
        """Returns a pool's buffer to it, after all work submitted to the queue so far. Returns at once."""
    def __getitem__(self, index: Union[_Index, tuple[_Index, ...]], /) -> Buffer: ...
    def __len__(self) -> int: ...
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        """A tensor of the buffer's memory, without a copy. It carries no order: sync with the work that writes it
        first.
        """
    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's type and number of the device."""

@final
class Access:
    """An access of the host to a buffer's memory, which it shows by the buffer protocol. Made by buffer.host()."""
    array: Final[Any]  # The memory: numpy's array, or a memoryview without numpy.
    def end(self) -> None:
        """Ends the access. A second call does nothing."""
    def __enter__(self) -> Any: ...
    def __exit__(self, *arguments: object) -> None: ...

@final
class Pool(_Child):
    """Buffers that are allocated and freed in the order of queues. Made by device.pool()."""
    @property
    def statistics(self) -> dict[str, int]:
        """A dict: in_use_bytes, kept_bytes, high_bytes, allocations, reused, blocked."""
    def allocate(self, queue: Queue, shape: _Shape, dtype: _Dtype = "uint8") -> Buffer:
        """A buffer for work that is submitted to the queue after this call. Never waits. Free it with
        buffer.free(queue).
        """
    def trim(self, keep_bytes: _Bytes, /) -> None:
        """Returns idle memory to the device until at most so many bytes are kept."""

@final
class Program(_Child):
    """Device code. Made by device.program()."""
    def kernel(self, name: str, /) -> Kernel:
        """The kernel of that name.

        Raises NotFoundError with the nearest name.
        """

@final
class Kernel(_Child):
    """A function of a program. kernel[grid, block](queue, *arguments) launches it: grid is a number of blocks and
    block one of work-items, each an int or a tuple of up to three. kernel[count](queue, *arguments) takes at least
    so many work-items. Arguments are In(buffer), Out(buffer), InOut(buffer), Local(bytes), numbers, tuples for
    vectors, bytes for structures and None. Made by program.kernel().
    """
    parameters: Final[tuple[str, ...]]  # The parameters as the source has them: a tuple of str.
    max_block_items: Final[int]  # Work-items in a block, at most.
    preferred_block_items: Final[int]  # Blocks should be multiples of it.
    local_bytes: Final[int]  # Bytes of local memory that the kernel declares.
    def suggest_block(self, local_bytes: _Bytes = 0) -> int:
        """A number of work-items for the kernel's blocks."""
    def __getitem__(self, key: Union[SupportsIndex, tuple[_Extent, _Extent]], /) -> Launcher: ...

@final
class Launcher:
    """A kernel with its grid and block; call it to launch it. May be kept."""
    def __call__(self, queue: Queue, /, *arguments: _Value) -> None: ...

@final
class Argument:
    """An argument of a launch. Made by In(), Out(), InOut(), Local()."""

class Capture:
    """A block whose submits become a graph. Made by queue.capture()."""
    def __init__(self, queue: Queue, label: str | None) -> None: ...
    @property
    def graph(self) -> Graph | None:
        """The graph, after the block; else None."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *arguments: object) -> None: ...

@final
class Graph(_Child):
    """Work that was captured once, and is launched many times. Made by queue.capture()."""
    node_count: Final[int]  # The number of its nodes, which count from 0.
    def launch(self, queue: Queue, /) -> None:
        """Submits the whole graph as one operation of the queue."""

@final
class Comm(_Child):
    """One rank of a communicator, whose ranks combine and exchange what their buffers hold. A collective is work of a
    queue, asynchronous and in its order; all ranks submit the same ones in the same order. src and dst may be the same
    buffer. With n ranks, `ALL` below is n times the elements of the other operand, a part for each rank in order; an
    operand of the root may be None on the others. Made by device.comm(), weir.comms(), comm.split().

    Each raises InvalidError for operands that do not fit, CommError for the communicator's first failure.
    """
    rank: Final[int]  # This rank, from 0 on.
    count: Final[int]  # How many ranks there are.
    engine: Final[str]  # What carries the collectives out: "local", "NCCL 2.28.9".
    def all_reduce(self, queue: Queue, dst: Buffer, src: Buffer, reduction: _Reduction = "sum") -> None:
        """Reduces src of all ranks, element by element, into dst of all."""
    def reduce(
        self, queue: Queue, dst: Buffer | None, src: Buffer, reduction: _Reduction = "sum", root: int = 0
    ) -> None:
        """Reduces src of all ranks into dst of the root."""
    def broadcast(self, queue: Queue, dst: Buffer, src: Buffer | None, root: int = 0) -> None:
        """Copies src of the root to dst of all."""
    def all_gather(self, queue: Queue, dst: Buffer, src: Buffer) -> None:
        """Copies src of each rank to its part of dst, ALL, of all."""
    def reduce_scatter(self, queue: Queue, dst: Buffer, src: Buffer, reduction: _Reduction = "sum") -> None:
        """Reduces src, ALL, of all ranks; each gets its part in dst."""
    def all_to_all(self, queue: Queue, dst: Buffer, src: Buffer) -> None:
        """Copies part i of src, ALL, to rank i, which gets it as the part of this rank in dst, ALL."""
    def gather(self, queue: Queue, dst: Buffer | None, src: Buffer, root: int = 0) -> None:
        """Copies src of each rank to its part of dst, ALL, of the root."""
    def scatter(self, queue: Queue, dst: Buffer, src: Buffer | None, root: int = 0) -> None:
        """Copies part i of src, ALL, of the root to dst of rank i."""
    def send(self, queue: Queue, src: Buffer, peer: int) -> None:
        """Sends src to another rank, which receives it."""
    def recv(self, queue: Queue, dst: Buffer, peer: int) -> None:
        """Receives dst from another rank, which sends it."""
    def exchange(
        self, queue: Queue, sends: Iterable[tuple[Buffer, int]], receives: Iterable[tuple[Buffer, int]]
    ) -> None:
        """Sends and receives pairs of a buffer and the rank of its peer at once, so that none waits for another."""
    def barrier(self, queue: Queue, /) -> None:
        """Later work of the queue waits until every rank's queue has come here."""
    def split(self, color: _Color, key: int = 0, *, label: str | None = None) -> Comm | None:
        """A communicator of the ranks with the same color, in the order of key; None for color None. All ranks call it."""
    def shrink(self, label: str | None = None) -> Comm:
        """A communicator of the ranks that are left after others have died; those that are left call it."""
    def abort(self, why: str, /) -> None:
        """Ends the communicator on all ranks: their collectives fail with `why` as the first cause."""
    def error(self) -> None:
        """Raises the communicator's first failure, if there is one."""
