"""Patterns: loader, pipeline, chunks, buckets. They submit to queues, and put the waits where they belong.

Their frames are no callers: findings and errors name the line of the program that uses a pattern.
"""

from __future__ import annotations

import collections
import itertools
import queue as _queue
import sys
import threading

TYPE_CHECKING = False  # typing is not needed when the package is used
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Literal

    from . import Buffer, Device, Event, Queue


def _arrays(item):
    """The arrays of a batch: of a tuple or list each one; of PyTorch the memory of its tensors."""
    parts = list(item) if isinstance(item, (tuple, list)) else [item]
    return [part.numpy() if hasattr(part, "numpy") else part for part in parts]


def _form(array):
    if hasattr(array, "dtype"):
        return tuple(array.shape), array.dtype
    view = memoryview(array)
    return view.shape, "uint8" if view.format in ("B", "c") else view.format


def _assign(view, array):
    if hasattr(array, "dtype") and not isinstance(view, memoryview):
        view[...] = array
    else:
        memoryview(view).cast("B")[:] = memoryview(array).cast("B")


class _Batch:
    """One slot of a loader: pinned memory that its thread writes, and the device's copy of it."""

    def __init__(self, device, label):
        self.device, self.label = device, label
        self.forms, self.pinned, self.copies = None, [], []
        self.copied = self.used = None
        self.is_tuple = False

    def write(self, item):
        arrays = _arrays(item)
        forms = [_form(array) for array in arrays]
        self.is_tuple = isinstance(item, (tuple, list))
        if forms != self.forms:
            self.close()
            self.forms = forms
            self.pinned = [self.device.buffer(*form, placement="host", label=self.label) for form in forms]
            self.copies = [self.device.buffer(*form, label=self.label) for form in forms]
        elif self.copied:
            self.copied.sync()
        for pinned, array in zip(self.pinned, arrays):
            with pinned.host("w") as view:
                _assign(view, array)

    def copy(self, queue):
        if self.used:
            queue.wait(self.used)
        for copy, pinned in zip(self.copies, self.pinned):
            queue.copy(copy, pinned)
        self.copied = queue.record()

    def close(self):
        for buffer in self.pinned + self.copies:
            buffer.close()
        self.pinned, self.copies, self.copied, self.used = [], [], None, None


def loader(queue: Queue, iterable: Iterable[Any], *, slots: int = 3, label: str = "loader") -> Iterator[Any]:
    """Batches of any iterable in memory of the device, copied while work on `queue` uses earlier ones.

        for images, labels in weir.loader(queue, batches):
            train[grid, block](queue, weir.In(images), weir.In(labels), weir.InOut(weights))

    The iterable gives arrays (numpy's, PyTorch's of the host, anything with the buffer protocol), or tuples of them; each
    becomes a weir.Buffer of its shape and type. A thread takes the next items, so reading them overlaps too. A batch is
    the consumer's until the next one is asked for; what was submitted to `queue` by then may still use it. slots: batches in
    use or on their way, 2 or more. What the iterable raises is raised in place of its batch.
    """
    if slots < 2:
        raise ValueError(f"slots is {slots}; a loader has 2 or more: one in use, one on its way")
    return _load(queue, iterable, slots, label)


def _load(queue, iterable, slots, label):
    free, full = _queue.SimpleQueue(), _queue.SimpleQueue()
    batches = [_Batch(queue.device, f"{label}{i}") for i in range(slots)]
    for batch in batches:
        free.put(batch)

    def read():
        try:
            for item in iterable:
                batch = free.get()
                if batch is None:
                    return
                batch.write(item)
                full.put(batch)
            full.put(None)
        except BaseException as error:  # raised where the batch is asked for
            full.put(error)

    thread = threading.Thread(target=read, name=f"weir {label}", daemon=True)
    copies = queue.device.queue(label)
    ready, last = collections.deque(), False
    thread.start()
    try:
        while True:
            while not last and (not ready or not full.empty()):
                batch = full.get()
                last = not isinstance(batch, _Batch)
                if not last:
                    batch.copy(copies)
                ready.append(batch)
            batch = ready.popleft()
            if batch is None:
                return
            if not isinstance(batch, _Batch):
                raise batch
            queue.wait(batch.copied)
            yield tuple(batch.copies) if batch.is_tuple else batch.copies[0]
            batch.used = queue.record()
            free.put(batch)
    finally:
        free.put(None)
        for _ in range(slots):
            free.put(None)
        # At the interpreter's end the thread runs no more and cannot be joined; its objects end with their device.
        if not sys.is_finalizing():
            thread.join()
            for batch in batches:
                batch.close()
            copies.close()


