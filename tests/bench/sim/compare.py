#!/usr/bin/env python3
"""Prints what the model of a GPU predicts beside what was measured on it.

The folder is one that measure.sh left. Each of its cases runs here with the plugin sim on the null
backend, in virtual time, with the folder's model (card.ini) and costs of kernels (kernels.ini), and
each figure of its tables becomes a row. A case of two devices runs on two of the model. No GPU is
needed. Exit status 1 if a case could not be predicted.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

# The columns that are predicted; others are ratios of them.
FIGURES = ("ms", "us", "median_us", "frames_per_second", "submit_us", "complete_us")


def cases_of(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return [(words[0], words[2], words[3:]) for words in lines]


def rows_of(figures):
    """{(table, texts and numbers of the row, column): median}"""
    rows = {}
    for table, lines in figures["tables"].items():
        for line in lines:
            key = tuple(str(v) for v in line.values() if not isinstance(v, dict) and v is not None)
            for column, value in line.items():
                if column in FIGURES and isinstance(value, dict):
                    rows[(table, key, column)] = value["median"]
    return rows


def predict(weir, arguments, environment):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "figures.json")
        done = subprocess.run([weir, "bench", *arguments, "--turns", "1", "--quiet", "--save", path],
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        if done.returncode != 0:
            print(f"compare: weir bench {' '.join(arguments)}: {done.stdout.strip()}", file=sys.stderr)
            return None
        with open(path, encoding="utf-8") as file:
            return json.load(file)


def percent(errors, share):
    return 100 * sorted(errors)[min(len(errors) - 1, int(share * len(errors)))]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="what measure.sh left")
    parser.add_argument("--weir", required=True, help="the command")
    parser.add_argument("--gpu", help="the model (card.ini of the folder)")
    parser.add_argument("--costs", help="what kernels cost (kernels.ini of the folder)")
    parser.add_argument("--cases", default=os.path.join(here, "cases.txt"))
    parser.add_argument("--only", help="names of cases, with commas between them")
    parser.add_argument("--worst", type=int, default=0, help="print only so many rows of each case")
    asked = parser.parse_args()

    environment = dict(os.environ, WEIR_BACKEND="null", WEIR_PLUGINS="sim",
                       WEIR_SIM_GPU=asked.gpu or os.path.join(asked.folder, "card.ini"),
                       WEIR_SIM_COSTS=asked.costs or os.path.join(asked.folder, "kernels.ini"))
    every, failed = [], []
    for name, devices, arguments in cases_of(asked.cases):
        path = os.path.join(asked.folder, name + ".json")
        if not os.path.exists(path) or (asked.only and name not in asked.only.split(",")):
            continue
        with open(path, encoding="utf-8") as file:
            measured = rows_of(json.load(file))
        figures = predict(asked.weir, arguments, dict(environment, WEIR_NULL_DEVICES=devices))
        if not figures:
            failed.append(name)
            continue
        predicted = rows_of(figures)
        rows = [(predicted[key] / measured[key] - 1, key) for key in measured
                if key in predicted and measured[key] > 0]
        if not rows:
            sys.exit(f"compare: {path} has no row that the prediction has too")
        errors = [abs(error) for error, _ in rows]
        every += errors
        print(f"{name}: {len(rows)} figures; error: median {percent(errors, 0.5):.1f} %, "
              f"nine in ten below {percent(errors, 0.9):.1f} %, worst {100 * max(errors):.1f} %")
        shown = sorted(rows, key=lambda row: -abs(row[0]))[:asked.worst] if asked.worst else rows
        for error, key in shown:
            table, texts, column = key
            print(f"  {predicted[key]:12.3f} {measured[key]:12.3f} {100 * error:+7.1f} %  "
                  f"{column} of {table}: {' '.join(texts)}")
    if failed:
        print(f"not predicted: {', '.join(failed)}")
    if not every:
        sys.exit(f"compare: there are no figures of these cases in {asked.folder}")
    print(f"all: {len(every)} figures; error: median {percent(every, 0.5):.1f} %, "
          f"worst {100 * max(every):.1f} %")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
