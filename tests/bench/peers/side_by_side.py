#!/usr/bin/env python3
"""Runs Weir and its peers side by side and prints one table of ratios.

The programs of a group are started together, and each checks its results. Then they take
turns: in a round each measures everything it has once, in an order that moves on by one every
round, so that what else the machine does falls on all of them. A ratio is that of two programs
in one round; the table has the median over the rounds, with the smallest and the largest, and the
interval that holds the true median with a probability of at least 95 %. What cannot run here is
left out, with the reason.
"""

import argparse
import glob
import json
import math
import os
import select
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import torch_peer
import train_data
import weir_command

HERE = os.path.dirname(os.path.abspath(__file__))


def median(values):
    values = sorted(values)
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


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


class Clock:
    def __init__(self, seconds):
        self.began, self.seconds = time.monotonic(), seconds

    def spent(self):
        return time.monotonic() - self.began

    def left(self):
        return self.seconds - self.spent()


class Peer:
    """What takes turns with others: its rounds, or the reason why it has none."""

    def __init__(self, name):
        self.name, self.head, self.reason, self.rounds = name, None, None, []

    def samples(self, figure):
        return [one[figure] for one in self.rounds if figure in one]

    def best(self, figures):
        """Of several figures the one with the smallest median."""
        there = [f for f in figures if self.samples(f)]
        return min(there, key=lambda f: median(self.samples(f))) if there else None


class Commands(Peer):
    """Commands of weir_command.py, which run anew in each round."""

    def __init__(self, name, environment, commands, read):
        super().__init__(name)
        self.environment, self.commands, self.read = environment, commands, read

    def once(self, seconds, number):
        """How many results were checked, and all figures; None, with `reason` set."""
        checked, ms = 0, {}
        try:
            for name, command in self.commands(number):
                result = subprocess.run(command, env=self.environment, capture_output=True, timeout=seconds)
                words = result.stderr.decode(errors="replace").strip()
                if result.returncode != 0:
                    self.reason = words.split("\n")[0] if result.returncode == 3 else "FAILED: " + words[-400:]
                    return None
                more, figures = self.read(name, json.loads(result.stdout.decode()))
                checked += more
                ms.update(figures)
        except (OSError, subprocess.TimeoutExpired) as error:
            self.reason = str(error)
        except torch_peer.Failed as error:
            self.reason = "FAILED: " + str(error)
        return None if self.reason else (checked, ms)

    def start(self, seconds):
        if not self.head and not self.reason:
            found = self.once(seconds, 0)
            self.head = found and {"checked": found[0], "device": "that of weir"}

    def round(self, seconds):
        found = None if self.reason else self.once(seconds, len(self.rounds) + 1)
        self.rounds += [found[1]] if found else []

    def finish(self):
        pass


class Program(Peer):
    """A program that is running, and measures a round for each line that it reads."""

    def __init__(self, name, command, environment, root, logs):
        super().__init__(name)
        self.log = open(os.path.join(logs, name.replace("@", "-") + ".log"), "w")
        self.buffer = b""
        self.process = None
        try:
            self.process = subprocess.Popen(
                command + ["--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=self.log, env=environment, cwd=root)
        except OSError as error:
            self.reason = str(error)

    def line(self, seconds):
        """The next line as an object; None, with `reason` set, if there is none."""
        until = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.process.stdout], [], [],
                                        max(0.0, until - time.monotonic()))
            more = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not more:
                self.stop()
                self.reason = self.last_words() if ready else "took more than %.0f s" % seconds
                return None
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\n", 1)
        self.log.write(text.decode(errors="replace") + "\n")
        try:
            return json.loads(text)
        except ValueError:
            self.reason = "FAILED: printed what is no JSON; its log has it"
            self.stop()
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
        if self.reason:
            return
        self.head = self.line(seconds)
        if self.head and ("skipped" in self.head or "failed" in self.head):
            self.reason = self.head.get("skipped") or "FAILED: " + self.head["failed"]
            self.stop()

    def round(self, seconds):
        if self.reason:
            return
        try:
            self.process.stdin.write(b"\n")
            self.process.stdin.flush()
        except OSError:
            self.reason = "ended early"
            return
        answer = self.line(seconds)
        if answer and "failed" in answer:
            self.reason = "FAILED: " + answer["failed"]
            self.stop()
        elif answer:
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