class _Queues:
    """What has queues of its own, and ends them."""

    _queues: list[Queue]

    @property
    def queues(self) -> list[Queue]:
        """Its queues."""
        return list(self._queues)

    def close(self) -> None:
        """Destroys the queues; work that was submitted still runs."""
        for queue in self._queues:
            queue.close()


class pipeline(_Queues):
    """Frames through stages, each with its own queue, so that the stages of several frames overlap.

        with weir.pipeline(device, upload, blur, download, make=Slot, deliver=show) as frames:
            for picture in pictures:
                frames.submit(picture)

    Each stage is a function (queue, slot, frame) that submits its work to the queue, and does not wait. A stage waits on
    the device for the one before it. `slots` frames are in flight (the number of stages and one more); make(index) makes the
    memory of a slot, which is used again after the delivery of its frame: deliver(slot, frame), in the order of submits, on
    the thread that submits or drains. What a stage or the work raises is raised by submit(), drain() or the end of the block.
    """

    def __init__(
        self,
        device: Device,
        *stages: Callable[[Queue, Any, Any], object],
        slots: int | None = None,
        make: Callable[[int], Any] | None = None,
        deliver: Callable[[Any, Any], object] | None = None,
        label: str = "pipeline",
    ) -> None:
        slots = len(stages) + 1 if slots is None else slots
        if not stages or slots < 1:
            raise ValueError(f"a pipeline has one stage or more and one slot or more, not {len(stages)} and {slots}")
        self._queues = [device.queue(f"{label}/{stage.__name__}") for stage in stages]
        self._stages = list(zip(stages, self._queues))
        self._deliver = deliver
        self._slots = [make(index) if make else None for index in range(slots)]
        self._flying: collections.deque[Any] = collections.deque()
        self._count = 0

    def submit(self, frame: Any) -> None:
        """Submits a frame; waits for the delivery of an earlier one if no slot is free."""
        while self._flying and (len(self._flying) == len(self._slots) or self._flying[0][2].done):
            self._deliver_first(None)
        slot = self._slots[self._count % len(self._slots)]
        event = None
        for stage, queue in self._stages:
            if event:
                queue.wait(event)
            stage(queue, slot, frame)
            event = queue.record()
        self._flying.append((slot, frame, event))
        self._count += 1

    def _deliver_first(self, timeout):
        slot, frame, event = self._flying[0]
        try:
            event.sync(timeout)
        except TimeoutError:
            raise
        except BaseException:
            self._flying.popleft()
            raise
        self._flying.popleft()
        if self._deliver:
            self._deliver(slot, frame)

    def drain(self, timeout: float | None = None) -> None:
        """Waits until all frames are delivered; timeout in seconds, for each frame."""
        while self._flying:
            self._deliver_first(timeout)

    def __enter__(self) -> pipeline:
        return self

    def __exit__(self, kind: object, *unused: object) -> None:
        try:
            if kind is None:
                self.drain()
        finally:
            self.close()


