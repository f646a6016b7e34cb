"""Copy, compute, copy back in chunks: chunk by chunk, or first all copies, then all kernels, then all results."""

import weir

SOURCE = "__kernel void process(__global float *x) { size_t i = get_global_id(0); x[i] = 2.0f * x[i] + 1.0f; }"
N, QUEUES = 1 << 22, 4
CHUNK = N // QUEUES


def depth_first(queues, process, source, chunks, result):
    for i, queue in enumerate(queues):
        part = slice(i * CHUNK, (i + 1) * CHUNK)
        queue.copy(chunks[i], source[part])
        process[CHUNK // 256, 256](queue, weir.InOut(chunks[i]))
        queue.copy(result[part], chunks[i])


def breadth_first(queues, process, source, chunks, result):
    for i, queue in enumerate(queues):
        queue.copy(chunks[i], source[i * CHUNK:(i + 1) * CHUNK])
    for i, queue in enumerate(queues):
        process[CHUNK // 256, 256](queue, weir.InOut(chunks[i]))
    for i, queue in enumerate(queues):
        queue.copy(result[i * CHUNK:(i + 1) * CHUNK], chunks[i])


with weir.open() as runtime, runtime.device() as device:
    process = device.program(SOURCE).kernel("process")
    queues = [device.queue(f"q{i}") for i in range(QUEUES)]
    source = device.buffer(N, "float32", placement="host", label="source")
    result = device.buffer(N, "float32", placement="host", label="result")
    chunks = [device.buffer(CHUNK, "float32", label=f"chunk{i}") for i in range(QUEUES)]

    for order in depth_first, breadth_first:
        with source.host("w") as array:
            array[:] = 3.0
        order(queues, process, source, chunks, result)
        queues[-1].sync()
        with result.host("r") as array:
            print(order.__name__, "wrong:", sum(1 for value in array[::1024] if value != 7.0))

# weir check python chunked_broken.py
#
# host-read, 3 times
#   the host at chunked_broken.py:39 reads bytes 8388608 to 12582911 of buffer 'result', which the copy on 'q2' at chunked_broken.py:15 may still write
#   to do: record on 'q2' after chunked_broken.py:15, sync with that event before chunked_broken.py:39
# host-read, 3 times
#   the host at chunked_broken.py:39 reads bytes 8388608 to 12582911 of buffer 'result', which the copy on 'q2' at chunked_broken.py:24 may still write
#   to do: record on 'q2' after chunked_broken.py:24, sync with that event before chunked_broken.py:39