def run_group(programs, rounds, clock, quiet):
    for program in programs:
        program.start(max(1.0, min(180.0, clock.left())))
        if not quiet:
            sys.stderr.write("%4.0f s  %-28s %s\n" % (
                clock.spent(), program.name, program.reason or "checked %d results on %s" % (
                    program.head.get("checked", 0), program.head.get("device", "?"))))
    for number in range(rounds):
        if clock.left() < 5:
            for program in programs:
                program.reason = program.reason or (
                    None if number > 2 else "no time left after %d rounds" % number)
            break
        shift = number % max(1, len(programs))
        for program in programs[shift:] + programs[:shift]:
            program.round(max(1.0, min(120.0, clock.left())))
    for program in programs:
        program.finish()


# The machine.

def opencl_environments(parsed):
    """{"nvidia": environment, "pocl": environment}: each platform alone, wherever its driver and
    a loader that looks at OCL_ICD_VENDORS are."""
    found = {}
    base = dict(os.environ)
    candidates = [("as it is", {})]
    for name in ("libnvidia-opencl.so.1", "libpocl.so.2"):
        for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/nvidia/lib64",
                       "/usr/lib/wsl/lib"):
            path = os.path.join(folder, name)
            if os.path.exists(path):
                vendors = os.path.join(parsed.work, "icd-" + name.split(".")[0])
                os.makedirs(vendors, exist_ok=True)
                with open(os.path.join(vendors, "only.icd"), "w") as file:
                    file.write(path + "\n")
                for loader in ("", "/usr/lib/x86_64-linux-gnu", "/usr/lib64"):
                    if not loader or os.path.exists(os.path.join(loader, "libOpenCL.so.1")):
                        candidates.append((path, dict({"OCL_ICD_VENDORS": vendors}, **(
                            {"LD_LIBRARY_PATH": loader} if loader else {}))))
                break
    for _, extra in candidates:
        environment = dict(base, WEIR_BACKEND="opencl", **extra)
        try:
            result = subprocess.run([parsed.weir, "devices", "--json"], env=environment,
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=90)
            device = json.loads(result.stdout.decode())["devices"][0]["name"]
        except (OSError, ValueError, LookupError, subprocess.TimeoutExpired):
            continue
        kind = "nvidia" if "NVIDIA" in device or "Tesla" in device else "pocl"
        found.setdefault(kind, environment)
    return found


