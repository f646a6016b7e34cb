#!/usr/bin/env python3
"""`weir train augment` and `encdec` as a peer: each round trains from the start, overlapped and serial.
Figures are milliseconds a step, as those of torch_train.py; runs of a program have to have the same
parameters."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import torch_peer
import weir_command

digests = {}


def read(name, report):
    program = report["program"]
    digest = digests.setdefault(program, report["parameters_digest"])
    if digest != report["parameters_digest"]:
        raise torch_peer.Failed("%s: another digest than that of another run" % name)
    return 1, {name: report["wall_ns"] / 1e6 / (report["steps"] - 1)}


def commands(parsed):
    ways = [("augment_overlapped", ["augment"]), ("augment_serial", ["augment", "--serial"]),
            ("encdec_overlapped", ["encdec"]), ("encdec_serial", ["encdec", "--serial"])]
    common = ["--json", "--quiet", "--network", "convnet", "--rate", "0.001"]
    for option in ("batch", "side", "channels", "width", "steps", "products"):
        common += ["--" + option, str(getattr(parsed, option))]
    return [(name, [parsed.weir, "train"] + way + common) for name, way in ways]


def main():
    parser = weir_command.arguments("weir_train", __doc__)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--channels", type=int, default=32)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--steps", type=int, default=301, help="of a run; the first is not counted")
    parser.add_argument("--products", default="cublas", help="cublas or kernels")
    parsed = parser.parse_args()
    return weir_command.run("weir_train", parsed, commands(parsed), read)


if __name__ == "__main__":
    sys.exit(main())
