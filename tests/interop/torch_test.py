"""Shares tensors and streams with PyTorch, through torch_bridge.so and ctypes.

    torch_test.py BRIDGE [--no-torch]

Prints a line for each check and ends with 1 if one failed. With --no-torch only the
capsules themselves are checked, on whatever backend the environment chooses.
"""

import ctypes
import sys

COUNT = 1 << 20

api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]

# PyCapsule_New keeps the pointer to its name, so the names live as long as this.
FRESH = b"dltensor"
USED = b"used_dltensor"

failures = 0


def check(good, what):
    global failures
    print("%s  %s" % ("ok  " if good else "FAIL", what), flush=True)
    failures += not good


class Bridge:
    """The functions of torch_bridge.c, with failures as exceptions."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        pointer, text = ctypes.c_void_p, ctypes.c_char_p
        word, signed = ctypes.c_uint32, ctypes.c_int64
        self.library.bridge_error.restype = text
        for name, result, arguments in [
            ("open", ctypes.c_int, [text]),
            ("close", ctypes.c_int, []),
            ("queue", pointer, [pointer]),
            ("queue_destroy", None, [pointer]),
            ("sync", ctypes.c_int, [pointer]),
            ("wait", ctypes.c_int, [pointer, pointer]),
            ("stream", ctypes.c_uint64, [pointer]),
            ("create", pointer, [signed, ctypes.c_int]),
            ("destroy", None, [pointer]),
            ("fill", ctypes.c_int, [pointer, pointer, word]),
            ("increment", ctypes.c_int, [pointer, pointer, word]),
            ("element", signed, [pointer, pointer, signed]),
            ("export", pointer, [pointer]),
            ("import", pointer, [pointer]),
        ]:
            function = getattr(self.library, "bridge_" + name)
            function.restype = result
            function.argtypes = arguments
            setattr(self, name + "_", self.checked(name, function, result))

    def error(self):
        return self.library.bridge_error().decode()

    def checked(self, name, function, result):
        def call(*arguments):
            value = function(*arguments)
            if (result is ctypes.c_int and value != 0) or (result is ctypes.c_void_p and not value):
                raise RuntimeError("bridge_%s: %s" % (name, self.error()))
            return value

        return call


def capsule_of(bridge, tensor):
    """A capsule of a Weir tensor. The consumer renames it and calls the deleter."""
    return api.PyCapsule_New(bridge.export_(tensor), FRESH, None)


def consume(bridge, capsule):
    """A Weir tensor from a capsule, which is consumed."""
    tensor = bridge.import_(api.PyCapsule_GetPointer(capsule, FRESH))
    api.PyCapsule_SetName(capsule, USED)
    return tensor


def check_capsules(bridge, on_host):
    """Weir to Weir, by way of a capsule."""
    queue = bridge.queue_(None)
    first = bridge.create_(COUNT, on_host)
    bridge.fill_(queue, first, 7)
    bridge.sync_(queue)
    second = consume(bridge, capsule_of(bridge, first))
    bridge.destroy_(first)  # the second one holds its memory
    good = bridge.element_(queue, second, COUNT - 1) == 7
    if not on_host:
        bridge.increment_(queue, second, 3)
        good = good and bridge.element_(queue, second, COUNT - 1) == 10
    bridge.destroy_(second)
    bridge.sync_(queue)
    bridge.queue_destroy_(queue)
    check(good, "a capsule there and back, %s memory" % ("host" if on_host else "device"))


def check_weir_to_torch(bridge, torch):
    queue = bridge.queue_(None)
    tensor = bridge.create_(COUNT, 0)
    bridge.fill_(queue, tensor, 40)
    bridge.increment_(queue, tensor, 2)
    bridge.sync_(queue)  # PyTorch does not wait for Weir
    shared = torch.from_dlpack(capsule_of(bridge, tensor))
    check(
        shared.device.type == "cuda" and shared.dtype == torch.int32 and shared.shape == (COUNT,),
        "PyTorch sees a tensor of Weir's: %s, %s, %s"
        % (shared.device, shared.dtype, tuple(shared.shape)),
    )
    check(bool((shared == 42).all()), "PyTorch reads what a Weir kernel wrote")
    shared += 100
    torch.cuda.synchronize()
    check(
        bridge.element_(queue, tensor, 12345) == 142,
        "Weir reads what PyTorch wrote into the same memory",
    )
    bridge.destroy_(tensor)  # PyTorch's tensor holds the memory
    check(int(shared.sum()) == 142 * COUNT, "the memory outlives the Weir buffer's handle")
    del shared
    bridge.queue_destroy_(queue)


def check_torch_to_weir(bridge, torch):
    before = torch.cuda.memory_allocated()
    tensor = torch.arange(COUNT, dtype=torch.int32, device="cuda")
    queue = bridge.queue_(None)
    # PyTorch makes this stream wait for the one that fills the tensor.
    shared = consume(bridge, tensor.__dlpack__(stream=bridge.stream_(queue)))
    bridge.increment_(queue, shared, 1000)
    bridge.sync_(queue)
    expected = torch.arange(1000, 1000 + COUNT, dtype=torch.int32, device="cuda")
    check(torch.equal(tensor, expected), "a Weir kernel writes into a tensor of PyTorch's")
    del tensor, expected
    check(
        torch.cuda.memory_allocated() - before >= 4 * COUNT,
        "the memory outlives PyTorch's tensor",
    )
    bridge.destroy_(shared)
    check(torch.cuda.memory_allocated() == before, "the end of the Weir buffer gives it back")

    matrix = torch.zeros((64, 32), dtype=torch.int32, device="cuda")
    try:
        consume(bridge, matrix.t().__dlpack__())
        check(False, "a transposed matrix is refused")
    except RuntimeError as refused:
        check("contiguous()" in str(refused), "a transposed matrix is refused: %s" % refused)
    bridge.queue_destroy_(queue)


def check_stream(bridge, torch, stream, what):
    """Alternating work of both, on one stream, with no wait between them."""
    handle = stream.cuda_stream or 1  # 1: the legacy default stream
    queue = bridge.queue_(handle)
    with torch.cuda.stream(stream):
        tensor = torch.zeros(COUNT, dtype=torch.int32, device="cuda")
        shared = consume(bridge, tensor.__dlpack__(stream=-1))
        value = 0
        for turn in range(1, 101):
            tensor.mul_(3)
            bridge.increment_(queue, shared, turn)
            value = (3 * value + turn) & 0xFFFFFFFF
        value -= (value >> 31) << 32
        total = tensor.to(torch.int64).sum()
    bridge.sync_(queue)
    check(int(total) == value * COUNT, "100 turns each on %s" % what)
    bridge.destroy_(shared)
    bridge.sync_(queue)
    bridge.queue_destroy_(queue)


def check_lifetime(bridge, torch):
    """PyTorch drops a tensor of Weir's while its stream still reads it."""
    stream = torch.cuda.Stream()
    queue = bridge.queue_(stream.cuda_stream)
    own = bridge.queue_(None)
    tensor = bridge.create_(COUNT, 0)
    bridge.fill_(own, tensor, 5)
    bridge.wait_(queue, own)
    with torch.cuda.stream(stream):
        shared = torch.from_dlpack(capsule_of(bridge, tensor))
        bridge.destroy_(tensor)
        torch.cuda._sleep(200_000_000)  # cycles: a tenth of a second
        copy = shared.clone()
        del shared  # the deleter runs here, before the copy does
    for _ in range(8):
        other = bridge.create_(COUNT, 0)
        bridge.fill_(own, other, 9)
        bridge.sync_(own)
        bridge.destroy_(other)
    stream.synchronize()
    check(bool((copy == 5).all()), "memory that a wrapped stream still reads is not used again")
    bridge.sync_(queue)
    bridge.queue_destroy_(queue)
    bridge.queue_destroy_(own)


