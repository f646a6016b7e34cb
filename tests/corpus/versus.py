"""Times kernels of the corpus against nvcc's build of their CUDA originals, in turns on one GPU.

versus.py build --from DIR --out DIR --weir COMMAND [--nvcc COMMAND] [--arch 90] [--fast]
             [--only PATTERN]
versus.py run --images DIR [--rounds N] [--json FILE] [--only PATTERN]

`build` makes two cubins for each case: by Weir's compiler from the OpenCL C, and by nvcc from the
CUDA original as its authors build it; with --fast both with fast arithmetic (nvcc's is
--use_fast_math). `run` needs the folder and a GPU, of which it uses the driver alone: each side runs once from the
same contents, the results are compared, and then graphs of all launches are timed.
"""
import argparse
import array
import ctypes
import json
import math
import multiprocessing
import operator
import os
import random
import re
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from ctypes import byref, c_float as f32, c_int32 as i32, c_size_t, c_uint64 as u64, c_void_p

POLYBENCH = "cavazos-lab/PolyBench-ACC/"
RODINIA = "yuhc/gpu-rodinia/"
SHOC = "vetter/shoc/src/"
CASES = []


class Case:
    """Where a case's sources are. `original`: CUDA files that one file includes. `counts`: it is
    one of those that the mean is of."""

    def __init__(self, name, source, original, defines=(), includes=(), extra="", counts=True,
                 options=()):
        self.name, self.source, self.original, self.options = name, source, original, options
        self.defines, self.includes, self.extra = defines, includes, extra
        self.counts, self.script = counts, None


def case(*args, **kwargs):
    def add(function):
        one = Case(function.__name__, *args, **kwargs)
        one.script = function
        CASES.append(one)
        return function
    return add


class Failure(Exception):
    """Why a case has no times."""


