"""Commands of Weir that side_by_side.py starts anew for each round. Each function here gives `commands(number)`, the
(name, command)s of round `number`, of which 0 warms up, and `read(name, report)`, which makes of the JSON of one how many
results were checked, and figures in milliseconds."""

import array
import json
import os
import random
import struct
import zlib

import torch_peer

SIDE = 1024


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


def arr_coc(weir, weights, folder, frames, slots="1,3,8", graphs="off,on"):
    """`weir bench arr-coc` on a frame of noise: frame_SLOTS_slots, the same with _graphs, and frame_copies for the bare
    copies of as many bytes. Before, `weir run arr-coc` leaves its results of the frame in the folder, for
    torch_arr_coc.py to compare with."""
    frame = os.path.join(folder, "frame.png")
    common = ["--weights", weights, "--quiet", "--json"]
    write_input(folder, weights)
    dump = ("dump", [weir, "run", "arr-coc", frame, "--query", os.path.join(folder, "query.npy"), "--output",
                     folder] + common)
    bench = ("frames", [weir, "bench", "arr-coc", frame, "--frames", str(frames), "--slots", slots, "--graphs", graphs,
                        "--turns", "1"] + common)
    return lambda number: [dump, bench] if number == 0 else [bench], read_frames


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


def ddp(weir, jobs, caps, ranks=2, turns=3, **options):
    """The job `ddp`, whose ranks check their results and measure each step a few times, in an order that is another
    one each time: compute_BATCH, and weir_BATCH_CAP and raw_BATCH_CAP for each cap in MiB and `auto`."""
    buckets = ",".join(cap if cap == "auto" else cap + "M" for cap in caps.split(","))
    command = [weir, "launch", "-n", str(ranks), "--no-prefix", jobs, "ddp", "--json", "--quiet", "--turns", str(turns),
               "--buckets", buckets]
    for name, value in options.items():
        command += ["--" + name, str(value)] if value else []
    return lambda number: [("", command + ["--seed", str(number)])], read_steps


# train

def train(weir, data, side=32, steps=301, products="cublas", **options):
    """`weir train augment` and `encdec` from the start, overlapped and serial, on images of a file, and augment on
    images that are made from the seed as well: a step, as torch_train.py has it. Runs of a program on the same images
    have to have the same parameters. Each round begins with another one."""
    digests = {}

    def read(name, report):
        digest = digests.setdefault(name.rsplit("_", 1)[0], report["parameters_digest"])
        if digest != report["parameters_digest"]:
            raise torch_peer.Failed("%s: another digest than that of another run" % name)
        return 1, {name: report["wall_ns"] / 1e6 / (report["steps"] - 1)}

    options = dict(dict(batch=256, channels=32, width=512), **options)
    common = ["--json", "--quiet", "--network", "convnet", "--rate", "0.001", "--steps", str(steps), "--products", products]
    for name, value in options.items():
        common += ["--" + name, str(value)]
    ways = [(name + way, [weir, "train", name.split("_")[0]] + images + serial + common)
            for name, images in (("augment", ["--data", data]), ("encdec", ["--data", data]),
                                 ("augment_made", ["--side", str(side)]))
            for way, serial in (("_overlapped", []), ("_serial", ["--serial"]))]
    return lambda number: ways[number % len(ways):] + ways[:number % len(ways)], read
