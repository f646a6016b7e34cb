"""The frame of a peer. It checks its results, then measures everything once a round, and prints a line of JSON
per round, as the jobs with --serve do:

    {"peer": "torch_chunks", "device": "NVIDIA H200", "checked": 5}
    {"round": 0, "ms": {"both_ways": 21.1, "one_stream": 42.5}}

With --rounds N it measures N rounds, with --serve one for each line of its input, so that side_by_side.py can
alternate between programs. A round that warms up comes first and is not printed. A program that cannot run here
prints {"peer": ..., "skipped": "why"} and ends with status 0."""

import argparse
import json
import os
import struct
import sys
import time


def say(**line):
    print(json.dumps(line), flush=True)


class Failed(Exception):
    """A result is wrong."""


class Skipped(Exception):
    """This machine cannot run it."""


def now_ms():
    return time.perf_counter() * 1e3


def sync(torch, device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def import_torch():
    try:
        import torch
    except (ImportError, OSError) as error:
        raise Skipped("PyTorch is not installed, or not whole: %s" % error)
    return torch


def pick_device(torch, wanted):
    """`cuda`, `cpu`, or `auto` for CUDA where it is and else the CPU."""
    if wanted == "cpu" or (wanted == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu"), "CPU, %d threads" % torch.get_num_threads()
    if not torch.cuda.is_available():
        raise Skipped("this PyTorch sees no CUDA device")
    return torch.device("cuda"), torch.cuda.get_device_name(0)


def main(about, make, **options):
    """`options` are NAME=(default, help). `make(torch, parsed)` sets up, checks, and gives (device, checked, facts,
    round), of which `round()` measures everything once and gives {figure: milliseconds}. Returns the exit status."""
    name = os.path.basename(sys.argv[0])[:-len(".py")]
    parser = argparse.ArgumentParser(prog=name, description=about)
    parser.add_argument("--rounds", type=int, default=11, help="rounds to measure (11)")
    parser.add_argument("--serve", action="store_true", help="measure a round for each line of the input")
    parser.add_argument("--device", choices=["auto", "cuda", "cpu"], default="auto")
    parser.add_argument("--threads", type=int, default=2, help="threads on the CPU (2)")
    for option, (default, text) in options.items():
        parser.add_argument("--" + option, type=type(default), default=default, help=text)
    parsed = parser.parse_args()
    try:
        torch = import_torch()
        torch.set_num_threads(parsed.threads)
        device, checked, facts, measure = make(torch, parsed)
        measure()
        say(peer=name, device=device, checked=checked, torch=torch.__version__, **facts)
        for number, _ in enumerate(sys.stdin if parsed.serve else range(parsed.rounds)):
            say(round=number, ms=measure())
    except Skipped as reason:
        say(peer=name, skipped=str(reason))
    except Failed as reason:
        say(peer=name, failed=str(reason))
        return 1
    return 0


def read_npy(torch, path):
    """A .npy file of little-endian float32 or int32, without NumPy."""
    kinds = {"<f4": torch.float32, "<i4": torch.int32}
    with open(path, "rb") as file:
        if file.read(8) != b"\x93NUMPY\x01\x00":
            raise Failed("%s is no .npy file of version 1.0" % path)
        header = file.read(struct.unpack("<H", file.read(2))[0]).decode("latin-1")
        kind = next(k for k in kinds if k in header)
        shape = [int(n) for n in header.split("(")[1].split(")")[0].split(",") if n.strip()]
        return torch.frombuffer(bytearray(file.read()), dtype=kinds[kind]).reshape(shape)


def read_safetensors(torch, path):
    """All tensors of a .safetensors file of float32, without its package."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = bytearray(file.read())
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            tensors[name] = torch.frombuffer(data[begin:end], dtype=torch.float32).reshape(
                entry["shape"])
    return tensors
