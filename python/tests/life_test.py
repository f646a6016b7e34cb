"""Who ends when: objects in any order, threads, forks, the end of the interpreter, memory over many operations."""

import gc
import itertools
import os
import random
import subprocess
import sys
import threading

import pytest

import weir
from conftest import BACKEND, PLUGINS, SANITIZED, SOURCE

OPEN = f"import weir, sys\nruntime = weir.open('', backend={BACKEND!r}, plugins={PLUGINS.replace('trace, ', '')!r})\n"


def run(program):
    """Runs it with -X dev; its output, and the exit status has to be 0."""
    result = subprocess.run([sys.executable, "-X", "dev", "-c", OPEN + program], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result
    return result.stdout + result.stderr


def test_objects_end_in_any_order():
    for seed in range(40):
        runtime = weir.open("", backend=BACKEND, plugins=PLUGINS.replace("trace, ", ""))
        device = runtime.device()
        queue = device.queue("q")
        host = device.buffer(64, "uint8", "host")
        access = host.host("w")
        program = device.program(SOURCE)
        objects = [runtime, device, queue, host, host[3:9], access, access.array, program, program.kernel("scale"), device.pool(), queue.record(), weir.In(host)]
        queue.host_call(int)
        del runtime, device, queue, host, access, program
        random.Random(seed).shuffle(objects)
        while objects:
            objects.pop()
    gc.collect()


@pytest.mark.parametrize("order", itertools.permutations(range(3)))
def test_objects_close_in_any_order(order):
    runtime = weir.open("", backend=BACKEND)
    device = runtime.device()
    queue = device.queue()
    objects = [runtime, device, queue]
    for index in order:
        objects[index].close()
    for each in objects:
        each.close()
        assert each.closed
    with pytest.raises(weir.InvalidError, match="closed"):
        queue.record()


def test_host_calls_run_before_the_interpreter_ends():
    assert run("device = runtime.device(); queue = device.queue()\nimport time\nqueue.host_call(time.sleep, 0.2); queue.host_call(print, 'ran')\n") == "ran\n"


def test_globals_at_the_end_are_quiet():
    text = run(
        "device = runtime.device(); queue = device.queue(); buffer = device.buffer(64, 'f4', 'host')\n"
        "with buffer.host('w') as array: array[:] = 1\n"
        "cycle = [queue, array]; cycle.append(cycle)\n"
        "queue.host_call(lambda: queue.record()); event = queue.record()\n"
    )
    assert "Traceback" not in text and "Exception" not in text


@pytest.mark.parametrize("seed", range(6))
def test_globals_end_in_any_order_at_the_end(seed):
    made = ["device = runtime.device()", "queue = device.queue()", "buffer = device.buffer(64, 'f4', 'host')",
            "access = buffer.host('w')", "view = memoryview(access)", "part = buffer[3:9]", "pool = device.pool()",
            "borrowed = pool.allocate(queue, 8)", "comm = device.comm()", "capture = device.queue().capture()",
            "begun = capture.__enter__()", f"program = device.program({SOURCE!r})", "kernel = program.kernel('scale')",
            "call = queue.host_call(int)", "event = queue.record()", "region = runtime.region('late')",
            "wrapped = device.wrap(bytearray(8))", "batches = weir.loader(queue, [bytes(8)] * 9)", "batch = next(batches)"]
    names = [line.split(" ")[0] for line in made]
    random.Random(seed).shuffle(names)
    # Names are dropped in the order in which they were bound.
    moved = "".join(f"x{number} = {name}; del {name}\n" for number, name in enumerate(names))
    text = run("\n".join(made) + "\n" + moved + "held = [x0, runtime]; held.append(held); del runtime\n")
    assert "Traceback" not in text and "Exception" not in text and "Fatal" not in text


@pytest.mark.skipif(SANITIZED, reason="asan's allocator before GCC 13 has no fork handlers: a child can wait for ever for its lock")
def test_a_forked_child_is_refused_and_ends_quietly():
    text = run(
        "import os\ndevice = runtime.device(); queue = device.queue()\nqueue.record()\n"
        "if os.fork() == 0:\n"
        "    try: queue.record()\n"
        "    except weir.ForkedError: print('refused', flush=True)\n"
        "    sys.exit()\n"
        "os.wait()\nqueue.sync(); print('parent')\n"
    )
    lines = [line for line in text.splitlines() if "fork" not in line or line == "refused"]
    assert lines == ["refused", "parent"]


def test_a_queue_in_use_is_closed_when_the_call_has_ended(device):
    queue = device.queue()
    gate = threading.Event()
    queue.host_call(gate.wait)
    thread = threading.Thread(target=queue.sync)
    thread.start()
    queue.close()
    assert queue.closed
    gate.set()
    thread.join(60)
    assert not thread.is_alive()


def test_threads_submit_copy_call_and_wait(device):
    failures = []
    buffers = [device.buffer(256, label=f"b{i}") for i in range(8)]

    turns = 15 if "perturb" in PLUGINS else 60  # which postpones each host call

    def work(number):
        try:
            queue, seen = device.queue(f"q{number}"), []
            for turn in range(turns):
                queue.copy(buffers[2 * number], buffers[2 * number + 1])
                queue.host_call(seen.append, turn)
                queue.host_call(queue.record)
                if turn % 10 == 0:
                    queue.sync()
            queue.sync()
            assert seen == list(range(turns))
        except BaseException as error:
            failures.append(error)

    setup = device.queue()
    for buffer in buffers:
        setup.fill(buffer, 1)
    setup.sync()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures and not any(thread.is_alive() for thread in threads)


def resident_kib():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


@pytest.mark.skipif(PLUGINS != "" or BACKEND != "null", reason="plugins keep what they saw; a driver has caches")
@pytest.mark.skipif(SANITIZED, reason="the address sanitizer keeps what was freed")
def test_memory_is_flat_over_a_million_operations(device):
    queue, other = device.queue(), device.queue()
    a, b = device.buffer(64, "f4", "host"), device.buffer(64, "f4")
    kernel = device.program(SOURCE).kernel("scale")

    def many(count):
        for _ in range(count):
            queue.copy(b, a)
            event = queue.record()
            other.wait(event)
            queue.copy(b[1:9], a[:8])
            kernel[1, 64](queue, weir.In(a), weir.Out(b), 2)
            event.done
        for _ in range(count // 100):
            with a.host("w") as array:
                array[0] = 1
            queue.host_call(int)
            try:
                queue.fill(a, "no")
            except weir.InvalidError:
                pass
            queue.sync()

    many(20000)
    gc.collect()
    before = resident_kib()
    many(200000)
    gc.collect()
    assert resident_kib() - before < 1024


def test_an_exception_that_nothing_reported_is_shown_at_the_end():
    text = run(
        "device = runtime.device(); queue = device.queue()\n"
        "def wrong(): raise KeyError('unseen')\n"
        "queue.host_call(wrong)\n"
    )
    assert "KeyError: 'unseen'" in text and "in wrong" in text


def test_a_device_is_not_closed_in_a_host_call(device):
    queue = device.queue()
    queue.host_call(device.close)
    with pytest.raises(weir.HostCallError, match="cannot be closed in a host call"):
        queue.sync()
    queue.recover()
    assert not device.closed


@pytest.mark.parametrize("end", ["close", "free"])
def test_another_thread_may_end_what_a_submit_uses(device, end):
    queue, copies, ended = device.queue("calls"), device.queue("copies"), threading.Event()
    comm, dst, pool, failures = device.comm(), device.buffer(64, "int32"), device.pool(), []
    with queue.capture():
        queue.host_call(int)  # from now on submits release the interpreter's lock

    def filled():
        buffer = pool.allocate(copies, 64, "int32") if end == "free" else device.buffer(64, "int32")
        copies.fill(buffer, 1)
        return buffer

    shared = [filled()]

    def submit(call):
        try:
            while not ended.is_set():
                try:
                    call(shared[0])
                except weir.InvalidError as error:
                    assert "is closed" in str(error)
        except BaseException as error:
            failures.append(error)

    calls = [lambda src: copies.copy(dst, src), lambda src: comm.all_reduce(copies, dst, src)]
    threads = [threading.Thread(target=submit, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for _ in range(300):
        old, shared[0] = shared[0], filled()
        old.free(copies) if end == "free" else old.close()
    ended.set()
    for thread in threads:
        thread.join(60)
    device.sync()
    assert not failures and not any(thread.is_alive() for thread in threads)
