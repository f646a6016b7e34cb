#!/usr/bin/env python3
"""Measures a GPU for compare.py: the model of it, what kernels cost, and other runs, which the model is to predict.

Leaves in the folder of --out: card.ini, the model that `weir calibrate` measured; kernels.ini, what `weir sim learn`
found in traces of runs of one set; NAME.json, the figures of each case of another set; and logs. The backend is that of
the environment. Cases for more devices than there are are left out. Exit status 0 if all else was measured.
"""

import argparse
import os
import re
import subprocess
import sys

from compare import CASES, cases_of, command_of

# The first set: kernels of other sizes than those of the cases, one after the other. Products have at most
# a block for each multiprocessor, as those of the cases: the time of more grows in steps.
LEARNED = [
    ("advance", "overlap --size 64K,2M,32M,512M --kernel 1,700 --orders depth --chunks 1,4,32 --queues 1"),
    ("arr-coc", "arr-coc --slots 1 --frames 20"),
    ("priority", "jobs priority"),
] + [("swim-%d" % side, "swim --side %d --copies 1 --products 4 --portable" % side) for side in (256, 512, 896)]


class Measurement:
    def __init__(self, asked):
        self.asked, self.failures = asked, 0

    def path(self, name):
        return os.path.join(self.asked.out, name)

    def keep(self, seconds, name, command):
        """Runs the command, with a log of what it prints. Whether it succeeded."""
        with open(self.path(name + ".log"), "w+", encoding="utf-8", errors="replace") as log:
            status = subprocess.run(["timeout", "-k", "5", str(seconds), *command], stdin=subprocess.DEVNULL,
                                    stdout=log, stderr=subprocess.STDOUT, check=False).returncode
            log.seek(0)
            lines = [line.strip() for line in log if line.strip()]
        if status:
            print(f"measure: {name} ended with {status}: {lines[-1] if lines else ''}", flush=True)
            self.failures += 1
        return status == 0

    def learn(self):
        turns, traces = str(min(2, self.asked.turns)), []
        for name, arguments in LEARNED:
            trace = self.path(name + ".trace.gz")
            command = [*command_of(self.asked, arguments.split()), "--quiet", "--turns", turns]
            if self.keep(60, "trace-" + name, [self.asked.weir, "trace", "--output", trace, *command]):
                traces.append(trace)
        if traces:
            self.keep(60, "learn", [self.asked.weir, "sim", "learn", "--output", self.path("kernels.ini"), *traces])

    def measure(self):
        listed = subprocess.run([self.asked.weir, "devices"], capture_output=True, text=True, check=False).stdout
        count = len(re.findall(r"^\d+: ", listed, re.M))
        for name, limit, devices, arguments in cases_of(self.asked.cases):
            if int(devices) > count:
                print(f"measure: {name} is left out: it needs {devices} devices, and there is {count}", flush=True)
                continue
            command = [*command_of(self.asked, arguments), "--turns", str(self.asked.turns), "--quiet"]
            if self.keep(limit, name, [*command, "--output", self.path(name + ".json")]):
                print(f"measured {name}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("weir", "jobs", "out"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--turns", type=int, default=11)
    asked = parser.parse_args()
    os.makedirs(asked.out, exist_ok=True)
    run = Measurement(asked)
    run.keep(90, "calibrate", [asked.weir, "calibrate", "--turns", str(asked.turns), "--output", run.path("card.ini")])
    run.learn()
    run.measure()
    return run.failures > 0


if __name__ == "__main__":
    sys.exit(main())
