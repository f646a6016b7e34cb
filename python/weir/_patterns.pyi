from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Generic, SupportsFloat, TypeVar, Union

from typing_extensions import Self

from . import Buffer, Device, Event, Queue

_Slot = TypeVar("_Slot")
_Frame = TypeVar("_Frame")

# Batches are buffers, or tuples of them where the items are tuples or lists.
def loader(queue: Queue, iterable: Iterable[Any], *, slots: int = 3, label: str = "loader") -> Iterator[Any]: ...

class pipeline(Generic[_Slot, _Frame]):
    def __init__(
        self,
        device: Device,
        *stages: Callable[[Queue, _Slot, _Frame], object],
        slots: Union[int, None] = None,
        make: Union[Callable[[int], _Slot], None] = None,
        deliver: Union[Callable[[_Slot, _Frame], object], None] = None,
        label: str = "pipeline",
    ) -> None: ...
    @property
    def queues(self) -> list[Queue]: ...
    def submit(self, frame: _Frame) -> None: ...
    def drain(self, timeout: Union[SupportsFloat, None] = None) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: Union[type[BaseException], None],
        *unused: Union[BaseException, TracebackType, None],
    ) -> None: ...

class chunks:
    def __init__(
        self,
        result: Buffer,
        source: Buffer,
        work: Callable[[Queue, Buffer, Buffer], object],
        *,
        count: int = 8,
        slots: int = 3,
        label: str = "chunks",
    ) -> None: ...
    def run(self, after: Union[Event, None] = None) -> Event: ...

class buckets:
    queue: Queue
    def __init__(
        self,
        device: Device,
        gradients: Iterable[Buffer],
        reduce: Callable[[Queue, Buffer], object],
        *,
        label: str = "buckets",
    ) -> None: ...
    def ready(self, index: int, queue: Queue) -> None: ...
    def wait(self, index: int, queue: Queue) -> None: ...
    def finish(self, queue: Queue) -> None: ...
