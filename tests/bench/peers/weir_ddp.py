#!/usr/bin/env python3
"""The job `ddp` as a peer: each round starts the ranks, which check their results and measure each
step a few times, in an order that is another one each time. Figures are milliseconds of a step, medians:
compute_BATCH, and weir_BATCH_CAP and raw_BATCH_CAP for each cap in MiB and `auto`."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import weir_command


def read(report):
    ms = {}
    for row in report["tables"]["steps"]:
        batch, way = row["batch"], row["way"]
        cap = "auto" if row["buckets"].startswith("auto") else row["buckets"].split(" ")[0]
        name = {"computation": "compute_%d" % batch, "overlapped": "weir_%d_%s" % (batch, cap),
                "raw": "raw_%d_%s" % (batch, cap)}.get(way)
        if name:
            ms[name] = row["ms"]["median"]
    return report["results_checked"], ms


def command(parsed, number):
    buckets = ",".join(cap if cap == "auto" else cap + "M" for cap in parsed.caps.split(","))
    command = [parsed.weir, "launch", "-n", str(parsed.ranks), "--no-prefix", parsed.jobs,
               "ddp", "--json", "--quiet", "--turns", str(parsed.turns), "--seed", str(number),
               "--buckets", buckets]
    for option in ("layers", "width", "batch", "cublas", "nccl"):
        value = getattr(parsed, option)
        command += ["--" + option, str(value)] if value else []
    return [("", command)]


def main():
    parser = weir_command.arguments("weir_ddp", __doc__)
    parser.add_argument("--jobs", required=True, help="the program of the jobs")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--width", type=int)
    parser.add_argument("--batch", help="sizes, with commas")
    parser.add_argument("--caps", default="auto,25,48,96", help="MiB or auto, with commas")
    parser.add_argument("--turns", type=int, default=3, help="of a round (3)")
    parser.add_argument("--cublas", help="its file")
    parser.add_argument("--nccl", help="its file")
    parsed = parser.parse_args()
    return weir_command.run("weir_ddp", parsed, lambda number: command(parsed, number),
                            lambda _, report: read(report))


if __name__ == "__main__":
    sys.exit(main())
