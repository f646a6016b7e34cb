"""Pairs as those of pairs.c, in Python, with the same usage."""

import sys
import threading

import numpy as np
import pyopencl as cl
import pyopencl.array
from pyopencl import mem_flags as mf

N = 4096
SOURCE = """
kernel void inc(global float *a) { a[get_global_id(0)] += 1; }
kernel void dbl(global const float *a, global float *b) { size_t i = get_global_id(0); b[i] = 2 * a[i]; }
"""
lines = {}


def A(event):
    lines["first"] = sys._getframe(1).f_lineno
    return event


def B(event):
    lines["second"] = sys._getframe(1).f_lineno
    return event


class Rig:
    def __init__(self):
        self.context = cl.create_some_context(interactive=False)
        self.one, self.two = (cl.CommandQueue(self.context) for _ in range(2))
        self.host, self.back = np.zeros(N, np.float32), np.zeros(N, np.float32)
        self.a, self.b = (
            cl.Buffer(self.context, mf.READ_WRITE | mf.COPY_HOST_PTR, hostbuf=self.host) for _ in range(2)
        )
        program = cl.Program(self.context, SOURCE).build()
        self.inc, self.dbl = program.inc, program.dbl


def when(mended, event):
    return [event] if mended else []


def write_kernel(r, mended):
    done = A(cl.enqueue_copy(r.one, r.a, r.host, is_blocking=False))
    B(r.dbl(r.two, (N,), None, r.a, r.b, wait_for=when(mended, done)))


def map_buffer(r, mended):
    done = A(r.inc(r.one, (N,), None, r.a))
    r.one.flush()
    flags = cl.map_flags.READ
    B(cl.enqueue_map_buffer(r.two, r.a, flags, 0, N, np.float32, wait_for=when(mended, done)))[0].base.release()


# The event that keeps the host's memory waits when it goes.
def image(r, mended):
    form = cl.ImageFormat(cl.channel_order.R, cl.channel_type.FLOAT)
    picture = cl.Image(r.context, mf.READ_WRITE | mf.COPY_HOST_PTR, form, shape=(64, 64), hostbuf=r.host)
    sent = {"is_blocking": False, "region": (32, 64)}
    kept = A(cl.enqueue_copy(r.one, picture, r.host, origin=(0, 0), **sent))
    B(cl.enqueue_copy(r.two, r.back, picture, origin=(32 if mended else 1, 0), **sent))
    del kept


# An array waits for what its events name.
def array(r, mended):
    x = pyopencl.array.to_device(r.one, r.host)
    A(x.__iadd__(np.float32(1)))
    y = x.with_queue(r.two) if mended else pyopencl.array.Array(r.two, N, np.float32, data=x.data)
    B(2 * y)


def thread(r, mended):
    done = []
    other = threading.Thread(target=lambda: done.append(A(r.inc(r.one, (N,), None, r.a))))
    other.start()
    other.join()
    B(r.dbl(r.two, (N,), None, r.a, r.b, wait_for=when(mended, done[0])))


CASES = [write_kernel, map_buffer, image, array, thread]


def main(way="--list", *names):
    if way == "--list":
        print(*(case.__name__ for case in CASES), sep="\n")
        return
    r = Rig()
    for case in CASES:
        if names and case.__name__ not in names:
            continue
        case(r, way == "mended")
        for queue in (r.one, r.two):
            queue.finish()
        print(case.__name__, lines["first"], lines["second"])


if __name__ == "__main__":
    main(*sys.argv[1:])
