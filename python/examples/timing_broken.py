"""How long a kernel takes: two events of a queue with times."""

import weir

SOURCE = """
__kernel void work(__global float *x)
{
    size_t i = get_global_id(0);
    for (int k = 0; k < 64; k++)
        x[i] = x[i] * 0.5f + 1.0f;
}
"""
N = 1 << 20

with weir.open() as runtime, runtime.device() as device:
    work = device.program(SOURCE).kernel("work")
    queue = device.queue("timed", timing=True)
    x = device.buffer(N, "float32", placement="host", label="x")

    queue.fill(x, 2.0)
    work[N // 256, 256](queue, weir.InOut(x))  # the first launch is slower: drivers compile
    start = queue.record()
    work[N // 256, 256](queue, weir.InOut(x))
    end = queue.record()
    with x.host("r") as array:
        print("wrong:", sum(1 for value in array[::1024] if value != 2.0))
    end.sync()
    elapsed_ms = (end.time_ns - start.time_ns) / 1e6
    print(f"kernel: {elapsed_ms:.2f} ms")

# weir check python timing_broken.py
#
# host-read, 1 time
#   the host at timing_broken.py:25 reads bytes 0 to 4194303 of buffer 'x', which the launch of 'work' on 'timed' at timing_broken.py:23 may still read and write
#   to do: record on 'timed' after timing_broken.py:23, sync with that event before timing_broken.py:25
