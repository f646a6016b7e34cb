#!/usr/bin/env python3
"""Commands of Weir as peers, started anew for each round; figures are milliseconds.

arr-coc: `weir bench arr-coc` on a frame of noise: frame_SLOTS_slots, the same with _graphs, and frame_copies for
    the bare copies of as many bytes. Before, `weir run arr-coc` leaves its results of the frame, for
    torch_arr_coc.py to compare with, in --dump.
ddp: the job `ddp`, whose ranks check their results and measure each step a few times, in an order that is another
    one each time: compute_BATCH, and weir_BATCH_CAP and raw_BATCH_CAP for each cap in MiB and `auto`.
train: `weir train augment` and `encdec` from the start, overlapped and serial, on images of a file (--data, or
    random ones), and augment on images that are made from the seed as well: a step, as torch_train.py has it.
    Runs of a program on the same images have to have the same parameters.
"""

import argparse
import array
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import torch_peer
import train_data

SIDE = 1024


def once(commands, read, number):
    """Runs the commands of a round, and gives how many results were checked, and all figures."""
    checked, ms = 0, {}
    for name, command in commands(number):
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        words = result.stderr.decode(errors="replace").strip()
        if result.returncode == 3:
            raise torch_peer.Skipped(words.split("\n")[0])
        if result.returncode != 0:
            raise torch_peer.Failed(words[-400:])
        more, figures = read(name, json.loads(result.stdout.decode()))
        checked += more
        ms.update(figures)
    return checked, ms


def run(name, parsed, commands, read):
    """`commands(number)` gives the (name, command)s of round `number`, from 0, of which the first one
    warms up."""
    try:
        checked, _ = once(commands, read, 0)
        torch_peer.say(peer=name, device="that of weir", checked=checked)
        rounds = sys.stdin if parsed.serve else range(parsed.rounds)
        for number, _ in enumerate(rounds):
            torch_peer.say(round=number, ms=once(commands, read, number + 1)[1])
    except torch_peer.Skipped as reason:
        torch_peer.say(peer=name, skipped=str(reason))
    except torch_peer.Failed as reason:
        torch_peer.say(peer=name, failed=str(reason))
        return 1
    return 0


# arr-coc

