#!/usr/bin/env python3
"""`weir train augment` and `encdec` as a peer: each round trains from the start, overlapped and serial, on
images of a file (--data, or random ones), and augment on images that are made from the seed as well.
Figures are milliseconds a step, as those of torch_train.py; runs of a program on the same images have to
have the same parameters."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import tempfile

import torch_peer
import train_data
import weir_command

digests = {}


def read(name, report):
    program = name.rsplit("_", 1)[0]
    digest = digests.setdefault(program, report["parameters_digest"])
    if digest != report["parameters_digest"]:
        raise torch_peer.Failed("%s: another digest than that of another run" % name)
    return 1, {name: report["wall_ns"] / 1e6 / (report["steps"] - 1)}


def commands(parsed, folder, number):
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


def main():
    parser = weir_command.arguments("weir_train", __doc__)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--channels", type=int, default=32)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--steps", type=int, default=301, help="of a run; the first is not counted")
    parser.add_argument("--products", default="cublas", help="cublas or kernels")
    parser.add_argument("--data", help="a folder of train_data.py's, with images of SIDE x SIDE x 3")
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        folder = parsed.data or train_data.write(work, parsed.side)
        return weir_command.run("weir_train", parsed,
                                lambda number: commands(parsed, folder, number), read)


if __name__ == "__main__":
    sys.exit(main())