class chunks(_Queues):
    """One large job in pieces: the copy of one piece, the work on another and the copy back of a third overlap.

        job = weir.chunks(result, source, lambda queue, out, data: scale[n, 256](queue, weir.In(data), weir.Out(out)))
        job.run().sync()

    source and result are buffers in host memory with as many rows. work(queue, out, data) submits the work on one piece, whose
    rows are those of data and out, in memory of the device. count: pieces; slots: those in flight. run() submits everything,
    waits for nothing and returns the event of the end; it may be called again at once.
    """

    def __init__(
        self,
        result: Buffer,
        source: Buffer,
        work: Callable[[Queue, Buffer, Buffer], object],
        *,
        count: int = 8,
        slots: int = 3,
        label: str = "chunks",
    ) -> None:
        rows = source.shape[0]
        if result.shape[0] != rows or not 1 <= count <= rows or slots < 1:
            raise ValueError(f"the source has {rows} rows, the result {result.shape[0]}; there are {count} chunks and "
                             f"{slots} slots: the rows are as many, and each chunk has one or more")
        device = source.device
        self._source, self._result, self._work = source, result, work
        ends = [rows * i // count for i in range(count + 1)]
        self._parts = list(zip(ends, ends[1:]))
        most = max(end - start for start, end in self._parts)
        self._queues = [device.queue(f"{label}/{name}") for name in ("upload", "compute", "download")]
        self._up, self._run, self._down = self._queues
        self._slots = [(device.buffer((most, *source.shape[1:]), source.dtype, label=f"{label}/in{i}"),
                        device.buffer((most, *result.shape[1:]), result.dtype, label=f"{label}/out{i}"))
                       for i in range(min(slots, count))]
        self._read: list[Any] = [None] * len(self._slots)  # events, once a slot is used
        self._done = list(self._read)

    def run(self, after: Event | None = None) -> Event:
        """Submits the job, after an event if one is given; the event of its end."""
        if after:
            self._up.wait(after)
            self._down.wait(after)
        for number, (start, end) in enumerate(self._parts):
            slot = number % len(self._slots)
            data, out = (buffer[:end - start] for buffer in self._slots[slot])
            if self._read[slot]:
                self._up.wait(self._read[slot])
            self._up.copy(data, self._source[start:end])
            self._run.wait(self._up.record())
            if self._done[slot]:
                self._run.wait(self._done[slot])
            self._work(self._run, out, data)
            self._read[slot] = self._run.record()
            self._down.wait(self._read[slot])
            self._down.copy(self._result[start:end], out)
            self._done[slot] = self._down.record()
        return self._done[(len(self._parts) - 1) % len(self._slots)]


class buckets(_Queues):
    """Gradients that are reduced bucket by bucket on a queue of their own, while the backward pass goes on.

        reduction = weir.buckets(device, gradients, lambda queue, gradient: comm.all_reduce(queue, gradient, gradient))
        for i in reversed(range(len(gradients))):
            backward[grid, block](compute, weir.Out(gradients[i]))
            reduction.ready(i, compute)
        reduction.finish(compute)  # before the optimizer

    reduce(queue, bucket) submits the reduction of one bucket.
    """

    def __init__(
        self,
        device: Device,
        gradients: Iterable[Buffer],
        reduce: Callable[[Queue, Buffer], object],
        *,
        label: str = "buckets",
    ) -> None:
        self._gradients, self._reduce = list(gradients), reduce
        self._reduced: list[Any] = [None] * len(self._gradients)
        self.queue = device.queue(label)
        self._queues = [self.queue]

    def ready(self, index: int, queue: Queue) -> None:
        """Bucket `index` is written by what was submitted to `queue` so far: its reduction is submitted."""
        self.queue.wait(queue.record())
        self._reduce(self.queue, self._gradients[index])
        self._reduced[index] = self.queue.record()

    def wait(self, index: int, queue: Queue) -> None:
        """`queue` waits for the reduction of one bucket."""
        if self._reduced[index] is None:
            raise ValueError(f"bucket {index} was not ready yet")
        queue.wait(self._reduced[index])

    def finish(self, queue: Queue) -> None:
        """`queue` waits for all reductions so far."""
        queue.wait(self.queue.record())


class queue_pool(_Queues):
    """Queues for independent requests, given out in turn by class of priority.

        pool = weir.queue_pool(device, normal=4, high=1)
        queue = pool.get("high")

    normal, high and low are how many queues a class has: priority 0, and the device's highest and lowest. None given: as
    many normal ones as the device overlaps. Work that has to be in order goes to one queue, got once; others may use the
    same one. Safe in several threads.
    """

    def __init__(
        self,
        device: Device,
        *,
        normal: int = 0,
        high: int = 0,
        low: int = 0,
        timing: bool = False,
        label: str = "pool",
    ) -> None:
        limits = device.limits
        if min(normal, high, low) < 0:
            raise ValueError(f"the classes have {normal}, {high} and {low} queues; each has 0 or more")
        if not normal + high + low:
            normal = min(8, limits.concurrent_kernels + limits.copy_engines_to_device + limits.copy_engines_to_host)
        priorities = {"normal": (normal, 0), "high": (high, limits.priority_highest), "low": (low, limits.priority_lowest)}
        made = {name: [device.queue(f"{label}/{name}/{i}", priority=priority, timing=timing) for i in range(count)]
                for name, (count, priority) in priorities.items()}
        self._queues = sum(made.values(), [])
        self._turns = {name: itertools.cycle(queues) for name, queues in made.items() if queues}

    def get(self, kind: Literal["normal", "high", "low"] = "normal") -> Queue:
        """The next queue of the class."""
        if kind not in self._turns:
            raise ValueError(f"the pool has no queue of the class {kind!r}; it has {', '.join(self._turns)}")
        return next(self._turns[kind])

    def sync(self, timeout: float | None = None) -> None:
        """Waits for all queues, also after a failure; timeout in seconds, for each. Raises the first failure."""
        failure = None
        for queue in self.queues:
            try:
                queue.sync(timeout)
            except Exception as error:
                failure = failure or error
        if failure:
            raise failure