def check_host(bridge, torch):
    queue = bridge.queue_(None)
    tensor = bridge.create_(COUNT, 1)
    bridge.fill_(queue, tensor, 3)
    bridge.sync_(queue)
    shared = torch.from_dlpack(capsule_of(bridge, tensor))
    check(
        shared.device.type == "cpu" and int(shared.sum()) == 3 * COUNT,
        "a HOST buffer is a tensor on the processor",
    )
    del shared
    bridge.destroy_(tensor)
    for pinned in (False, True):
        theirs = torch.full((COUNT,), 11, dtype=torch.int32, pin_memory=pinned)
        shared = consume(bridge, theirs.__dlpack__())
        check(
            bridge.element_(queue, shared, COUNT - 1) == 11,
            "a %s tensor on the processor is a HOST buffer" % ("pinned" if pinned else "pageable"),
        )
        bridge.destroy_(shared)
    bridge.sync_(queue)
    bridge.queue_destroy_(queue)


def run(bridge, torch):
    bridge.open_(b"0")
    check_capsules(bridge, 1)
    check_capsules(bridge, 0)
    if torch:
        check_weir_to_torch(bridge, torch)
        check_torch_to_weir(bridge, torch)
        check_stream(bridge, torch, torch.cuda.Stream(), "a stream of PyTorch's")
        check_stream(bridge, torch, torch.cuda.default_stream(), "PyTorch's default stream")
        check_lifetime(bridge, torch)
        check_host(bridge, torch)
    bridge.close_()
    check(True, "everything closes")


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--no-torch"]):
        print(__doc__, file=sys.stderr)
        return 2
    torch = None
    if len(sys.argv) == 2:
        try:
            import torch
        except ImportError as missing:
            print("skipped: %s" % missing)
            return 0
        if not torch.cuda.is_available():
            print("skipped: PyTorch has no CUDA device")
            return 0
        print("PyTorch %s, CUDA %s" % (torch.__version__, torch.version.cuda))
    bridge = Bridge(sys.argv[1])
    try:
        run(bridge, torch)
    except Exception as error:  # the rest of the run would only add to this
        check(False, "%s: %s" % (type(error).__name__, error))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