class Driver:
    """The first NVIDIA GPU."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError:
            sys.exit("versus: no NVIDIA driver (libcuda.so.1)")
        self("cuInit", 0)
        self("cuCtxSetCurrent", self.make("cuDevicePrimaryCtxRetain", 0))
        self.stream = self.make("cuStreamCreate", 1)
        self.events = [self.make("cuEventCreate", 0) for _ in range(2)]

    def __call__(self, name, *arguments):
        text, result = ctypes.c_char_p(), getattr(self.library, name)(*arguments)
        if result:
            self.library.cuGetErrorString(result, byref(text))
            raise Failure("%s: %s" % (name, (text.value or b"unknown error").decode()))

    def make(self, name, *arguments, kind=c_void_p):
        """What the call stores at its first argument."""
        made = kind()
        self(name, byref(made), *arguments)
        return made


class Buffer:
    def __init__(self, driver, contents):
        self.size = c_size_t(len(contents) * contents.itemsize)
        self.now, self.first = [driver.make("cuMemAlloc_v2", self.size, kind=u64) for _ in range(2)]
        driver("cuMemcpyHtoD_v2", self.first, c_void_p(contents.buffer_info()[0]), self.size)

    def bytes(self, driver, at):
        data = bytearray(self.size.value)
        driver("cuMemcpyDtoH_v2", (ctypes.c_char * len(data)).from_buffer(data), at, self.size)
        return data


class Session:
    """A case on the GPU: buffers of 4-byte elements, what each side launches, and what has to agree. `entries`: of
    each side {name: name in its image}."""

    def __init__(self, driver, images, entries):
        self.driver, self.entries, self.random = driver, entries, random.Random(1)
        self.images = [driver.make("cuModuleLoad", os.fsencode(path)) for path in images]
        self.buffers, self.launches, self.checks = [], ([], []), []

    def contents(self, count, kind, a=0.0, b=0.0):
        draw, size = self.random.random, int(a)
        if kind == "uniform":
            return array.array("f", (a + (b - a) * draw() for _ in range(count)))
        if kind == "integers":
            return array.array("i", (size + int((b - a) * draw()) for _ in range(count)))
        if kind == "diagonal":  # a matrix that can be decomposed without a choice of pivots
            return array.array("f", (draw() + (a if i // size == i % size else 0) for i in range(count)))
        if kind == "nodes":
            return array.array("i", (x for i in range(count // 2) for x in (i * size, size)))
        data = array.array("i", bytes(4 * count))
        if kind == "bytes":
            data[0] = 1
        for i in range(1, size if kind == "borders" else 0):  # of an alignment's scores
            data[i] = data[i * size] = -i * int(b)
        return data

    def buffer(self, count, contents="zeros"):
        kind, *numbers = contents.split()
        self.buffers.append(Buffer(self.driver, self.contents(count, kind, *map(float, numbers))))
        return self.buffers[-1]

    def launch(self, side, kernel, blocks, threads, arguments, shared=0):
        pad = [1, 1, 1]
        sizes = (list(blocks) + pad)[:3] + (list(threads) + pad)[:3] + [shared]
        values = [a.now if isinstance(a, Buffer) else a for a in arguments]
        function = self.driver.make("cuModuleGetFunction", self.images[side], self.entries[side][kernel].encode())
        self.launches[side].append((function, sizes, (c_void_p * len(values))(*map(ctypes.addressof, values)), values))

    def ours(self, *args, **kwargs):
        self.launch(0, *args, **kwargs)

    def theirs(self, *args, **kwargs):
        self.launch(1, *args, **kwargs)

    def both(self, ours, theirs, blocks, threads, *arguments):
        """Lists of arguments, whose order in the original is the other way round."""
        self.ours(ours, blocks, threads, sum(arguments, []))
        self.theirs(theirs, blocks, threads, sum(arguments[::-1], []))

    def check(self, buffer, bound=0.0):
        """`bound`: of |difference| / largest value; 0 asks for the same bits."""
        self.checks.append((buffer, bound))

    def submit(self, side):
        for function, sizes, pointers, _ in self.launches[side]:
            self.driver("cuLaunchKernel", function, *sizes, self.driver.stream, pointers, None)

    def restore(self):
        for buffer in self.buffers:
            self.driver("cuMemcpyDtoDAsync_v2", buffer.now, buffer.first, buffer.size, self.driver.stream)

    def results(self, side):
        self.restore()
        self.submit(side)
        self.driver("cuStreamSynchronize", self.driver.stream)
        return [buffer.bytes(self.driver, buffer.now) for buffer, _ in self.checks]

    def compare(self):
        for (buffer, bound), ours, theirs in zip(self.checks, self.results(0), self.results(1)):
            if ours == buffer.bytes(self.driver, buffer.first):
                raise Failure("the kernels changed nothing")
            a, b = array.array("f", bytes(ours)), array.array("f", bytes(theirs))
            if bound and not (all(map(math.isfinite, a)) and all(map(math.isfinite, b))):
                raise Failure("a result is not finite")
            if ours != theirs if not bound else \
                    max(map(abs, map(operator.sub, a, b))) > bound * max(map(abs, b)):
                raise Failure("the results differ")

    def graph_of(self, side, repeats):
        self.driver("cuStreamBeginCapture_v2", self.driver.stream, 0)
        for _ in range(repeats):
            self.submit(side)
        graph = c_void_p()
        self.driver("cuStreamEndCapture", self.driver.stream, byref(graph))
        return self.driver.make("cuGraphInstantiateWithFlags", graph, u64(0))

    def time_of(self, graph, repeats):
        stream, events = self.driver.stream, self.driver.events
        self.restore()
        self.driver("cuEventRecord", events[0], stream)
        self.driver("cuGraphLaunch", graph, stream)
        self.driver("cuEventRecord", events[1], stream)
        self.driver("cuStreamSynchronize", stream)
        return self.driver.make("cuEventElapsedTime", *events, kind=f32).value * 1e6 / repeats

    def times(self, rounds, repeats):
        """Nanoseconds of both sides in each round, in turns; the first rounds warm up."""
        self.compare()
        graphs, pairs = [self.graph_of(side, repeats) for side in (0, 1)], []
        for i in range(rounds + 3):
            pair = [0.0, 0.0]
            for side in (i % 2, 1 - i % 2):
                pair[side] = self.time_of(graphs[side], repeats)
            pairs.append(pair)
        return pairs[3:]


def polybench(path, opencl, cuda=None):
    """Where PolyBench has a kernel: a folder, and the files in it."""
    return case(POLYBENCH + "OpenCL/%s/%s.cl" % (path, opencl),
                [POLYBENCH + "CUDA/%s/%s.cu" % (path, cuda or opencl)],
                includes=[POLYBENCH + "CUDA/utilities"])


@polybench("linear-algebra/kernels/gemm", "gemm")
def gemm(s):
    n = 512
    a, b, c = [s.buffer(n * n, "uniform 0 1") for _ in range(3)]
    alpha, beta, grid = f32(32412), f32(2123), (n // 32, n // 8)
    s.both("gemm", "gemm_kernel", grid, (32, 8), [a, b, c], [alpha, beta], [i32(n)] * 3)
    s.check(c, 1e-5)
    return 5


@polybench("stencils/convolution-2d", "2DConvolution")
def convolution_2d(s):
    n = 4096
    a, b = s.buffer(n * n, "uniform 0 1"), s.buffer(n * n)
    grid = (n // 32, n // 8)
    s.both("Convolution2D_kernel", "convolution2D_kernel", grid, (32, 8), [a, b], [i32(n)] * 2)
    s.check(b, 1e-6)
    return 20


@polybench("linear-algebra/kernels/atax", "atax")
def atax(s):
    n, grid = 4096, (4096 // 256,)
    a, x = s.buffer(n * n, "uniform 0 1"), s.buffer(n, "uniform 0 1")
    y, t = s.buffer(n), s.buffer(n)
    for kernel, other, out in (("atax_kernel1", x, t), ("atax_kernel2", y, y)):
        s.both(kernel, kernel, grid, (256,), [a, other, t], [i32(n)] * 2)
        s.check(out, 1e-5)
    return 1


@polybench("stencils/fdtd-2d", "fdtd2d")
def fdtd_2d(s):
    n, steps = 2048, 500
    source = s.buffer(steps, "uniform 0 1")
    ex, ey, hz = [s.buffer(n * n, "uniform 0 1") for _ in range(3)]
    grid, size = (n // 32, n // 8), [i32(n), i32(n)]
    for t in range(50):
        s.both("fdtd_kernel1", "fdtd_step1_kernel", grid, (32, 8), [source, ex, ey, hz, i32(t)], size)
        for one in "23":
            s.ours("fdtd_kernel" + one, grid, (32, 8), [ex, ey, hz] + size)
            s.theirs("fdtd_step%s_kernel" % one, grid, (32, 8), size + [ex, ey, hz, i32(t)])
    s.check(hz, 1e-5)
    return 1


@case(RODINIA + "opencl/hotspot/hotspot_kernel.cl", [RODINIA + "cuda/hotspot/hotspot.cu"],
      defines=["BLOCK_SIZE=16"])
def hotspot(s):
    n, size, steps = 1024, 16, 2
    heat, power = s.buffer(n * n, "uniform 320 345"), s.buffer(n * n, "uniform 0 0.001")
    out, width = s.buffer(n * n), 0.016 / n
    resistance = width / (2 * 100 * 0.0005 * width)
    rest = [f32(0.5 * 1.75e6 * 0.0005 * width * width), f32(resistance), f32(resistance),
            f32(0.0005 / (100 * width * width)), f32(0.001 / (3.0e6 / (0.5 * 0.0005 * 1.75e6)))]
    both = [i32(steps), power, heat, out, i32(n), i32(n), i32(steps), i32(steps)] + rest
    blocks = -(-n // (size - 2 * steps))
    s.ours("hotspot", (blocks, blocks), (size, size), both)
    s.theirs("calculate_temp", (blocks, blocks), (size, size), both + [f32(0.001)])
    s.check(out, 1e-6)
    return 20


@case(RODINIA + "opencl/pathfinder/kernels.cl", [RODINIA + "cuda/pathfinder/pathfinder.cu"])
def pathfinder(s):
    columns, rows, height, block = 100000, 100, 20, 256
    wall = s.buffer(columns * rows, "integers 0 10")
    results = [s.buffer(columns, "integers 0 10"), s.buffer(columns)]
    notes, blocks = s.buffer(16384), -(-columns // (block - height * 2))
    for t in range(0, rows - 1, height):
        first, sizes = [i32(min(height, rows - t - 1)), wall] + results, [i32(columns), i32(rows)]
        # Two arrays in the block's dynamic shared memory, by their offsets.
        s.ours("dynproc_kernel", (blocks,), (block,),
               first + sizes + [i32(t), i32(height), i32(1), u64(0), u64(4 * block), notes],
               shared=8 * block)
        s.theirs("dynproc_kernel", (blocks,), (block,), first + sizes + [i32(t), i32(height)])
        results.reverse()
    s.check(results[0])
    return 10


@case(RODINIA + "opencl/nw/nw.cl", [RODINIA + "cuda/nw/needle.cu"], defines=["BLOCK_SIZE=16"])
def needleman_wunsch(s):
    n, size, penalty = 2048, 16, 10
    wide, blocks = n + 1, n // size
    cost = s.buffer(wide * wide, "integers -4 12")
    items = s.buffer(wide * wide, "borders %d %d" % (wide, penalty))
    unused, tile = s.buffer(16), 4 * (size + 1) * (size + 1)
    second = -(-tile // 16) * 16
    for number, turns in (("1", range(1, blocks + 1)), ("2", range(blocks - 1, 0, -1))):
        for turn in turns:
            middle = [i32(wide), i32(penalty), i32(turn), i32(blocks)]
            s.ours("nw_kernel" + number, (turn,), (size,),
                   [cost, items, unused, u64(0), u64(second)] + middle
                   + [i32(n), i32(0), i32(0)], shared=second + 4 * size * size)
            s.theirs("needle_cuda_shared_" + number, (turn,), (size,), [cost, items] + middle)
    s.check(items)
    return 1


@case(RODINIA + "opencl/lud/lud_kernel.cl", [RODINIA + "cuda/lud/cuda/lud_kernel.cu"],
      defines=["BLOCK_SIZE=16"], includes=[RODINIA + "cuda/lud/common"])
def lud(s):
    n, size = 2048, 16
    m, tile = s.buffer(n * n, "diagonal %d" % n), 4 * size * size

    def both(kernel, blocks, threads, tiles, offset):
        s.ours(kernel, blocks, threads, [m] + [u64(i * tile) for i in range(tiles)]
               + [i32(n), i32(offset)], shared=tiles * tile)
        s.theirs(kernel, blocks, threads, [m, i32(n), i32(offset)])
    for i in range(0, n - size, size):
        left = (n - i) // size - 1
        both("lud_diagonal", (1,), (size,), 1, i)
        both("lud_perimeter", (left,), (2 * size,), 3, i)
        both("lud_internal", (left, left), (size, size), 2, i)
    both("lud_diagonal", (1,), (size,), 1, n - size)
    s.check(m, 1e-6)
    return 1


@case(RODINIA + "opencl/bfs/Kernels.cl", [RODINIA + "cuda/bfs/bfs.cu"])
def bfs(s):
    n, degree, block = 1048576, 6, 512
    nodes = s.buffer(2 * n, "nodes %d" % degree)
    edges = s.buffer(n * degree, "integers 0 %d" % n)
    mask, visited = s.buffer(n // 4, "bytes"), s.buffer(n // 4, "bytes")
    updating, over, cost = s.buffer(n // 4), s.buffer(1), s.buffer(n)
    for _ in range(12):
        for side, kernels in enumerate((("BFS_1", "BFS_2"), ("Kernel", "Kernel2"))):
            s.launch(side, kernels[0], (n // block,), (block,),
                     [nodes, edges, mask, updating, visited, cost, i32(n)])
            s.launch(side, kernels[1], (n // block,), (block,),
                     [mask, updating, visited, over, i32(n)])
    s.check(cost)
    return 1


SCANS = """
template __global__ void reduce<float, 256>(const float *, float *, int);
template __global__ void scan_single_block<float, 256>(float *, int);
template __global__ void bottom_scan<float, float4, 256>(const float *, float *, const float *,
                                                         int);