def write_npy(path, kind, shape, values):
    header = "{'descr': '<%s4', 'fortran_order': False, 'shape': (%s,), }" % (
        kind, ", ".join(map(str, shape)))
    header += " " * (-(11 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(array.array("f" if kind == "f" else "i", values).tobytes())


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
    noise = random.Random(1)
    rgb = bytes(noise.getrandbits(8) for _ in range(3 * SIDE * SIDE))
    query = [noise.gauss(0, 1) for _ in range(query_size(weights))]
    write_png(os.path.join(folder, "frame.png"), rgb)
    write_npy(os.path.join(folder, "frame.npy"), "i", (SIDE, SIDE, 3), rgb)
    write_npy(os.path.join(folder, "query.npy"), "f", (len(query),), query)


def read_frames(name, report):
    if name == "dump":
        return 0, {}
    ms = {"frame_copies": 1e3 / report["tables"]["copies"][0]["frames_per_second"]["median"]}
    for row in report["tables"]["frames"]:
        graphs = "_graphs" if row["graphs"] == "on" else ""
        ms["frame_%d_slots%s" % (row["slots"], graphs)] = 1e3 / row["frames_per_second"]["median"]
    return report["results_checked"], ms


def frame_commands(parsed, folder, number):
    frame = os.path.join(folder, "frame.png")
    weights = ["--weights", parsed.weights, "--quiet", "--json"]
    dump = [("dump", [parsed.weir, "run", "arr-coc", frame, "--query", os.path.join(folder, "query.npy"),
                      "--output", folder] + weights)]
    return (dump if number == 0 else []) + [
        ("frames", [parsed.weir, "bench", "arr-coc", frame, "--frames", str(parsed.frames), "--slots",
                    parsed.slots, "--graphs", parsed.graphs, "--turns", "1"] + weights)]


def arr_coc(parsed, folder):
    folder = parsed.dump or folder
    write_input(folder, parsed.weights)
    return lambda number: frame_commands(parsed, folder, number), read_frames


# ddp

def read_steps(_, report):
    ms = {}
    for row in report["tables"]["steps"]:
        batch, way = row["batch"], row["way"]
        cap = "auto" if row["buckets"].startswith("auto") else row["buckets"].split(" ")[0]
        name = {"computation": "compute_%d" % batch, "overlapped": "weir_%d_%s" % (batch, cap),
                "raw": "raw_%d_%s" % (batch, cap)}.get(way)
        if name:
            ms[name] = row["ms"]["median"]
    return report["results_checked"], ms


def step_command(parsed, number):
    buckets = ",".join(cap if cap == "auto" else cap + "M" for cap in parsed.caps.split(","))
    command = [parsed.weir, "launch", "-n", str(parsed.ranks), "--no-prefix", parsed.jobs,
               "ddp", "--json", "--quiet", "--turns", str(parsed.turns), "--seed", str(number),
               "--buckets", buckets]
    for option in ("layers", "width", "batch", "cublas", "nccl"):
        value = getattr(parsed, option)
        command += ["--" + option, str(value)] if value else []
    return [("", command)]


def ddp(parsed, _):
    return lambda number: step_command(parsed, number), read_steps


# train

digests = {}


def read_training(name, report):
    program = name.rsplit("_", 1)[0]
    digest = digests.setdefault(program, report["parameters_digest"])
    if digest != report["parameters_digest"]:
        raise torch_peer.Failed("%s: another digest than that of another run" % name)
    return 1, {name: report["wall_ns"] / 1e6 / (report["steps"] - 1)}


def training_commands(parsed, folder, number):
    """Each round begins with another one."""
    data = ["--data", folder]
    ways = [("augment_overlapped", ["augment"] + data),
            ("augment_serial", ["augment", "--serial"] + data),
            ("encdec_overlapped", ["encdec"] + data),
            ("encdec_serial", ["encdec", "--serial"] + data),
            ("augment_made_overlapped", ["augment", "--side", str(parsed.side)]),
            ("augment_made_serial", ["augment", "--serial", "--side", str(parsed.side)])]
    common = ["--json", "--quiet", "--network", "convnet", "--rate", "0.001"]
    for option in ("batch", "channels", "width", "steps", "products"):
        common += ["--" + option, str(getattr(parsed, option))]
    first = number % len(ways)
    return [(name, [parsed.weir, "train"] + way + common) for name, way in ways[first:] + ways[:first]]


def train(parsed, folder):
    folder = parsed.data or train_data.write(folder, parsed.side)
    return lambda number: training_commands(parsed, folder, number), read_training


# Options of all three; None: left to the command.
OPTIONS = {
    "arr-coc": (arr_coc, {"weights": None, "frames": 500, "slots": "1,3,8", "graphs": "off,on", "dump": None}),
    "ddp": (ddp, {"jobs": None, "ranks": 2, "layers": None, "width": None, "batch": None,
                  "caps": "auto,25,48,96", "turns": 3, "cublas": None, "nccl": None}),
    "train": (train, {"batch": 256, "side": 32, "channels": 32, "width": 512, "steps": 301,
                      "products": "cublas", "data": None}),
}


def main():
    parser = torch_peer.arguments("weir_command", __doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("what", choices=OPTIONS)
    parser.add_argument("--weir", required=True, help="the weir command")
    what = sys.argv[1] if len(sys.argv) > 1 else None
    setup, options = OPTIONS.get(what, (None, {}))
    for name, value in options.items():
        parser.add_argument("--" + name, default=value, type=int if isinstance(value, int) else str)
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return run("weir " + parsed.what, parsed, *setup(parsed, folder))


if __name__ == "__main__":
    sys.exit(main())