class Setup:
    def __init__(self, parsed, logs):
        self.parsed, self.logs = parsed, logs
        self.opencl = opencl_environments(parsed)
        self.cuda = dict(os.environ, WEIR_BACKEND="cuda")
        # The same two processors for PoCL and for PyTorch.
        pocl = self.opencl.get("pocl")
        if pocl is not None:
            for name in ("POCL_MAX_PTHREAD_COUNT", "POCL_CPU_MAX_CU_COUNT"):
                pocl[name] = str(parsed.threads)

    def job(self, name, at, environment, *options):
        return Program("%s@%s" % (name, at), [self.parsed.jobs, name, "--quiet", *options],
                       environment, self.parsed.root, self.logs)

    def frames(self, at, environment, frames, **options):
        """The peer arr-coc, which has left results for PyTorch, and their folder."""
        dump = os.path.join(self.parsed.work, "dump-" + at)
        os.makedirs(dump, exist_ok=True)
        weir = Commands("weir_arr_coc@" + at, environment, *weir_command.arr_coc(
            self.parsed.weir, self.parsed.weights, dump, frames, **options))
        weir.start(180)
        return weir, dump

    def wheel_library(self, pattern):
        """A library among NVIDIA's packages of the Python that has PyTorch; None: there is none."""
        asked = "import nvidia; print('\\n'.join(nvidia.__path__))"
        try:
            answer = subprocess.run([self.parsed.python, "-c", asked], stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            return None
        for folder in answer.stdout.decode().split():
            for path in sorted(glob.glob(os.path.join(folder, "*", "lib", pattern))):
                return path
        return None

    def torch(self, name, at, *options):
        command = [self.parsed.python, os.path.join(HERE, name + ".py"), *options]
        return Program("%s@%s" % (name, at), command, dict(os.environ), self.parsed.root, self.logs)


# The groups. Each lists its programs; their figures are defined in their sources.

def chunk_group(setup):
    size = str(setup.parsed.bytes)
    programs = [setup.job("overlap", "cuda", setup.cuda, "--size", size)]
    nvidia = setup.opencl.get("nvidia")
    if nvidia:
        programs.append(setup.job("overlap", "opencl-nvidia", nvidia, "--size", size))
    return programs + [setup.torch("torch_chunks", "cuda", "--device", "cuda", "--bytes", size)]


def frame_group(setup):
    weir, dump = setup.frames("cuda", setup.cuda, setup.parsed.frames)
    return [weir,
            setup.torch("torch_arr_coc", "cuda", "--device", "cuda", "--dump", dump, "--weights",
                        setup.parsed.weights, "--frames", str(max(10, setup.parsed.frames // 10)))]


def pageable_group(setup):
    most = str(setup.parsed.bytes)
    return [setup.job("pageable", "cuda", setup.cuda, "--most", most),
            setup.torch("torch_pageable", "cuda", "--device", "cuda", "--most", most)]


def ddp_group(setup):
    cublas, nccl = setup.wheel_library("libcublas.so.*"), setup.wheel_library("libnccl.so.2")
    environment = dict(setup.cuda, **({"WEIR_CUDA_NCCL": nccl} if nccl else {}))
    commands = weir_command.ddp(setup.parsed.weir, setup.parsed.jobs, "auto," + ",".join(map(str, DDP_CAPS)),
                                cublas=cublas, nccl=nccl, batch=",".join(map(str, DDP_BATCHES)))
    return [Commands("weir_ddp@cuda", environment, *commands),
            setup.torch("torch_ddp", "cuda", "--caps", ",".join(map(str, DDP_CAPS)))]


def train_group(setup):
    cublas = setup.wheel_library("libcublas.so.*")
    environment = dict(setup.cuda)
    if cublas:
        environment["LD_LIBRARY_PATH"] = ":".join(
            filter(None, [os.path.dirname(cublas), environment.get("LD_LIBRARY_PATH")]))
    folder = os.path.join(setup.parsed.work, "images")
    os.makedirs(folder, exist_ok=True)
    train_data.write(folder, 32)
    return [Commands("weir_train@cuda", environment, *weir_command.train(setup.parsed.weir, folder)),
            setup.torch("torch_train", "cuda", "--data", folder)]


def pocl_group(setup):
    pocl = setup.opencl.get("pocl")
    if not pocl:
        return []
    weir, dump = setup.frames("opencl-pocl", pocl, setup.parsed.pocl_frames, graphs="off")
    return [weir, setup.job("overlap", "opencl-pocl", pocl, "--size", str(setup.parsed.pocl_bytes)),
            setup.torch("torch_arr_coc", "cpu", "--device", "cpu", "--dump", dump, "--weights",
                        setup.parsed.weights, "--threads", str(setup.parsed.threads), "--frames",
                        str(max(1, setup.parsed.pocl_frames // 5)))]


GROUPS = {"chunks": chunk_group, "frames": frame_group, "pageable": pageable_group, "pocl": pocl_group, "ddp": ddp_group, "train": train_group}

# The sizes of torch_ddp.py.
DDP_BATCHES = [2048, 4096, 8192]
DDP_CAPS = [25, 48, 96]


def ddp_rows():
    rows = []
    for batch in DDP_BATCHES:
        fixed, raw, torch = [["%s_%d_%d" % (way, batch, cap) for cap in DDP_CAPS]
                             for way in ("weir", "raw", "ddp")]
        auto = ("weir_ddp@cuda", ["weir_%d_auto" % batch])
        all_of_weir = ("weir_ddp@cuda", auto[1] + fixed)
        rows += [
            ("ddp", "ddp, batch %d: PyTorch's DDP, the best buckets of each" % batch, all_of_weir,
             ("torch_ddp@cuda", torch), "time", "<=", 1.00),
            ("ddp", "ddp, batch %d: raw CUDA and NCCL, the best of each" % batch, all_of_weir,
             ("weir_ddp@cuda", raw), "time", "<=", 1.02),
            ("ddp", "ddp, batch %d: auto: the best of %s MiB" % (
                batch, ", ".join(map(str, DDP_CAPS))), auto, ("weir_ddp@cuda", fixed), "time",
             "<=", 1.03)]
    return rows


def train_rows():
    def row(program, way, name, sign, target):
        return ("train", "train %s, %s: PyTorch, its best" % (name, way),
                ("weir_train@cuda", ["%s_%s" % (program, way)]),
                ("torch_train@cuda", ["%s_overlapped" % program.split("_")[0],
                                      "%s_serial" % program.split("_")[0]]), "time", sign, target)

    rows = [row(program, "overlapped", program, "<=", 1.00) for program in ("augment", "encdec")]
    rows += [row(program, "serial", program, None, None) for program in ("augment", "encdec")]
    return rows + [row("augment_made", way, "augment, images made from the seed", None, None)
                   for way in ("overlapped", "serial")]


# The rows: group, what, (program, figures), (program, figures), how, sign, target. Of several
# figures the one with the smallest median counts. "time" is the first over the second, "rate" the
# second over the first: how many times as fast the first is.

RAW_CASES = ["raw_" + case for case in ("one_queue", "one_queue_64_chunks", "depth_first_2", "breadth_first_2",
             "interleaved_2", "depth_first_4", "breadth_first_4", "interleaved_4", "depth_first_8",
             "breadth_first_8", "interleaved_8", "depth_first_16", "depth_first_8_64_chunks",
             "breadth_first_8_64_chunks", "interleaved_8_64_chunks", "three_queues_32_chunks",
             "three_queues_64_chunks", "three_queues_64_chunks_breadth", "three_queues_96_chunks")]
RAW_GRAPHS = ["raw_graph_64_chunks", "raw_graph_128_chunks"]
TORCH_CASES = ["one_stream", "streams_2", "streams_4", "streams_8", "streams_8_64_chunks"]

CHUNKS = ("overlap@cuda", ["weir_auto"])
CHUNKS_NVIDIA = ("overlap@opencl-nvidia", ["weir_auto"])
COPIES = ("overlap@cuda", ["raw_both_ways"])
COPIES_NVIDIA = ("overlap@opencl-nvidia", ["raw_both_ways"])
RAW = ("overlap@cuda", RAW_CASES)
RAW_NVIDIA = ("overlap@opencl-nvidia", RAW_CASES)
FRAMES = ("weir_arr_coc@cuda", ["frame_3_slots", "frame_8_slots", "frame_3_slots_graphs",
                                "frame_8_slots_graphs"])
FRAMES_POCL = ("weir_arr_coc@opencl-pocl", ["frame_1_slots", "frame_3_slots", "frame_8_slots"])


def pageable_rows():
    rows = []
    for way in ("up", "down"):
        for size in ("4K", "64K", "1M", "4M", "16M", "64M", "256M", "1G", "4G"):
            what = "pageable, %s, %s" % (way, size)
            copy = "copy_%s_%s" % (way, size)
            weir, torch = ("pageable@cuda", [copy]), ("torch_pageable@cuda", [copy])
            raw = [("pageable@cuda", ["%s_%s_%s" % (kind, way, size)])
                   for kind in ("driver", "threads", "pinned")]
            target = (">=", 6.0) if size == "1G" else (None, None)
            rows += [
                ("pageable", what + ": the driver's copy", weir, raw[0], "rate", *target),
                ("pageable", what + ": PyTorch", weir, torch, "rate", None, None),
                ("pageable", what + ": 8 threads on the driver", weir, raw[1], "time", None, None),
                ("pageable", what + ": pinned memory", weir, raw[2], "time", None, None)]
    return rows


def torch_frames(kind, where="cuda"):
    return ("torch_arr_coc@" + where, ["frame_" + kind])


ROWS = [
    ("chunks", "chunks, auto: copies both ways", CHUNKS, COPIES, "time", "<=", 1.012),
    ("chunks", "chunks, auto: the best raw CUDA program of equal chunks", CHUNKS, RAW, "time", "<=",
     1.01),
    ("chunks", "chunks, auto: raw CUDA, chunks that grow", CHUNKS,
     ("overlap@cuda", ["raw_three_queues_growing"]), "time", None, None),
    ("chunks", "chunks, auto: raw CUDA, equal chunks that are captured", CHUNKS,
     ("overlap@cuda", RAW_GRAPHS), "time", None, None),
    ("chunks", "raw CUDA, chunks that grow: copies both ways",
     ("overlap@cuda", ["raw_three_queues_growing"]), COPIES, "time", None, None),
    ("chunks", "raw CUDA, equal chunks that are captured: copies both ways",
     ("overlap@cuda", RAW_GRAPHS), COPIES, "time", None, None),
    ("chunks", "chunks, auto: the best PyTorch program", CHUNKS,
     ("torch_chunks@cuda", TORCH_CASES), "time", None, None),
    ("chunks", "the best raw CUDA program of equal chunks: copies both ways", RAW, COPIES, "time",
     None, None),
    ("chunks", "NVIDIA's OpenCL: chunks, auto: copies both ways", CHUNKS_NVIDIA, COPIES_NVIDIA,
     "time", "<=", 1.10),
    ("chunks", "NVIDIA's OpenCL: chunks, auto: CUDA's copies both ways", CHUNKS_NVIDIA, COPIES,
     "time", "<=", 1.10),
    ("chunks", "NVIDIA's OpenCL: chunks, auto: the best raw program", CHUNKS_NVIDIA, RAW_NVIDIA,
     "time", None, None),
    ("frames", "ARR-COC, frames/s: bare copies", FRAMES, ("weir_arr_coc@cuda", ["frame_copies"]),
     "rate", ">=", 0.90),
    ("frames", "ARR-COC, frames/s: PyTorch, three streams", FRAMES, torch_frames("eager"), "rate",
     ">=", 20),
    ("frames", "ARR-COC, frames/s: the same under torch.compile", FRAMES,
     torch_frames("compiled"), "rate", ">=", 15),
    ("frames", "ARR-COC, frames/s: PyTorch, eight images in flight", FRAMES,
     torch_frames("eager_in_flight"), "rate", None, None),
    ("frames", "ARR-COC, frames/s: both, in flight and torch.compile", FRAMES,
     torch_frames("compiled_in_flight"), "rate", None, None),
    ("frames", "ARR-COC, frames/s: 3 slots beside 1",
     ("weir_arr_coc@cuda", ["frame_3_slots"]), ("weir_arr_coc@cuda", ["frame_1_slots"]), "rate",
     ">=", 1.0),
    ("frames", "ARR-COC, frames/s: 8 slots as graphs beside 8 slots",
     ("weir_arr_coc@cuda", ["frame_8_slots_graphs"]), ("weir_arr_coc@cuda", ["frame_8_slots"]),
     "rate", None, None),
    ("pocl", "PoCL: chunks, auto: the best plain OpenCL program",
     ("overlap@opencl-pocl", ["weir_auto"]), ("overlap@opencl-pocl", RAW_CASES), "time",
     None, None),
    ("pocl", "PoCL: chunks, one queue: plain OpenCL, the same",
     ("overlap@opencl-pocl", ["weir_one_queue"]), ("overlap@opencl-pocl", ["raw_one_queue"]),
     "time", None, None),
    ("pocl", "PoCL: ARR-COC, frames/s: PyTorch on the CPU", FRAMES_POCL,
     torch_frames("eager", "cpu"), "rate", None, None),
    ("pocl", "PoCL: ARR-COC, frames/s: the same under torch.compile", FRAMES_POCL,
     torch_frames("compiled", "cpu"), "rate", ">=", 4),
] + pageable_rows() + ddp_rows() + train_rows()


def judge(value, sign, target):
    if sign is None:
        return ""
    return "met" if (value <= target if sign == "<=" else value >= target) else "MISSED"


def row_of(programs, _, what, left_side, right_side, way, sign, target):
    (left, left_figures), (right, right_figures) = left_side, right_side
    row = {"what": what, "sign": sign, "target": target}
    for name in (left, right):
        if name not in programs:
            return dict(row, reason="there is nothing here for %s" % name)
        if not programs[name].rounds:
            return dict(row, reason="%s: %s" % (name, programs[name].reason or "no rounds"))
    a, b = programs[left], programs[right]
    first, second = a.best(left_figures), b.best(right_figures)
    if not first or not second:
        name, figures = left_side if not first else right_side
        why = (programs[name].head or {}).get("compiled_skipped")
        return dict(row, reason="%s has no figure %s%s" % (
            name, figures[0], ": " + why if why else ""))
    pairs = [(x, y) for x, y in zip(a.samples(first), b.samples(second)) if x > 0 and y > 0]
    ratio = spread([x / y if way == "time" else y / x for x, y in pairs])
    return dict(row, weir_ms=median(a.samples(first)), weir_figure=first,
                other_ms=median(b.samples(second)), other_figure=second, ratio=ratio,
                rounds=len(pairs), verdict=judge(ratio["median"], sign, target))


# Benchmarks of the command, which alternate by themselves.

def run_bench(setup, clock, command, environment):
    command = command + ["--json", "--quiet", "--turns", str(setup.parsed.rounds)]
    try:
        result = subprocess.run(command, env=environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, cwd=setup.parsed.root,
                                timeout=max(1.0, min(150.0, clock.left())))
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    if result.returncode != 0:
        return None, result.stderr.decode(errors="replace").strip().split("\n")[-1]
    return json.loads(result.stdout.decode()), None


def job_rows(report, reason, wanted):
    """Rows of a job's tables: (table, what is in the row, times, ratio, unit in ms, what, sign, target)."""
    rows = []
    for table, has, times, ratio, unit, what, sign, target in wanted:
        found = [row for row in ((report or {}).get("tables", {}).get(table) or [])
                 if all(row[key] == value for key, value in has.items()) and row.get(ratio)]
        row = {"what": what, "sign": sign, "target": target}
        if found:
            row.update(ratio=found[0][ratio], weir_ms=found[0][times[0]]["median"] * unit,
                       verdict=judge(found[0][ratio]["median"], sign, target))
            if times[1]:
                row["other_ms"] = found[0][times[1]]["median"] * unit
        else:
            notes = [note for note in (report or {}).get("notes", [])
                     if "not measured" in note and (table[:4] in note.lower() or table in ("graphs", "start"))]
            row["reason"] = reason or (notes or ["there is no such row"])[0]
        rows.append(row)
    return rows


def pipeline_rows(report, reason, where):
    rows = []
    table = (report or {}).get("tables", {}).get("pipeline") or []
    for setting, target in (("balanced", 1.8), ("compute-heavy", 1.0), ("copy-heavy", 1.0)):
        row = {"what": "%s: pipeline, %s, 3 slots: 1 slot, frames/s" % (where, setting),
               "sign": ">=", "target": target}
        found = [r for r in table if r["setting"] == setting and r["slots"] == 3]
        if found:
            ratio = found[0]["speed_up"]
            rows.append(dict(row, ratio=ratio, verdict=judge(ratio["median"], ">=", target)))
        else:
            rows.append(dict(row, reason=reason or "weir bench pipeline has no such row"))
    return rows


# The table.

def verdict_of(row):
    """A target within the interval may be met in one run and missed in the next."""
    ratio = row["ratio"]
    near = row["sign"] and "low" in ratio and ratio["low"] <= row["target"] <= ratio["high"]
    return row["verdict"] + (", not sure" if near else "")


def text_of(row):
    if "reason" in row:
        target = "%s %g" % (row["sign"], row["target"]) if row["sign"] else ""
        reason = row["reason"].replace("not measured: ", "").split("; ")[0][:150]
        return [row["what"], "", "", "", "", "", target, "not measured: " + reason]
    ratio = row["ratio"]
    times = ["%.4g" % row[k] if k in row else "" for k in ("weir_ms", "other_ms")]
    return [row["what"], *times, "%.3f" % ratio["median"],
            "%.3f .. %.3f" % (ratio["low"], ratio["high"]) if "low" in ratio else "",
            "%.3f .. %.3f" % (ratio["min"], ratio["max"]),
            "%s %g" % (row["sign"], row["target"]) if row["sign"] else "", verdict_of(row)]


def table_of(rows):
    head = ["what: beside what", "Weir, ms", "other, ms", "ratio", "95 % of the median",
            "smallest .. largest", "target", "verdict"]
    lines = [head] + [text_of(row) for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(7)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0])] + [line[i].rjust(widths[i]) for i in range(1, 7)]
                  + [line[7]]).rstrip() for line in lines) + "\n"


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", required=True, help="where the programs find their data")
    parser.add_argument("--weir", required=True, help="the weir command")
    parser.add_argument("--out", required=True, help="a folder for tables, JSON and logs")
    parser.add_argument("--work", required=True, help="a folder for temporary files")
    parser.add_argument("--rounds", type=int, default=11, help="rounds (11)")
    parser.add_argument("--seconds", type=float, default=300, help="time for all of it (300)")
    parser.add_argument("--groups", default="chunks,frames,benches,pageable,start,pocl",
                        help="which, of: %s, start and benches" % ", ".join(GROUPS))
    parser.add_argument("--bytes", type=int, default=1 << 30, help="of chunks on a GPU (1 GiB)")
    parser.add_argument("--frames", type=int, default=500, help="of ARR-COC on a GPU (500)")
    parser.add_argument("--pocl-bytes", type=int, default=64 << 20, help="on PoCL (64 MiB)")
    parser.add_argument("--pocl-frames", type=int, default=10, help="on PoCL (10)")
    parser.add_argument("--threads", type=int, default=2, help="of PoCL and PyTorch's CPU (2)")
    parser.add_argument("--python", default=sys.executable, help="a Python that has PyTorch")
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")
    parsed = parser.parse_args()
    parsed.jobs = os.path.join(parsed.root, "tests/bench/jobs/jobs")
    parsed.weights = os.path.join(parsed.root,
                                  "pipelines/arr_coc/weights/arr_coc_weights.safetensors")
    unknown = set(parsed.groups.split(",")) - set(GROUPS) - set(BENCHES)
    if unknown:
        parser.error("there is no group '%s'" % sorted(unknown)[0])
    return parsed


def measure_start(setup, clock):
    def step(name, what, sign, target):
        return ("start", {"step": name}, ("weir_ms", "raw_ms"), "ratio", 1, what, sign, target)

    report, reason = run_bench(setup, clock, [setup.parsed.jobs, "start"], setup.cuda)
    return job_rows(report, reason, [
        step("first_result", "process start to first result: raw CUDA", "<=", 1.05),
        step("ended", "the same until the process has ended: raw CUDA", None, None)]), {"start": report}


def measure_benches(setup, clock):
    def submit(table, name, what):
        return (table, {"name": name}, ("weir_ns", "other_ns"), "ratio", 1e-6, what, "<=", 1.02)

    def graph(time, what):
        return ("graphs", {"nodes": 20, "way": "Weir, graph"}, (time + "_us", None), time + "_to_raw",
                1e-3, what, "<=", 1.02)

    jobs = setup.parsed.jobs
    reports = {}
    reports["submit"], reason = run_bench(setup, clock, [jobs, "submit"], dict(os.environ))
    rows = job_rows(reports["submit"], reason, [
        submit("cuda", "sequence", "submit: copy, launch, record, wait: raw CUDA"),
        submit("cuda", "launch", "submit: launch: raw CUDA"),
        submit("opencl_long", "long", "PoCL: operations over 20 us, end to end: plain OpenCL")])
    reports["graph"], reason = run_bench(setup, clock, [jobs, "graph"], setup.cuda)
    rows += job_rows(reports["graph"], reason, [
        graph("complete", "graph of 20 kernels, complete: raw CUDA graph"),
        graph("submit", "graph of 20 kernels, submit: raw CUDA graph")])
    reports["pipeline"], reason = run_bench(setup, clock, [setup.parsed.weir, "bench", "pipeline"],
                                            setup.cuda)
    return rows + pipeline_rows(reports["pipeline"], reason, "CUDA"), reports


BENCHES = {"benches": measure_benches, "start": measure_start}


def main():
    parsed = parse()
    logs = os.path.join(parsed.out, "peers")
    os.makedirs(logs, exist_ok=True)
    clock = Clock(parsed.seconds)
    setup = Setup(parsed, logs)
    programs, reports, bench_rows = {}, {}, []
    for name in parsed.groups.split(","):
        if name in BENCHES:
            more, found = BENCHES[name](setup, clock)
            bench_rows += more
            reports.update(found)
            continue
        group = GROUPS[name](setup)
        run_group(group, parsed.rounds, clock, parsed.quiet)
        programs.update((program.name, program) for program in group)
    rows = [row_of(programs, *row) for row in ROWS if row[0] in parsed.groups.split(",")]
    rows += bench_rows
    table = table_of(rows)
    seconds = "%d rounds, %.0f s\n" % (parsed.rounds, clock.spent())
    with open(os.path.join(parsed.out, "side_by_side.txt"), "w") as file:
        file.write(table + seconds)
    with open(os.path.join(parsed.out, "side_by_side.json"), "w") as file:
        json.dump({"rows": rows, "benches": reports, "programs": {
            name: {"head": p.head, "reason": p.reason, "rounds": p.rounds,
                   "figures": {f: spread(p.samples(f)) for f in (p.rounds[0] if p.rounds else {})}}
            for name, p in programs.items()}}, file, indent=1)
        file.write("\n")
    sys.stdout.write(table + seconds)
    failed = [p for p in programs.values() if p.reason and p.reason.startswith("FAILED")]
    for program in failed:
        sys.stderr.write("%s: %s\n" % (program.name, program.reason))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