"""


# The original's block size is an argument of its templates; that of the OpenCL C is asked for at
# run time, so that no compiler can unroll its loops. A macro makes them alike, and an option what
# the original promises of its pointers.
@case(SHOC + "opencl/level1/scan/scan.cl", [SHOC + "cuda/level1/scan/scan_kernel.h"],
      defines=["SINGLE_PRECISION", "get_local_size(d)=256"], extra=SCANS, options=["--restrict"])
def scan(s):
    n, groups, block = 16777216, 64, 256
    data, out = s.buffer(n, "uniform 0 1"), s.buffer(n)
    sums, small = s.buffer(groups), 4 * block
    s.ours("reduce", (groups,), (block,), [data, sums, i32(n), u64(0)], shared=small)
    s.ours("top_scan", (1,), (block,), [sums, i32(groups), u64(0)], shared=2 * small)
    s.ours("bottom_scan", (groups,), (block,), [data, sums, out, i32(n), u64(0)],
           shared=2 * small)
    s.theirs("reduce", (groups,), (block,), [data, sums, i32(n)], shared=small)
    s.theirs("scan_single_block", (1,), (block,), [sums, i32(groups)], shared=2 * small)
    s.theirs("bottom_scan", (groups,), (block,), [data, out, sums, i32(n)], shared=2 * small)
    s.check(out, 1e-5)
    return 10


@case(SHOC + "opencl/level1/scan/scan.cl", [SHOC + "cuda/level1/scan/scan_kernel.h"],
      defines=["SINGLE_PRECISION"], extra=SCANS, counts=False)
def scan_any_block(s):
    return scan(s)


# The original without what it promises beyond the OpenCL C: that its arrays do not overlap.
@case(SHOC + "opencl/level1/scan/scan.cl", [SHOC + "cuda/level1/scan/scan_kernel.h"],
      defines=["SINGLE_PRECISION", "get_local_size(d)=256", "__restrict__="], extra=SCANS,
      counts=False)
def scan_may_overlap(s):
    return scan(s)


@polybench("linear-algebra/kernels/mvt", "mvt")
def mvt(s):
    n = 4096
    a, grid = s.buffer(n * n, "uniform 0 1"), (n // 256,)
    x1, x2, y1, y2 = [s.buffer(n, "uniform 0 1") for _ in range(4)]
    for kernel, x, y in (("mvt_kernel1", x1, y1), ("mvt_kernel2", x2, y2)):
        s.both(kernel, kernel, grid, (256,), [a, x, y], [i32(n)])
        s.check(x, 1e-5)
    return 1


@polybench("linear-algebra/kernels/bicg", "bicg")
def bicg(s):
    n, size = 4096, [i32(4096), i32(4096)]
    a, grid = s.buffer(n * n, "uniform 0 1"), (n // 256,)
    p, r = [s.buffer(n, "uniform 0 1") for _ in range(2)]
    q, t = s.buffer(n), s.buffer(n)
    s.both("bicgKernel1", "bicg_kernel2", grid, (256,), [a, p, q], size)
    s.both("bicgKernel2", "bicg_kernel1", grid, (256,), [a, r, t], size)
    s.check(q, 1e-5)
    s.check(t, 1e-5)
    return 1


@polybench("linear-algebra/kernels/gesummv", "gesummv")
def gesummv(s):
    n = 4096
    a, b = [s.buffer(n * n, "uniform 0 1") for _ in range(2)]
    x, y, t = s.buffer(n, "uniform 0 1"), s.buffer(n), s.buffer(n)
    scale, grid = [f32(1.5), f32(1.25)], (n // 256,)
    s.ours("gesummv_kernel", grid, (256,), [a, b, x, y, t] + scale + [i32(n)])
    s.theirs("gesummv_kernel", grid, (256,), [i32(n)] + scale + [a, b, t, x, y])
    s.check(y, 1e-5)
    return 1


@polybench("linear-algebra/kernels/syrk", "syrk")
def syrk(s):
    n, size = 1024, [i32(1024), i32(1024)]
    a, c = [s.buffer(n * n, "uniform 0 1") for _ in range(2)]
    scale, grid = [f32(1.5), f32(1.25)], (n // 32, n // 8)
    s.both("syrk_kernel", "syrk_kernel", grid, (32, 8), [a, c], scale, size)
    s.check(c, 1e-5)
    return 1


@polybench("linear-algebra/kernels/syr2k", "syr2k")
def syr2k(s):
    n, size = 1024, [i32(1024), i32(1024)]
    a, b, c = [s.buffer(n * n, "uniform 0 1") for _ in range(3)]
    scale, grid = [f32(1.5), f32(1.25)], (n // 32, n // 8)
    s.both("syr2k_kernel", "syr2k_kernel", grid, (32, 8), [a, b, c], scale, size)
    s.check(c, 1e-5)
    return 1


@polybench("linear-algebra/kernels/2mm", "2mm")
def two_products(s):
    n, size = 1024, [i32(1024)] * 4
    a, b, c, d = [s.buffer(n * n, "uniform 0 1") for _ in range(4)]
    t, scale, grid = s.buffer(n * n), [f32(1.5), f32(1.25)], (n // 32, n // 8)
    s.both("mm2_kernel1", "mm2_kernel1", grid, (32, 8), [t, a, b], size + scale)
    s.both("mm2_kernel2", "mm2_kernel2", grid, (32, 8), [t, c, d], size + scale)
    s.check(d, 1e-5)
    return 1


@polybench("datamining/correlation", "correlation")
def correlation(s):
    n, size, count = 2048, [i32(2048), i32(2048)], f32(3214212.01)
    data, mean, deviation = s.buffer(n * n, "uniform 0 1"), s.buffer(n), s.buffer(n)
    line, grid = (n // 256,), (n // 32, n // 8)
    s.ours("mean_kernel", line, (256,), [mean, data, count] + size)
    s.ours("std_kernel", line, (256,), [mean, deviation, data, count, f32(0.005)] + size)
    s.ours("reduce_kernel", grid, (32, 8), [mean, deviation, data, count] + size)
    s.theirs("mean_kernel", line, (256,), size + [mean, data])
    s.theirs("std_kernel", line, (256,), size + [mean, deviation, data])
    s.theirs("reduce_kernel", grid, (32, 8), size + [mean, deviation, data])
    s.check(data, 1e-5)
    return 1


@polybench("stencils/jacobi-2d-imper", "jacobi2D")
def jacobi_2d(s):
    n, grid = 1024, (1024 // 32, 1024 // 8)
    a, b = [s.buffer(n * n, "uniform 0 1") for _ in range(2)]
    for _ in range(20):
        for one in "12":
            s.both("runJacobi2D_kernel" + one, "runJacobiCUDA_kernel" + one, grid, (32, 8), [a, b], [i32(n)])
    s.check(a, 1e-5)
    return 2


@polybench("stencils/convolution-3d", "3DConvolution")
def convolution_3d(s):
    n, grid = 256, (256 // 32, 256 // 8)
    a, b = s.buffer(n ** 3, "uniform 0 1"), s.buffer(n ** 3)
    for i in range(1, n - 1):
        s.ours("Convolution3D_kernel", grid, (32, 8), [a, b] + [i32(n)] * 3 + [i32(i)])
        s.theirs("convolution3D_kernel", grid, (32, 8), [i32(n)] * 3 + [a, b, i32(i)])
    s.check(b, 1e-5)
    return 1


@polybench("linear-algebra/solvers/lu", "lu")
def lu(s):
    n = 2048
    a, grid = s.buffer(n * n, "diagonal %d" % n), (n // 32, n // 8)
    for k in range(24):
        s.both("lu_kernel1", "lu_kernel1", (n // 256,), (256,), [a, i32(k)], [i32(n)])
        s.both("lu_kernel2", "lu_kernel2", grid, (32, 8), [a, i32(k)], [i32(n)])
    s.check(a, 1e-5)
    return 1


HERE = os.path.dirname(os.path.abspath(__file__))


def own_map(name, low, high):
    """A kernel of own.cl and own.cu, which the mean is without."""
    def script(s):
        n = 4194304
        a, out = s.buffer(n, "uniform %g %g" % (low, high)), s.buffer(n)
        for side in (s.ours, s.theirs):
            side(name, (n // 256,), (256,), [a, out, i32(n)])
        s.check(out, 1e-4)
        return 8
    script.__name__ = "own_" + name
    case(os.path.join(HERE, "own.cl"), [os.path.join(HERE, "own.cu")], counts=False)(script)


for name, low, high in (("map_tanh", -4, 4), ("map_erf", -3, 3), ("map_sin", -30, 30),
                        ("map_atan", -9, 9), ("map_log2", 0.01, 99), ("map_pow", 0.1, 9)):
    own_map(name, low, high)


def entries_of(ptx):
    """{name in the source: name in the image}"""
    found = {}
    for name in re.findall(r"\.entry (\w+)", ptx):
        plain = re.match(r"_Z(\d+)", name)
        start = plain.end() if plain else 0
        found[name[start:start + int(plain.group(1))] if plain else name] = name
    return found


def run_command(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit("versus: %s\n%s" % (" ".join(command), done.stderr))
    return done.stdout


def build(args):
    os.makedirs(args.out, exist_ok=True)
    index = {}
    for one in [one for one in CASES if re.search(args.only, one.name)]:
        base = os.path.join(args.out, one.name)
        defines = ["-D" + d for d in one.defines if "(" not in d]
        ptx = run_command([args.weir, "kernels", "ptx", "--arch", args.arch]
                          + ["--fast"] * args.fast + list(one.options)
                          + [w for d in one.defines for w in ("-D", d)]
                          + [os.path.join(args.folder, one.source)])
        with open(base + ".ours.ptx", "w") as file:
            file.write(ptx)
        run_command([args.ptxas, "-arch=sm_" + args.arch, base + ".ours.ptx", "-o",
                     base + ".ours.cubin"])
        with open(base + ".cu", "w") as file:
            for path in one.original:
                file.write('#include "%s"\n' % os.path.abspath(os.path.join(args.folder, path)))
            file.write(one.extra)
        nvcc = [args.nvcc, "-arch=sm_" + args.arch, "-w",
                "-DcudaThreadSynchronize=cudaDeviceSynchronize"] + defines
        nvcc += ["--use_fast_math"] * args.fast
        nvcc += ["-I" + os.path.join(args.folder, i) for i in one.includes]
        run_command(nvcc + ["-cubin", base + ".cu", "-o", base + ".theirs.cubin"])
        run_command(nvcc + ["-ptx", base + ".cu", "-o", base + ".theirs.ptx"])
        with open(base + ".theirs.ptx") as file:
            index[one.name] = [entries_of(ptx), entries_of(file.read())]
        print("built", one.name, flush=True)
    with open(os.path.join(args.out, "index.json"), "w") as file:
        json.dump(index, file, indent=1)


def quartiles(values):
    values = sorted(values)
    return [values[round(q * (len(values) - 1))] for q in (0.25, 0.5, 0.75)]


def pairs_of(name, images, entries, rounds):
    session = Session(Driver(), images, entries)
    return session.times(rounds, next(one for one in CASES if one.name == name).script(session))


def time_case(args, one, entries):
    images = ["%s.%s.cubin" % (os.path.join(args.images, one.name), name) for name in ("ours", "theirs")]
    try:
        # A process that has seen a fault of the GPU is of no more use.
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as child:
            pairs = child.submit(pairs_of, one.name, images, entries, args.rounds).result()
    except Failure as failure:
        print("%-18s %s" % (one.name, failure), flush=True)
        return None
    ratio = quartiles([a / b for a, b in pairs])
    ours, theirs = [quartiles([pair[side] for pair in pairs])[1] for side in (0, 1)]
    print("%-18s %12.1f %12.1f   %.3f (%.3f ... %.3f)%s" % (
        one.name, ours / 1e3, theirs / 1e3, ratio[1], ratio[0], ratio[2],
        "" if one.counts else "  not in the mean"), flush=True)
    return {"name": one.name, "ours_ns": ours, "theirs_ns": theirs, "ratio": ratio,
            "counts": one.counts}


def run(args):
    with open(os.path.join(args.images, "index.json")) as file:
        index = json.load(file)
    print("%-18s %12s %12s   %s" % ("kernels", "Weir, us", "nvcc, us", "ratio (quartiles)"))
    rows = [time_case(args, one, index[one.name]) for one in CASES
            if re.search(args.only, one.name)]
    good = [row for row in rows if row]
    logs = [math.log(row["ratio"][1]) for row in good if row["counts"]]
    if logs:
        print("%-18s %38.3f  geometric mean of %d" % ("", math.exp(sum(logs) / len(logs)),
                                                       len(logs)))
    if args.json:
        with open(args.json, "w") as file:
            json.dump(good, file, indent=1)
    sys.exit(len(good) != len(rows))


def main():
    parser = argparse.ArgumentParser(prog="versus.py", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("build")
    one.add_argument("--from", dest="folder", required=True)
    one.add_argument("--out", required=True)
    one.add_argument("--weir", default="weir")
    one.add_argument("--nvcc", default="nvcc")
    one.add_argument("--ptxas", default="ptxas")
    one.add_argument("--arch", default="90")
    one.add_argument("--fast", action="store_true")
    two = commands.add_parser("run")
    two.add_argument("--images", required=True)
    two.add_argument("--rounds", type=int, default=21)
    two.add_argument("--json")
    for command in (one, two):
        command.add_argument("--only", default="", help="a pattern of names")
    args = parser.parse_args()
    build(args) if args.command == "build" else run(args)


if __name__ == "__main__":
    main()
