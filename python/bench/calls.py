"""calls.py CALLS: what calls cost on null, in C by the program CALLS and in Python, in turns.

The time is the thread's own, so that a busy machine matters less.
"""

import os
import statistics
import subprocess
import sys
import time

import weir

COUNT = 200000
TURNS = 7
SOURCE = "kernel void scale(global const float *src, global float *dst, float factor) {}"


def in_python():
    with weir.open("", backend="null") as runtime, runtime.device() as device:
        queue, other = device.queue("a"), device.queue("b")
        a, b = device.buffer(16, "float32"), device.buffer(16, "float32")
        kernel = device.program(SOURCE).kernel("scale")
        event = other.record()
        In, Out, bound = weir.In, weir.Out, kernel[1, 16]
        figures = {}

        def timed(name, body):
            begin = time.thread_time_ns()
            body(range(COUNT))
            figures[name] = (time.thread_time_ns() - begin) / COUNT
            queue.sync()

        def loop(counts):
            for _ in counts:
                pass

        def copy(counts):
            for _ in counts:
                queue.copy(a, b)

        def record(counts):
            for _ in counts:
                queue.record()

        def wait(counts):
            for _ in counts:
                queue.wait(event)

        def sync(counts):
            for _ in counts:
                queue.sync()

        def launch(counts):
            for _ in counts:
                kernel[1, 16](queue, In(a), Out(b), 2.0)

        def bound_launch(counts):
            for _ in counts:
                bound(queue, In(a), Out(b), 2.0)

        for body in (loop, copy, record, wait, sync, launch, bound_launch):
            timed(body.__name__, body)
        return figures


def in_c():
    text = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout
    return {name: float(value) for name, value in (line.split() for line in text.splitlines())}


def main():
    rows = [(in_c(), in_python()) for _ in range(TURNS)]
    print(f"nanoseconds a call, median of {TURNS} turns of {COUNT}; load {os.getloadavg()[0]:.1f}")
    print(f"{'':14}{'C':>8}{'Python':>8}")
    for name in rows[0][1]:
        c = statistics.median(row[0].get(name, 0) for row in rows)
        python = statistics.median(row[1][name] for row in rows)
        print(f"{name:14}{c or '-':>8}{python:8.0f}")


main()
