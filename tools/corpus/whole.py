"""Runs whole kernels of the corpus at their authors' sizes on several backends, and checks them.

whole.py --from DIR --backend NAME[=VARIABLE=VALUE,...]... [--only PATTERN]
whole.py --from DIR --make DIR [--weir COMMAND] [--include DIR] [--only PATTERN]

The first form builds the sources at run time, with the package weir; a backend named bundle:NAME takes, from the
folder --bundles, what the second form made: a bundle for each case, compiled by Weir, in a library.

Every result is held against a reference that is computed here (in double precision, or exactly;
of large results at sampled elements), and whole results of the backends against each other.
"""
import argparse
import array
import hashlib
import math
import os
import pickle
import random
import re
import shlex
import subprocess
import sys
import tempfile

import files

CASES = []


def case(path):
    def add(function):
        CASES.append((function.__name__, path, function))
        return function
    return add


def i32(value):
    return array.array("i", [value]).tobytes()


def u32(*values):
    return array.array("I", values).tobytes()


def f32(value):
    return array.array("f", [value]).tobytes()


def local(size):
    return (size,)


class Buffer:
    def __init__(self, index, kind, data):
        self.index, self.kind, self.data = index, kind, data


class Run:
    """Buffers, launches, and what the results must be."""

    def __init__(self, name):
        self.name, self.buffers, self.launches, self.checks = name, [], [], []
        self.random = random.Random(1)

    def buffer(self, kind, data):
        values = array.array(kind, bytes(array.array(kind).itemsize * data)) \
            if isinstance(data, int) else array.array(kind, data)
        self.buffers.append(Buffer(len(self.buffers), kind, values))
        return self.buffers[-1]

    def uniform(self, count, low=0.0, high=1.0):
        draw = self.random.random
        return self.buffer("f", (low + (high - low) * draw() for _ in range(count)))

    def launch(self, kernel, sizes, block, *arguments):
        """Arguments: buffers by their indices, local() by tuples, and values by their bytes."""
        self.launches.append((kernel, tuple(-(-s // b) for s, b in zip(sizes, block)), tuple(block),
                              [a.index if isinstance(a, Buffer) else a for a in arguments]))

    def check(self, buffer, expected, bound=0.0):
        """`expected`: a sequence, or {index: value}. `bound`: of |difference| / largest value."""
        self.checks.append((buffer, expected, bound))

    def sample(self, count, number=2000):
        return sorted(self.random.sample(range(count), min(count, number)))


def worst(pairs, scale):
    error = 0.0
    for got, wanted in pairs:
        if got != wanted:
            error = max(error, abs(got - wanted) / scale if scale else math.inf)
            if math.isnan(got) or math.isnan(wanted):
                return math.inf
    return error


def compare(got, expected):
    if isinstance(expected, dict):
        pairs = [(got[i], value) for i, value in expected.items()]
    else:
        pairs = list(zip(got, expected))
    return worst(pairs, max((abs(wanted) for _, wanted in pairs), default=0.0))


# ---- the kernels -------------------------------------------------------------------------------

@case("cavazos-lab/PolyBench-ACC/OpenCL/linear-algebra/kernels/gemm/gemm.cl")
def gemm(run):
    n = 512
    data = [(i * j) / n for i in range(n) for j in range(n)]
    a, b, c = run.buffer("f", data), run.buffer("f", data), run.buffer("f", data)
    alpha, beta = 32412.0, 2123.0
    run.launch("gemm", (n, n), (32, 8), a, b, c, f32(alpha), f32(beta), i32(n), i32(n), i32(n))
    columns = [b.data[j::n] for j in range(n)]
    run.check(c, {i * n + j: beta * c.data[i * n + j] + alpha * sum(
        x * y for x, y in zip(a.data[i * n:(i + 1) * n], columns[j]))
                  for i, j in (divmod(k, n) for k in run.sample(n * n))}, 2e-5)


@case("cavazos-lab/PolyBench-ACC/OpenCL/linear-algebra/kernels/atax/atax.cl")
def atax(run):
    n = 2048
    a, x = run.uniform(n * n), run.uniform(n)
    y, t = run.buffer("f", n), run.buffer("f", n)
    for kernel, out in (("atax_kernel1", (a, x, t)), ("atax_kernel2", (a, y, t))):
        run.launch(kernel, (n,), (256,), *out, i32(n), i32(n))
    rows = [sum(p * q for p, q in zip(a.data[i * n:(i + 1) * n], x.data)) for i in range(n)]
    run.check(t, rows, 1e-4)
    run.check(y, {j: sum(p * q for p, q in zip(a.data[j::n], rows)) for j in run.sample(n, 200)},
              1e-4)


@case("cavazos-lab/PolyBench-ACC/OpenCL/stencils/convolution-2d/2DConvolution.cl")
def convolution_2d(run):
    n = 2048
    a, b = run.uniform(n * n), run.buffer("f", n * n)
    run.launch("Convolution2D_kernel", (n, n), (32, 8), a, b, i32(n), i32(n))
    weights = ((0.2, 0.5, -0.8), (-0.3, 0.6, -0.9), (0.4, 0.7, 0.1))
    run.check(b, {i * n + j: 0.0 if min(i, j) == 0 or max(i, j) == n - 1 else sum(
        weights[p][q] * a.data[(i + p - 1) * n + j + q - 1] for p in range(3) for q in range(3))
                  for i, j in (divmod(k, n) for k in run.sample(n * n))}, 1e-6)


@case("yuhc/gpu-rodinia/opencl/nn/nearestNeighbor_kernel.cl")
def nearest_neighbor(run):
    n = 42764
    places, out = run.uniform(2 * n, 0, 180), run.buffer("f", n)
    run.launch("NearestNeighbor", (n,), (256,), places, out, i32(n), f32(30), f32(90))
    run.check(out, [math.hypot(30 - places.data[2 * i], 90 - places.data[2 * i + 1])
                    for i in range(n)], 1e-6)


@case("yuhc/gpu-rodinia/opencl/gaussian/gaussianElim_kernels.cl")
def gaussian(run):
    n = 208
    a = run.buffer("f", (10 * math.exp(-0.01 * abs(i - j)) for i in range(n) for j in range(n)))
    b, m = run.buffer("f", [1.0] * n), run.buffer("f", n * n)
    rows, right = [list(a.data[i * n:(i + 1) * n]) for i in range(n)], list(b.data)
    for t in range(n - 1):
        run.launch("Fan1", (n,), (16,), m, a, b, i32(n), i32(t))
        run.launch("Fan2", (n, n), (16, 16), m, a, b, i32(n), i32(t))
        for i in range(t + 1, n):
            factor = rows[i][t] / rows[t][t]
            rows[i][t:] = [x - factor * y for x, y in zip(rows[i][t:], rows[t][t:])]
            right[i] -= factor * right[t]
    run.check(a, [x for row in rows for x in row], 1e-5)
    run.check(b, right, 1e-5)


@case("yuhc/gpu-rodinia/opencl/pathfinder/kernels.cl")
def pathfinder(run):
    columns, rows, height, block = 100000, 100, 20, 256
    wall = [run.random.randrange(10) for _ in range(columns * rows)]
    data = run.buffer("i", wall[columns:])
    results = [run.buffer("i", wall[:columns]), run.buffer("i", columns)]
    notes = run.buffer("i", 16384)
    step = block - height * 2
    for t in range(0, rows - 1, height):
        run.launch("dynproc_kernel", (-(-columns // step) * block,), (block,),
                   i32(min(height, rows - t - 1)), data, results[0], results[1], i32(columns),
                   i32(rows), i32(t), i32(height), i32(1), local(4 * block), local(4 * block),
                   notes)
        results.reverse()
    best = wall[:columns]
    for row in range(1, rows):
        left, right = [best[0]] + best[:-1], best[1:] + [best[-1]]
        best = [min(x) + w for x, w in zip(zip(left, best, right),
                                           wall[row * columns:(row + 1) * columns])]
    run.check(results[0], best)


@case("yuhc/gpu-rodinia/opencl/hotspot/hotspot_kernel.cl")
def hotspot(run):
    n, size, steps = 512, 16, 2
    heat, power = run.uniform(n * n, 320, 345), run.uniform(n * n, 0, 1e-3)
    out = run.buffer("f", n * n)
    width = 0.016 / n
    capacity = 0.5 * 1.75e6 * 0.0005 * width * width
    rx = ry = width / (2 * 100 * 0.0005 * width)
    rz = 0.0005 / (100 * width * width)
    step = 0.001 / (3.0e6 / (0.5 * 0.0005 * 1.75e6))
    blocks = -(-n // (size - 2 * steps))
    run.launch("hotspot", (blocks * size, blocks * size), (size, size), i32(steps), power, heat,
               out, i32(n), i32(n), i32(steps), i32(steps), f32(capacity), f32(rx), f32(ry),
               f32(rz), f32(step))
    old = heat.data
    for _ in range(steps):
        new = [0.0] * (n * n)
        for i in range(n):
            up, down = max(i - 1, 0) * n, min(i + 1, n - 1) * n
            for j in range(n):
                x = old[i * n + j]
                left, right = old[i * n + max(j - 1, 0)], old[i * n + min(j + 1, n - 1)]
                new[i * n + j] = x + step / capacity * (
                    power.data[i * n + j] + (old[down + j] + old[up + j] - 2 * x) / ry
                    + (left + right - 2 * x) / rx + (80 - x) / rz)
        old = new
    run.check(out, old, 1e-6)


@case("yuhc/gpu-rodinia/opencl/nw/nw.cl")
def needleman_wunsch(run):
    n, size, penalty = 2048, 16, 10
    wide = n + 1
    reference = [run.random.randrange(-4, 12) for _ in range(wide * wide)]
    scores = [0] * (wide * wide)
    for i in range(1, wide):
        scores[i * wide] = scores[i] = -i * penalty
    cost, items = run.buffer("i", reference), run.buffer("i", scores)
    unused, blocks = run.buffer("i", wide * wide), n // size
    for kernel, turns in (("nw_kernel1", range(1, blocks + 1)),
                          ("nw_kernel2", range(blocks - 1, 0, -1))):
        for turn in turns:
            run.launch(kernel, (size * turn,), (size,), cost, items, unused,
                       local(4 * (size + 1) * (size + 1)), local(4 * size * size), i32(wide),
                       i32(penalty), i32(turn), i32(blocks), i32(n), i32(0), i32(0))
    for i in range(1, wide):
        row, above = i * wide, (i - 1) * wide
        for j in range(1, wide):
            scores[row + j] = max(scores[above + j - 1] + reference[row + j],
                                  scores[row + j - 1] - penalty, scores[above + j] - penalty)
    run.check(items, scores)


@case("yuhc/gpu-rodinia/opencl/lud/lud_kernel.cl")
def lud(run):
    n, size = 256, 16
    tile = local(4 * size * size)
    m = run.buffer("f", (run.random.random() + (n if i == j else 0)
                         for i in range(n) for j in range(n)))
    for i in range(0, n - size, size):
        left = (n - i) // size - 1
        run.launch("lud_diagonal", (size,), (size,), m, tile, i32(n), i32(i))
        run.launch("lud_perimeter", (size * 2 * left,), (size * 2,), m, tile, tile, tile, i32(n),
                   i32(i))
        run.launch("lud_internal", (size * left, size * left), (size, size), m, tile, tile,
                   i32(n), i32(i))
    run.launch("lud_diagonal", (size,), (size,), m, tile, i32(n), i32(n - size))
    rows = [list(m.data[i * n:(i + 1) * n]) for i in range(n)]
    for k in range(n):
        for i in range(k + 1, n):
            factor = rows[i][k] = rows[i][k] / rows[k][k]
            rows[i][k + 1:] = [x - factor * y for x, y in zip(rows[i][k + 1:], rows[k][k + 1:])]
    run.check(m, [x for row in rows for x in row], 1e-6)


@case("yuhc/gpu-rodinia/opencl/bfs/Kernels.cl")
def bfs(run):
    n, degree, levels = 65536, 6, 12
    edges = [run.random.randrange(n) for _ in range(n * degree)]
    nodes = run.buffer("i", (x for i in range(n) for x in (i * degree, degree)))
    edge = run.buffer("i", edges)
    first = [1] + [0] * (n - 1)
    mask, updating, visited = run.buffer("b", first), run.buffer("b", n), run.buffer("b", first)
    cost, over = run.buffer("i", [0] + [-1] * (n - 1)), run.buffer("b", 4)
    for _ in range(levels):
        run.launch("BFS_1", (n,), (256,), nodes, edge, mask, updating, visited, cost, i32(n))
        run.launch("BFS_2", (n,), (256,), mask, updating, visited, over, i32(n))
    distances, frontier = [0] + [-1] * (n - 1), [0]
    for level in range(1, levels + 1):
        reached = {e for i in frontier for e in edges[i * degree:(i + 1) * degree]}
        frontier = [e for e in reached if distances[e] < 0]
        for e in frontier:
            distances[e] = level
    run.check(cost, distances)


@case("yuhc/gpu-rodinia/opencl/backprop/backprop_kernel.cl")
def backprop(run):
    n, hidden = 65536, 16
    wide = hidden + 1
    values, weights = run.uniform(n + 1), run.uniform((n + 1) * wide)
    delta, old = run.uniform(wide), run.uniform((n + 1) * wide)
    unused, sums = run.buffer("f", wide), run.buffer("f", n // 16 * hidden)
    before = list(weights.data)
    run.launch("bpnn_layerforward_ocl", (16, n), (16, 16), values, unused, weights, sums,
               local(4 * 16), local(4 * 256), i32(n), i32(hidden))
    # The kernel's first step, of 1, adds each product to itself.
    run.check(sums, {g * hidden + h: 2 * sum(
        before[(16 * g + k + 1) * wide + h + 1] * values.data[16 * g + k + 1] for k in range(16))
                     for g, h in (divmod(k, hidden) for k in run.sample(n // 16 * hidden))}, 1e-6)
    run.launch("bpnn_adjust_weights_ocl", (16, n), (16, 16), delta, i32(hidden), values, i32(n),
               weights, old)
    moved = {}
    for k in run.sample(n * 16):
        row, column = k // 16 + 1, k % 16 + 1
        index = row * wide + column
        moved[index] = 0.3 * delta.data[column] * values.data[row] + 0.3 * old.data[index]
    run.check(old, moved, 1e-6)


@case("yuhc/gpu-rodinia/opencl/kmeans/kmeans.cl")
def kmeans(run):
    n, features, clusters = 65536, 34, 5
    points, centres = run.uniform(n * features), run.uniform(clusters * features)
    swapped, member = run.buffer("f", n * features), run.buffer("i", n)
    run.launch("kmeans_swap", (n,), (256,), points, swapped, i32(n), i32(features))
    run.launch("kmeans_kernel_c", (n,), (256,), swapped, centres, member, i32(n), i32(clusters),
               i32(features), i32(0), i32(0))
    wanted = {}
    for i in run.sample(n):
        point = points.data[i * features:(i + 1) * features]
        distances = sorted((sum((x - y) ** 2 for x, y in zip(
            point, centres.data[c * features:(c + 1) * features])), c) for c in range(clusters))
        if distances[1][0] - distances[0][0] > 1e-4:
            wanted[i] = distances[0][1]
    run.check(member, wanted)
    run.check(swapped, {j * n + i: points.data[i * features + j]
                        for i, j in (divmod(k, features) for k in run.sample(n * features))})


@case("vetter/shoc/src/opencl/level1/reduction/reduction.cl")
def reduction(run):
    n, groups, block = 262144, 64, 256
    data, out = run.buffer("f", (i % 3 for i in range(n))), run.buffer("f", groups)
    run.launch("reduce", (groups * block,), (block,), data, out, local(4 * block), u32(n))
    wanted = [0] * groups
    for i in range(n):
        wanted[i // (2 * block) % groups] += i % 3
    run.check(out, wanted)


@case("vetter/shoc/src/opencl/level1/scan/scan.cl")
def scan(run):
    n, groups, block = 262144, 64, 256
    data, out = run.buffer("f", (i % 3 for i in range(n))), run.buffer("f", n)
    sums = run.buffer("f", groups)
    run.launch("reduce", (groups * block,), (block,), data, sums, i32(n), local(4 * block))
    run.launch("top_scan", (block,), (block,), sums, i32(groups), local(8 * block))
    run.launch("bottom_scan", (groups * block,), (block,), data, sums, out, i32(n),
               local(8 * block))
    total, wanted = 0, []
    for i in range(n):
        total += i % 3
        wanted.append(total)
    run.check(out, wanted)


@case("vetter/shoc/src/opencl/level1/md5hash/md5.cl")
def md5(run):
    length, values = 6, 10
    space, block = values ** length, 256
    key = bytes([7, 1, 9, 0, 4, 3])
    digest = array.array("I", hashlib.md5(key).digest())
    index, found, words = run.buffer("i", [-1]), run.buffer("B", 8), run.buffer("I", 4)
    run.launch("FindKeyWithDigest_Kernel", (-(-space // values),), (block,),
               *[u32(word) for word in digest], i32(space), i32(length), i32(values), index,
               found, words)
    run.check(index, [sum(v * values ** i for i, v in enumerate(key))])
    run.check(found, list(key) + [0] * (8 - length))
    run.check(words, list(digest))


@case("vetter/shoc/src/opencl/level1/spmv/spmv.cl")
def spmv(run):
    n, per_row, block = 1024, 10, 128
    value, vector = run.uniform(n * per_row, 0, 10), run.uniform(n, 0, 10)
    column = run.buffer("i", (run.random.randrange(n) for _ in range(n * per_row)))
    start = run.buffer("i", range(0, n * per_row + 1, per_row))
    scalar, vectored = run.buffer("f", n), run.buffer("f", n)
    run.launch("spmv_csr_scalar_kernel", (n,), (block,), value, vector, column, start, i32(n),
               scalar)
    run.launch("spmv_csr_vector_kernel", (n * 32,), (block,), value, vector, column, start,
               i32(n), i32(32), vectored)
    wanted = [sum(value.data[k] * vector.data[column.data[k]]
                  for k in range(i * per_row, (i + 1) * per_row)) for i in range(n)]
    run.check(scalar, wanted, 1e-6)
    run.check(vectored, wanted, 1e-6)


@case("sschaetz/nvidia-opencl-examples/OpenCL/src/oclBlackScholes/BlackScholes.cl")
def black_scholes(run):
    n, rate, spread = 1000000, 0.02, 0.30
    price, strike = run.uniform(n, 5, 30), run.uniform(n, 1, 100)
    years = run.uniform(n, 0.25, 10)
    call, put = run.buffer("f", n), run.buffer("f", n)
    run.launch("BlackScholes", (60 * 1024,), (128,), call, put, price, strike, years, f32(rate),
               f32(spread), u32(n))
    calls, puts = {}, {}
    for i in run.sample(n):
        s, x, t = price.data[i], strike.data[i], years.data[i]
        d = (math.log(s / x) + (rate + spread * spread / 2) * t) / (spread * math.sqrt(t))
        less = x * math.exp(-rate * t)
        normal = [0.5 * math.erfc(-v / math.sqrt(2)) for v in (d, d - spread * math.sqrt(t))]
        calls[i] = s * normal[0] - less * normal[1]
        puts[i] = less * (1 - normal[1]) - s * (1 - normal[0])
    run.check(call, calls, 1e-5)
    run.check(put, puts, 1e-5)


@case("sschaetz/nvidia-opencl-examples/OpenCL/src/oclSortingNetworks/BitonicSort.cl")
def bitonic_sort(run):
    n, limit = 65536, 512
    keys = [run.random.randrange(2 ** 32) for _ in range(n)]
    source, values = run.buffer("I", keys), run.buffer("I", range(n))
    key, value = run.buffer("I", n), run.buffer("I", n)
    run.launch("bitonicSortLocal1", (n // 2,), (limit // 2,), key, value, source, values)
    size = 2 * limit
    while size <= n:
        stride = size // 2
        while stride:
            if stride >= limit:
                run.launch("bitonicMergeGlobal", (n // 2,), (limit // 2,), key, value, key, value,
                           u32(n), u32(size), u32(stride), u32(1))
                stride //= 2
            else:
                run.launch("bitonicMergeLocal", (n // 2,), (limit // 2,), key, value, key, value,
                           u32(n), u32(stride), u32(size), u32(1))
                break
        size *= 2
    run.check(key, sorted(keys))


@case("sschaetz/nvidia-opencl-examples/OpenCL/src/oclTranspose/transpose.cl")
def transpose(run):
    width, height, block = 2048, 512, 16
    data, out = run.uniform(width * height), run.buffer("f", width * height)
    run.launch("transpose", (width, height), (block, block), out, data, i32(0), i32(width),
               i32(height), local(4 * block * (block + 1)))
    run.check(out, [data.data[j * width + i] for i in range(width) for j in range(height)])


def twister(a, b, c, seed, count):
    state = [seed]
    for i in range(1, 19):
        state.append((1812433253 * (state[-1] ^ (state[-1] >> 30)) + i) & 0xffffffff)
    for k in range(count):
        x = (state[k % 19] & 0xfffffffe) | (state[(k + 1) % 19] & 1)
        x = state[(k + 9) % 19] ^ (x >> 1) ^ (a if x & 1 else 0)
        state[k % 19] = x
        x ^= x >> 12
        x ^= (x << 7) & b
        x ^= (x << 15) & c & 0xffffffff
        yield x ^ (x >> 18)


@case("sschaetz/nvidia-opencl-examples/OpenCL/src/oclMersenneTwister/MersenneTwister.cl")
def mersenne_twister(run):
    generators, count = 4096, 256
    state = run.buffer("I", (run.random.randrange(2 ** 32) for _ in range(4 * generators)))
    out = run.buffer("f", generators * count)
    run.launch("MersenneTwister", (generators,), (128,), out, state, i32(count))
    wanted = {}
    for g in run.sample(generators, 50):
        for k, x in enumerate(twister(*state.data[4 * g:4 * g + 4], count)):
            single = array.array("f", [x])[0]
            wanted[g + k * generators] = array.array("f", [single + 1.0])[0] / 4294967296.0
    run.check(out, wanted)


@case("Multi2Sim/m2s-bench-amdsdk-2.5-src/FloydWarshall/FloydWarshall_Kernels.cl")
def floyd_warshall(run):
    n = 256
    lengths = [0 if i == j else run.random.randrange(1, 200) for i in range(n) for j in range(n)]
    distance, path = run.buffer("I", lengths), run.buffer("I", n * n)
    for k in range(n):
        run.launch("floydWarshallPass", (n * n,), (n,), distance, path, u32(n), u32(k))
    rows = [lengths[i * n:(i + 1) * n] for i in range(n)]
    for k in range(n):
        via = rows[k]
        rows = [[min(x, row[k] + y) for x, y in zip(row, via)] for row in rows]
    run.check(distance, [x for row in rows for x in row])


@case("Multi2Sim/m2s-bench-amdsdk-2.5-src/BinomialOption/BinomialOption_Kernels.cl")
def binomial_option(run):
    steps, groups = 254, 64
    draws, out = run.uniform(4 * groups), run.buffer("f", 4 * groups)
    run.launch("binomial_options", (groups * (steps + 1),), (steps + 1,), i32(steps), draws, out,
               local(16 * (steps + 2)), local(16 * (steps + 2)))
    run.check(out, {i: option(draws.data[i], steps) for i in run.sample(4 * groups, 40)},
              1e-4)


def option(draw, steps):
    stock, strike = (1 - draw) * 5 + draw * 30, (1 - draw) + draw * 100
    years = (1 - draw) * 0.25 + draw * 10
    step = years / steps
    spread, growth = 0.30 * math.sqrt(step), math.exp(0.02 * step)
    up, down = math.exp(spread), math.exp(-spread)
    rise = (growth - down) / (up - down)
    values = [max(stock * math.exp(spread * (2 * i - steps)) - strike, 0.0)
              for i in range(steps + 1)]
    for j in range(steps, 0, -1):
        values[:j] = [(rise * values[i] + (1 - rise) * values[i + 1]) / growth for i in range(j)]
    return values[0]


def times(x, factor):
    double = (x << 1) ^ (0x11b if x & 0x80 else 0)
    return {1: x, 2: double, 3: double ^ x}[factor]


def encrypt(state, keys, box, rounds):
    """AES on rows of four bytes, with any substitution and round keys."""
    state = [x ^ k for x, k in zip(state, keys)]
    for r in range(1, rounds + 1):
        rows = [[box[x] for x in state[4 * i:4 * i + 4]] for i in range(4)]
        rows = [row[i:] + row[:i] for i, row in enumerate(rows)]
        if r < rounds:
            rows = [[times(rows[i][c], 2) ^ times(rows[(i + 1) % 4][c], 3)
                     ^ rows[(i + 2) % 4][c] ^ rows[(i + 3) % 4][c] for c in range(4)]
                    for i in range(4)]
        state = [x ^ k for x, k in zip(sum(rows, []), keys[16 * r:16 * r + 16])]
    return state


@case("Multi2Sim/m2s-bench-amdsdk-2.5-src/AESEncryptDecrypt/AESEncryptDecrypt_Kernels.cl")
def aes(run):
    width, height, rounds = 256, 256, 10
    box = list(range(256))
    run.random.shuffle(box)
    inverse = [box.index(i) for i in range(256)]
    plain = [run.random.randrange(256) for _ in range(width * height)]
    data, coded = run.buffer("B", plain), run.buffer("B", width * height)
    back = run.buffer("B", width * height)
    keys = run.buffer("B", (run.random.randrange(256) for _ in range(16 * (rounds + 1))))
    forward, backward = run.buffer("B", box), run.buffer("B", inverse)
    for kernel, out, source, table in (("AESEncrypt", coded, data, forward),
                                       ("AESDecrypt", back, coded, backward)):
        run.launch(kernel, (width // 4, height), (1, 4), out, source, keys, table, local(16),
                   local(16), u32(width), u32(rounds))
    run.check(back, plain)
    run.check(coded, [x for start in range(0, width * height, 16) for x in encrypt(
        plain[start:start + 16], keys.data, box, rounds)])


@case("Multi2Sim/m2s-bench-amdsdk-2.5-src/FastWalshTransform/FastWalshTransform_Kernels.cl")
def fast_walsh(run):
    n = 16384
    data = run.buffer("f", (run.random.randrange(256) for _ in range(n)))
    wanted, step = list(data.data), 1
    while step < n:
        run.launch("fastWalshTransform", (n // 2,), (256,), data, i32(step))
        for start in range(0, n, 2 * step):
            low, high = wanted[start:start + step], wanted[start + step:start + 2 * step]
            wanted[start:start + step] = [x + y for x, y in zip(low, high)]
            wanted[start + step:start + 2 * step] = [x - y for x, y in zip(low, high)]
        step *= 2
    run.check(data, wanted)


@case("bulletphysics/bullet3/src/Bullet3OpenCL/ParallelPrimitives/kernels/PrefixScanKernels.cl")
def prefix_scan(run):
    n, block = 65536, 256
    blocks = n // block
    values = [run.random.randrange(1000) for _ in range(n)]
    source, out, sums = run.buffer("I", values), run.buffer("I", n), run.buffer("I", blocks + 1)
    sizes = u32(n, blocks, 256, 0)
    run.launch("LocalScanKernel", (n // 2,), (128,), out, source, sums, sizes)
    run.launch("TopLevelScanKernel", (128,), (128,), sums, sizes)
    run.launch("AddOffsetKernel", ((blocks - 1) * 128,), (128,), out, sums, sizes)
    total, wanted = 0, []
    for value in values:
        wanted.append(total)
        total += value
    run.check(out, wanted)


@case("hughperkins/DeepCL/cl/forward1.cl")
def convolution(run):
    examples, planes, size, width = 32, 8, 28, 5
    count = examples * planes * size * size
    images, weights = run.uniform(count, -1, 1), run.uniform(planes * planes * 25, -1, 1)
    out = run.buffer("f", count)
    run.launch("convolve_imagecubes_float2", (count,), (256,), i32(examples), images, weights, out)
    wanted = {}
    for index in run.sample(count):
        rest, column = divmod(index, size)
        rest, row = divmod(rest, size)
        example, filtered = divmod(rest, planes)
        wanted[index] = sum(
            images.data[((example * planes + p) * size + row + u - 2) * size + column + v - 2]
            * weights.data[((filtered * planes + p) * width + u) * width + v]
            for p in range(planes) for u in range(width) for v in range(width)
            if 0 <= row + u - 2 < size and 0 <= column + v - 2 < size)
    run.check(out, wanted, 1e-6)


@case("alibaba/MNN/source/backend/opencl/execution/cl/softmax_buf.cl")
def softmax(run):
    rows, length, block = 256, 1000, 64
    data, out = run.uniform(rows * length, -8, 8), run.buffer("f", rows * length)
    run.launch("softmax_in1_buf", (block, 1, rows), (block, 1, 1), i32(block), i32(1), i32(rows),
               data, out, i32(1), i32(rows), i32(length))
    wanted = []
    for r in range(rows):
        row = [math.exp(x) for x in data.data[r * length:(r + 1) * length]]
        total = sum(row)
        wanted += [x / total for x in row]
    run.check(out, wanted, 1e-5)


@case("GNOME/gegl/operations/opencl/color-temperature.cl")
def color_temperature(run):
    n = 1024 * 1024
    data, out = run.uniform(4 * n), run.buffer("f", 4 * n)
    factors = (1.5, 0.75, 0.25, 1.0)
    run.launch("gegl_color_temperature", (n,), (256,), data, out, *[f32(x) for x in factors[:3]])
    run.check(out, {i: data.data[i] * factors[i % 4] for i in run.sample(4 * n)}, 1e-7)


@case("abduld/Parboil/benchmarks/mri-q/src/opencl_base/kernels.cl")
def mri_q(run):
    points, samples = 32768, 1024
    where = [run.uniform(points, -0.5, 0.5) for _ in range(3)]
    real, imaginary = run.buffer("f", points), run.buffer("f", points)
    values = run.uniform(4 * samples)
    run.launch("ComputeQ_GPU", (points,), (256,), i32(samples), i32(0), *where, real, imaginary,
               values)
    sums = {}
    for i in run.sample(points, 50):
        angles = [2 * math.pi * sum(values.data[4 * k + a] * where[a].data[i] for a in range(3))
                  for k in range(samples)]
        sums[i] = [sum(values.data[4 * k + 3] * f(x) for k, x in enumerate(angles))
                   for f in (math.cos, math.sin)]
    run.check(real, {i: both[0] for i, both in sums.items()}, 1e-4)
    run.check(imaginary, {i: both[1] for i, both in sums.items()}, 1e-4)


@case("abduld/Parboil/benchmarks/stencil/src/opencl_base/kernel.cl")
def stencil(run):
    x, y, z = 128, 128, 32
    data, out = run.uniform(x * y * z), run.buffer("f", x * y * z)
    run.launch("naive_kernel", (x - 2, y - 2, z - 2), (2, 2, 2),
               f32(1 / 6), f32(1 / 36), data, out, i32(x), i32(y), i32(z))
    wanted = {}
    for index in run.sample(x * y * z):
        k, rest = divmod(index, x * y)
        j, i = divmod(rest, x)
        inside = 0 < i < x - 1 and 0 < j < y - 1 and 0 < k < z - 1
        wanted[index] = 0.0 if not inside else sum(
            data.data[index + d] for d in (x * y, -x * y, x, -x, 1, -1)) / 36 \
            - data.data[index] / 6
    run.check(out, wanted, 1e-6)


# ---- running them ------------------------------------------------------------------------------

def argument(weir, memory, given, parameter):
    """A const pointer's range is only read; the access is checked against the signature."""
    if isinstance(given, int):
        return (weir.In if parameter.startswith("const ") else weir.InOut)(memory[given])
    return weir.Local(*given) if isinstance(given, tuple) else given


def run_on(path, backend, program, options):
    """Runs the launches of the file, and leaves there what the wanted buffers hold then."""
    import weir
    with open(path, "rb") as file:
        arrays, launches, wanted = pickle.load(file)
    source = {"bundle": program + ":whole_kernels"} if program.endswith(".so") \
        else {"file": program, "options": options}
    with weir.open(backend=backend, plugins="") as runtime:
        device = runtime.device()
        queue, built = device.queue(), device.program(**source)
        memory = [device.buffer(len(data) * data.itemsize) for data in arrays]
        for buffer, data in zip(memory, arrays):
            queue.upload(buffer, data)
        for name, grid, block, arguments in launches:
            kernel = built.kernel(name)
            kernel[grid, block](queue, *(argument(weir, memory, *both) for both in zip(arguments, kernel.parameters)))
        for index in wanted:
            queue.download(arrays[index], memory[index])
    with open(path, "wb") as file:
        pickle.dump({index: arrays[index] for index in wanted}, file)


def execute(args, backend, source, options, run, work):
    """The contents of the checked buffers, or what went wrong; by a process of its own, as a driver reads the
    variables of its process, and may end it."""
    name, _, settings = backend.partition("=")
    if name.startswith("bundle:"):
        name = name[len("bundle:"):]
        source, options = os.path.abspath(os.path.join(args.bundles, run.name + ".so")), ""
    path = os.path.join(work, "run")
    with open(path, "wb") as file:
        pickle.dump(([buffer.data for buffer in run.buffers], run.launches,
                     [buffer.index for buffer, _, _ in run.checks]), file)
    done = subprocess.run([sys.executable, "-c", "import sys, whole; whole.run_on(*sys.argv[1:])", path, name, source,
                           options], text=True, capture_output=True, timeout=args.limit,
                          env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path),
                                   **dict(s.split("=", 1) for s in filter(None, settings.split(",")))))
    if done.returncode:
        words = re.search(r"(?m)^weir\.\S+: (.*)|^\w+(?:Error|Interrupt): .*", done.stderr)
        return (words.group(1) or words.group(0)) if words else "ended with %d" % done.returncode
    with open(path, "rb") as file:
        return pickle.load(file)


def verdict(run, outputs, first):
    if isinstance(outputs, str):
        return False, outputs
    words, sound = [], True
    for buffer, expected, bound in run.checks:
        against = [compare(outputs[buffer.index], expected)]
        if isinstance(first, dict) and first is not outputs:
            # Both are within the bound of the reference, so at most twice the bound apart.
            against.append(compare(outputs[buffer.index], first[buffer.index]))
        sound = sound and all(error <= bound * n for n, error in enumerate(against, 1))
        words.append("%s of %.0e" % (" and ".join("%.1e" % e for e in against), bound))
    return sound, "; ".join(words)


def joined(args, file, work):
    """Path of the program's whole text, and the options of its build."""
    folder = os.path.abspath(os.path.join(args.folder, file.repository))
    options = [o for o in file.options if not o.startswith("-I")]
    return files.one_text(file, files.source(file, folder, work), folder, work), options


def run_case(args, listed, name, path, function):
    file = listed[path]
    run, sound, first = Run(name), True, None
    function(run)
    with tempfile.TemporaryDirectory() as work:
        source, options = joined(args, file, work)
        options = " ".join(["-cl-std=" + file.standard] + options + shlex.split(args.options))
        for backend in args.backend:
            outputs = execute(args, backend, source, options, run, work)
            first = first or outputs
            good, words = verdict(run, outputs, first)
            sound = sound and good
            print("%-18s %-28s %-5s %s" % (name, backend, "ok" if good else "BAD", words),
                  flush=True)
    return sound


def make_case(args, listed, name, path, _):
    """Makes the case's library; False, with the compiler's words, if it cannot be made."""
    file = listed[path]
    with tempfile.TemporaryDirectory() as work:
        source, options = joined(args, file, work)
        code = os.path.join(work, "whole.c")
        defines = [word for o in options if o.startswith("-D") for word in ("-D", o[2:])]
        fast = ["--fast"] if "-cl-fast-relaxed-math" in options else []
        for command in (
                [args.weir, "kernels", "build", "-o", code, "--symbol", "whole_kernels", "--std",
                 file.standard] + defines + fast + [source],
                ["cc", "-shared", "-fPIC", "-I" + args.include, code, "-o",
                 os.path.join(args.make, name + ".so")]):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print("%-18s %s" % (name, done.stderr.strip()), flush=True)
                return False
    return True


def main():
    parser = argparse.ArgumentParser(prog="whole.py", description=__doc__.split("\n")[0])
    parser.add_argument("--from", dest="folder", required=True)
    parser.add_argument("--backend", action="append", default=[])
    parser.add_argument("--bundles", default=".")
    parser.add_argument("--make", help="the folder for the libraries")
    parser.add_argument("--weir", default="weir", help="the command, for --make")
    parser.add_argument("--include", default="api", help="the folder of <weir/weir.h>, for --make")
    parser.add_argument("--only", default="")
    parser.add_argument("--options", default="", help="more options of every program's build")
    parser.add_argument("--limit", type=int, default=300)
    args = parser.parse_args()
    if not args.make and not args.backend:
        parser.error("either --make, or --backend")
    if args.make:
        os.makedirs(args.make, exist_ok=True)
    listed = {file.name: file for file in files.read_list(files.LIST)[1]}
    step = make_case if args.make else run_case
    results = [step(args, listed, *one) for one in CASES if re.search(args.only, one[0])]
    print("%d of %d %s" % (sum(results), len(results), "made" if args.make else "sound"))
    sys.exit(sum(results) != len(results))


if __name__ == "__main__":
    main()
