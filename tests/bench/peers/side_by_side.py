#!/usr/bin/env python3
"""Runs Weir and its peers side by side and prints one table of ratios.

The programs of a group are started together, and each checks its results. Then they take
turns: in a round each measures everything it has once, in an order that moves on by one every
round, so that what else the machine does falls on all of them. A ratio is that of two programs
in one round; the table has the median over the rounds, with the smallest and the largest, and the
interval that holds the true median with a probability of at least 95 %. What cannot run here is
left out, with the reason. Leaves side_by_side.txt, side_by_side.json and logs in the folder of --out.
"""

import argparse
import array
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from statistics import median


def median_interval(values):
    """Two of the values, between which the true median lies with a probability of at least 95 %,
    however the values are distributed; None: fewer than 6 values have no such pair. As many values
    are below the true median as coins show heads."""
    values, count = sorted(values), len(values)
    outside, below = 0.0, 0
    while below < count // 2:
        outside += 2 * math.comb(count, below) / 2.0 ** count
        if outside > 0.05:
            break
        below += 1
    return (values[below - 1], values[count - below]) if below else None


def spread(values):
    found = {"median": median(values), "min": min(values), "max": max(values)}
    interval = median_interval(values)
    return dict(found, low=interval[0], high=interval[1]) if interval else found


