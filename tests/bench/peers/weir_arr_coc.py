#!/usr/bin/env python3
"""`weir bench arr-coc` as a peer, on a frame of noise: each round starts it anew. Figures are milliseconds a
frame: frame_SLOTS_slots, the same with _graphs, and frame_copies for the bare copies of as many bytes. Before,
`weir run arr-coc` leaves its results of the frame, for torch_arr_coc.py to compare with, in --dump."""

import array
import json
import os
import random
import struct
import sys
import tempfile
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import weir_command

SIDE = 1024


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


def read(name, report):
    if name == "dump":
        return 0, {}
    ms = {"frame_copies": 1e3 / report["tables"]["copies"][0]["frames_per_second"]["median"]}
    for row in report["tables"]["frames"]:
        graphs = "_graphs" if row["graphs"] == "on" else ""
        ms["frame_%d_slots%s" % (row["slots"], graphs)] = 1e3 / row["frames_per_second"]["median"]
    return report["results_checked"], ms


def commands(parsed, folder, number):
    frame = os.path.join(folder, "frame.png")
    weights = ["--weights", parsed.weights, "--quiet", "--json"]
    dump = [("dump", [parsed.weir, "run", "arr-coc", frame, "--query", os.path.join(folder, "query.npy"),
                      "--output", folder] + weights)]
    return (dump if number == 0 else []) + [
        ("frames", [parsed.weir, "bench", "arr-coc", frame, "--frames", str(parsed.frames), "--slots",
                    "1,3,8", "--graphs", parsed.graphs, "--turns", "1"] + weights)]


def main():
    parser = weir_command.arguments("weir_arr_coc", __doc__)
    parser.add_argument("--weights", required=True, help="the .safetensors file")
    parser.add_argument("--frames", type=int, default=500, help="frames of a figure (500)")
    parser.add_argument("--graphs", default="off,on")
    parser.add_argument("--dump", help="the folder of the frame and its results")
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        folder = parsed.dump or work
        write_input(folder, parsed.weights)
        return weir_command.run("weir_arr_coc", parsed,
                                lambda number: commands(parsed, folder, number), read)


if __name__ == "__main__":
    sys.exit(main())