class Program:
    """One that is running, and measures a round for each line that it reads: its rounds, or the reason why it has
    none."""

    def __init__(self, name, command, environment, root, logs):
        self.name, self.head, self.reason, self.rounds = name, None, None, []
        self.log = open(os.path.join(logs, name.replace("@", "-") + ".log"), "w")
        self.process = None
        try:
            self.process = subprocess.Popen(
                command + ["--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                errors="replace", stderr=self.log, env=environment, cwd=root)
        except OSError as error:
            self.reason = str(error)

    def samples(self, figure):
        return [one[figure] for one in self.rounds if figure in one]

    def best(self, pattern):
        """Of the figures of such names the one with the smallest median; None: there is none."""
        names = [name for name in (self.rounds[0] if self.rounds else {}) if re.fullmatch(pattern, name)]
        return min(names, key=lambda name: median(self.samples(name)), default=None)

    def answer(self, seconds):
        """The next line as an object; `reason` is set where there is none, or it tells a failure."""
        if self.reason:
            return None
        timer, until = threading.Timer(seconds, self.process.kill), time.monotonic() + seconds
        timer.start()
        text = self.process.stdout.readline()
        in_time = time.monotonic() < until
        timer.cancel()
        self.log.write(text)
        try:
            answer = json.loads(text)
            self.reason = answer.get("skipped") or ("FAILED: " + answer["failed"] if "failed" in answer else None)
            return answer
        except ValueError:
            self.stop()
            self.reason = ("took more than %.0f s" % seconds if not in_time else self.last_words() if not text
                           else "FAILED: printed what is no JSON; its log has it")
        return None

    def last_words(self):
        """Why it ended: commands say so on standard error, with status 3 if this machine lacks something."""
        self.log.flush()
        with open(self.log.name, encoding="utf-8", errors="replace") as file:
            lines = [line for line in file if line.strip() and line[0] != "{"]
        if self.process.returncode and lines:
            return ("" if self.process.returncode == 3 else "FAILED: ") + lines[-1].strip()
        return "ended early"

    def start(self, seconds):
        """Waits until it has checked its results."""
        self.head = self.answer(seconds)

    def round(self, seconds):
        try:
            if not self.reason:
                self.process.stdin.write("\n")
                self.process.stdin.flush()
        except OSError:
            self.reason = "ended early"
        answer = self.answer(seconds)
        if answer and not self.reason:
            self.rounds.append(answer["ms"])

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def finish(self):
        if self.process:
            self.stop()
            if self.process.returncode and not self.reason:
                self.reason = "FAILED: ended with status %d" % self.process.returncode
        self.log.close()


def run_group(programs, rounds, until):
    def left(most):
        return max(1.0, min(most, until - time.monotonic()))

    for program in programs:
        program.start(left(180.0))
        sys.stderr.write("%4.0f s left  %-28s %s\n" % (
            until - time.monotonic(), program.name, program.reason or "checked %d results on %s" % (
                program.head.get("checked", 0), program.head.get("device", "?"))))
    for number in range(rounds):
        if until - time.monotonic() < 5:
            for program in programs:
                program.reason = program.reason or (
                    None if number > 2 else "no time left after %d rounds" % number)
            break
        shift = number % max(1, len(programs))
        for program in programs[shift:] + programs[:shift]:
            program.round(left(120.0))
    for program in programs:
        program.finish()


# The frame of ARR-COC.

SIDE = 1024
FRAMES_OF_GPU = 500
THREADS = 2  # of PoCL, and of PyTorch on the CPU
PEERS = "tests/bench/peers"  # this folder


def write_npy(path, kind, shape, values):
    header = "{'descr': '<%s4', 'fortran_order': False, 'shape': (%s,), }" % (
        kind, ", ".join(map(str, shape)))
    header += " " * (-(11 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(array.array("f" if kind == "f" else "i", list(values)).tobytes())


def write_png(path, rgb):
    def chunk(name, data):
        return (struct.pack(">I", len(data)) + name + data
                + struct.pack(">I", zlib.crc32(name + data)))

    rows = b"".join(b"\0" + rgb[3 * SIDE * y:3 * SIDE * (y + 1)] for y in range(SIDE))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


def query_size(weights):
    with open(weights, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    return header["participatory.2.weight"]["shape"][0]


def write_input(folder, weights):
    """The paths of the frame, as a picture, and of the query. Both are arrays there, too."""
    noise = random.Random(1)
    rgb = bytes(noise.getrandbits(8) for _ in range(3 * SIDE * SIDE))
    query = [noise.gauss(0, 1) for _ in range(query_size(weights))]
    frame, query_path = os.path.join(folder, "frame.png"), os.path.join(folder, "query.npy")
    os.makedirs(folder, exist_ok=True)
    write_png(frame, rgb)
    write_npy(os.path.join(folder, "frame.npy"), "i", (SIDE, SIDE, 3), rgb)
    write_npy(query_path, "f", (len(query),), query)
    return frame, query_path


class Setup:
    def __init__(self, parsed, logs):
        self.parsed, self.logs = parsed, logs
        self.cuda = dict(os.environ, WEIR_BACKEND="cuda")
        # The same processors for PoCL and for PyTorch.
        self.nvidia, self.pocl = (
            dict(os.environ, WEIR_BACKEND="opencl", WEIR_OPENCL_PLATFORM=platform,
                 POCL_MAX_PTHREAD_COUNT=str(THREADS), POCL_CPU_MAX_CU_COUNT=str(THREADS))
            for platform in ("nvidia", "portable"))

    def job(self, name, at, environment, *options):
        return Program("%s@%s" % (name, at), [self.parsed.jobs, name, "--quiet", *options],
                       environment, self.parsed.root, self.logs)

    def frames(self, at, environment, frames, graphs="off,on"):
        """weir bench arr-coc on a frame of noise, and the folder in which the frame and its results are, for PyTorch."""
        weir, weights = self.parsed.weir, ["--weights", self.parsed.weights]
        folder = os.path.join(self.parsed.work, "dump-" + at)
        frame, query = write_input(folder, self.parsed.weights)
        try:
            subprocess.run([weir, "run", "arr-coc", frame, "--query", query, "--output", folder, "--quiet", *weights],
                           env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=180)
        except (OSError, subprocess.TimeoutExpired):
            pass  # as the program will say
        command = [weir, "bench", "arr-coc", frame, "--frames", str(frames), "--slots", "1,3,8", "--graphs", graphs,
                   "--quiet", *weights]
        return Program("weir_arr_coc@" + at, command, environment, self.parsed.root, self.logs), folder

    def torch(self, name, at, *options):
        command = [self.parsed.python, os.path.join(self.parsed.root, PEERS, name + ".py"), *options]
        return Program("%s@%s" % (name, at), command, dict(os.environ), self.parsed.root, self.logs)


# The groups. Each lists its programs; their figures are defined in their sources.

def chunk_group(setup):
    size = str(setup.parsed.bytes)
    return [setup.job("overlap", "cuda", setup.cuda, "--size", size),
            setup.job("overlap", "opencl-nvidia", setup.nvidia, "--size", size),
            setup.torch("torch_chunks", "cuda", "--device", "cuda", "--bytes", size)]


def frame_group(setup):
    weir, dump = setup.frames("cuda", setup.cuda, FRAMES_OF_GPU)
    return [weir,
            setup.torch("torch_arr_coc", "cuda", "--device", "cuda", "--dump", dump, "--weights",
                        setup.parsed.weights, "--frames", str(FRAMES_OF_GPU // 10))]


def pageable_group(setup):
    most = str(setup.parsed.bytes)
    return [setup.job("pageable", "cuda", setup.cuda, "--most", most),
            setup.torch("torch_pageable", "cuda", "--device", "cuda", "--most", most)]


def pocl_group(setup):
    weir, dump = setup.frames("opencl-pocl", setup.pocl, setup.parsed.pocl_frames, graphs="off")
    return [weir, setup.job("overlap", "opencl-pocl", setup.pocl, "--size", str(setup.parsed.pocl_bytes)),
            setup.torch("torch_arr_coc", "cpu", "--device", "cpu", "--dump", dump, "--weights",
                        setup.parsed.weights, "--threads", str(THREADS), "--frames",
                        str(max(1, setup.parsed.pocl_frames // 5)))]


GROUPS = {"chunks": chunk_group, "frames": frame_group, "pageable": pageable_group, "pocl": pocl_group}

# The rows: group, what, (program, figures), (program, figures), how, and if there is a target its sign and it. Of several
# figures, which a pattern names, the one with the smallest median counts. "time" is the first over the second, "rate"
# the second over the first: how many times as fast the first is.

CUDA, NVIDIA, POCL = "overlap@cuda", "overlap@opencl-nvidia", "overlap@opencl-pocl"
ARR_COC, TORCH, ON_POCL, ON_CPU = "weir_arr_coc@cuda", "torch_arr_coc@cuda", "weir_arr_coc@opencl-pocl", "torch_arr_coc@cpu"
AUTO, COPIES = (CUDA, "weir_auto"), (CUDA, "weir_both_ways")
EQUAL = "raw_(one_queue|depth|breadth|interleaved|three_queues_[0-9]).*"  # chunks
GROWING, CAPTURED = (CUDA, "raw_three_queues_growing"), (CUDA, "raw_graph_.*")
FRAMES, POCL_FRAMES = (ARR_COC, "frame_[38]_slots(_graphs)?"), (ON_POCL, "frame_[138]_slots")


def pageable_rows(most):
    rows = []
    for way in ("up", "down"):
        for size in "4K 64K 1M 4M 16M 64M 256M 1G 4G".split():
            what = "pageable, %s, %s" % (way, size)
            count = int(size[:-1]) << {"K": 10, "M": 20, "G": 30}[size[-1]]
            if count > most:
                continue
            figure = "_%s_%d" % (way, count)
            weir, target = ("pageable@cuda", "copy" + figure), (">=", 6.0) if size == "1G" else ()
            rows += [
                ("pageable", what + ": the driver's copy", weir, ("pageable@cuda", "driver" + figure), "rate", *target),
                ("pageable", what + ": PyTorch", weir, ("torch_pageable@cuda", "copy" + figure), "rate"),
                ("pageable", what + ": pinned memory", weir, ("pageable@cuda", "pinned" + figure), "time")]
    return rows


ROWS = [
    ("chunks", "chunks, auto: copies both ways", AUTO, COPIES, "time", "<=", 1.012),
    ("chunks", "chunks, auto: the best raw CUDA program of equal chunks", AUTO, (CUDA, EQUAL), "time", "<=", 1.01),
    ("chunks", "chunks, auto: raw CUDA, chunks that grow", AUTO, GROWING, "time"),
    ("chunks", "chunks, auto: raw CUDA, equal chunks that are captured", AUTO, CAPTURED, "time"),
    ("chunks", "raw CUDA, chunks that grow: copies both ways", GROWING, COPIES, "time"),
    ("chunks", "raw CUDA, equal chunks that are captured: copies both ways", CAPTURED, COPIES, "time"),
    ("chunks", "chunks, auto: the best PyTorch program", AUTO, ("torch_chunks@cuda", "one_stream|streams_.*"), "time"),
    ("chunks", "the best raw CUDA program of equal chunks: copies both ways", (CUDA, EQUAL), COPIES, "time"),
    ("chunks", "NVIDIA's OpenCL: chunks, auto: copies both ways", (NVIDIA, "weir_auto"), (NVIDIA, "weir_both_ways"),
     "time", "<=", 1.10),
    ("chunks", "NVIDIA's OpenCL: chunks, auto: CUDA's copies both ways", (NVIDIA, "weir_auto"), COPIES,
     "time", "<=", 1.10),
    ("chunks", "NVIDIA's OpenCL: chunks, auto: the best raw program", (NVIDIA, "weir_auto"), (NVIDIA, EQUAL), "time"),
    ("frames", "ARR-COC, frames/s: bare copies", FRAMES, (ARR_COC, "frame_copies"), "rate", ">=", 0.90),
    ("frames", "ARR-COC, frames/s: PyTorch, three streams", FRAMES, (TORCH, "frame_eager"), "rate", ">=", 20),
    ("frames", "ARR-COC, frames/s: the same under torch.compile", FRAMES, (TORCH, "frame_compiled"), "rate", ">=", 15),
    ("frames", "ARR-COC, frames/s: PyTorch, eight images in flight", FRAMES, (TORCH, "frame_eager_in_flight"), "rate"),
    ("frames", "ARR-COC, frames/s: both, in flight and torch.compile", FRAMES, (TORCH, "frame_compiled_in_flight"),
     "rate"),
    ("frames", "ARR-COC, frames/s: 3 slots beside 1", (ARR_COC, "frame_3_slots"), (ARR_COC, "frame_1_slots"),
     "rate", ">=", 1.0),
    ("frames", "ARR-COC, frames/s: 8 slots as graphs beside 8 slots", (ARR_COC, "frame_8_slots_graphs"),
     (ARR_COC, "frame_8_slots"), "rate"),
    ("pocl", "PoCL: chunks, auto: the best plain OpenCL program", (POCL, "weir_auto"), (POCL, EQUAL), "time"),
    ("pocl", "PoCL: chunks, one queue: plain OpenCL, the same", (POCL, "weir_one_queue"), (POCL, "raw_one_queue"),
     "time"),
    ("pocl", "PoCL: ARR-COC, frames/s: PyTorch on the CPU", POCL_FRAMES, (ON_CPU, "frame_eager"), "rate"),
    ("pocl", "PoCL: ARR-COC, frames/s: the same under torch.compile", POCL_FRAMES, (ON_CPU, "frame_compiled"),
     "rate", ">=", 4),
]


def judge(ratio, sign, target):
    """A target within the interval may be met in one run and missed in the next."""
    if sign is None:
        return ""
    met = ratio["median"] <= target if sign == "<=" else ratio["median"] >= target
    near = "low" in ratio and ratio["low"] <= target <= ratio["high"]
    return ("met" if met else "MISSED") + (", not sure" if near else "")


def row_of(programs, _, what, left_side, right_side, way, sign=None, target=None):
    (left, left_figures), (right, right_figures) = left_side, right_side
    row = {"what": what, "sign": sign, "target": target}
    for name in (left, right):
        if not programs[name].rounds:
            return dict(row, reason="%s: %s" % (name, programs[name].reason or "no rounds"))
    a, b = programs[left], programs[right]
    first, second = a.best(left_figures), b.best(right_figures)
    if not first or not second:
        name, figures = left_side if not first else right_side
        why = (programs[name].head or {}).get("compiled_skipped")
        return dict(row, reason="%s has no figure %s%s" % (
            name, figures, ": " + why if why else ""))
    pairs = [(x, y) for x, y in zip(a.samples(first), b.samples(second)) if x > 0 and y > 0]
    ratio = spread([x / y if way == "time" else y / x for x, y in pairs])
    return dict(row, weir_ms=median(a.samples(first)), weir_figure=first,
                other_ms=median(b.samples(second)), other_figure=second, ratio=ratio,
                rounds=len(pairs), verdict=judge(ratio, sign, target))


# The table.

def text_of(row):
    target = "%s %g" % (row["sign"], row["target"]) if row["sign"] else ""
    if "reason" in row:
        reason = row["reason"].replace("not measured: ", "").split("; ")[0][:150]
        return [row["what"], "", "", "", "", "", target, "not measured: " + reason]
    ratio = row["ratio"]
    return [row["what"], "%.4g" % row["weir_ms"], "%.4g" % row["other_ms"], "%.3f" % ratio["median"],
            "%.3f .. %.3f" % (ratio["low"], ratio["high"]) if "low" in ratio else "",
            "%.3f .. %.3f" % (ratio["min"], ratio["max"]), target, row["verdict"]]


def table_of(rows):
    head = ["what: beside what", "Weir, ms", "other, ms", "ratio", "95 % of the median",
            "smallest .. largest", "target", "verdict"]
    lines = [head] + [text_of(row) for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(7)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0])] + [line[i].rjust(widths[i]) for i in range(1, 7)]
                  + [line[7]]).rstrip() for line in lines) + "\n"


def root_of_files():
    """Under `bazel run` the files are among those of this script."""
    own = os.path.abspath(__file__)
    runfiles = own + ".runfiles/weir"
    return runfiles if os.path.isdir(runfiles) else os.path.dirname(own)[:-len(PEERS) - 1]


def settle_environment(parsed):
    """Without the user's settings, and with caches for this run only."""
    for name in ("WEIR_CONFIG", "WEIR_BACKEND", "WEIR_PLUGINS"):
        os.environ.pop(name, None)
    os.environ.setdefault("WEIR_MODULE_PATH", os.path.join(parsed.root, "lib/weir"))
    cache = os.environ.setdefault("XDG_CACHE_HOME", os.path.join(parsed.work, "cache"))
    os.makedirs(os.environ.setdefault("POCL_CACHE_DIR", os.path.join(cache, "pocl")), exist_ok=True)
    for name in ("TORCHINDUCTOR", "TRITON"):
        os.environ[name + "_CACHE_DIR"] = os.path.join(parsed.work, "cache", name.lower())


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weir", help="the weir command; its modules are those of WEIR_MODULE_PATH")
    parser.add_argument("--out", default=os.environ.get("OUT"),
                        help="a folder for tables, JSON and logs ($OUT, else a new one)")
    parser.add_argument("--rounds", type=int, default=11, help="rounds (11)")
    parser.add_argument("--seconds", type=float, default=300, help="time for all of it (300)")
    parser.add_argument("--groups", default="chunks,frames,pageable,pocl",
                        help="which, of: %s" % ", ".join(GROUPS))
    parser.add_argument("--bytes", type=int, default=1 << 30, help="of chunks on a GPU (1 GiB)")
    parser.add_argument("--pocl-bytes", type=int, default=64 << 20, help="on PoCL (64 MiB)")
    parser.add_argument("--pocl-frames", type=int, default=10, help="on PoCL (10)")
    parser.add_argument("--python", default=sys.executable, help="a Python that has PyTorch")
    parsed = parser.parse_args()
    parsed.root = root_of_files()
    parsed.weir = parsed.weir or os.path.join(parsed.root, "cli/weir")
    parsed.jobs = os.path.join(parsed.root, "tests/bench/jobs/jobs")
    parsed.weights = os.path.join(parsed.root,
                                  "pipelines/arr_coc/weights/arr_coc_weights.safetensors")
    unknown = set(parsed.groups.split(",")) - set(GROUPS)
    if unknown:
        parser.error("there is no group '%s'" % sorted(unknown)[0])
    return parsed


def main():
    parsed = parse()
    parsed.out = os.path.abspath(parsed.out or tempfile.mkdtemp(prefix="weir-peers."))
    with tempfile.TemporaryDirectory(prefix="weir-peers.") as parsed.work:
        settle_environment(parsed)
        return run_groups(parsed)


def run_groups(parsed):
    logs = os.path.join(parsed.out, "peers")
    os.makedirs(logs, exist_ok=True)
    began = time.monotonic()
    setup = Setup(parsed, logs)
    programs = {}
    for name in parsed.groups.split(","):
        group = GROUPS[name](setup)
        run_group(group, parsed.rounds, began + parsed.seconds)
        programs.update((program.name, program) for program in group)
    rows = [row_of(programs, *row) for row in ROWS + pageable_rows(parsed.bytes) if row[0] in parsed.groups.split(",")]
    table = table_of(rows)
    seconds = "%d rounds, %.0f s\n" % (parsed.rounds, time.monotonic() - began)
    with open(os.path.join(parsed.out, "side_by_side.txt"), "w") as file:
        file.write(table + seconds)
    with open(os.path.join(parsed.out, "side_by_side.json"), "w") as file:
        json.dump({"rows": rows, "programs": {
            name: {"head": p.head, "reason": p.reason, "rounds": p.rounds,
                   "figures": {f: spread(p.samples(f)) for f in (p.rounds[0] if p.rounds else {})}}
            for name, p in programs.items()}}, file, indent=1)
        file.write("\n")
    sys.stdout.write("%s%sin %s: side_by_side.txt, side_by_side.json, peers/\n" % (table, seconds, parsed.out))
    failed = [p for p in programs.values() if p.reason and p.reason.startswith("FAILED")]
    for program in failed:
        sys.stderr.write("%s: %s\n" % (program.name, program.reason))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
