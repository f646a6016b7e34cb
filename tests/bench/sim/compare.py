#!/usr/bin/env python3
"""Prints what the model of a GPU predicts beside what was measured on it.

The folder is one that measure.py left. Each of its cases runs here with the plugin sim on the null
backend, in virtual time, with the folder's model (card.ini) and costs of kernels (kernels.ini), and
each figure of its tables becomes a row. A case of two devices runs on two of the model. No GPU is
needed. Exit status 1 if a case could not be predicted.

A row has the predicted figure, the measured one (the median of the turns), the error, and the least
and the most of the turns; * where the prediction is not between these.

A figure that only one of the two sides has is listed, and none is left out otherwise; what calls the
driver itself (raw CUDA) is measured only. Parts that run alone, such as a bare copy, are easy to predict:
the median is told with them and without. Exit status 1, too, if a figure has no partner, but for those of
the driver.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(HERE, "cases.txt")
# The columns that are predicted; others are ratios of them.
FIGURES = ("ms", "us", "median_us", "frames_per_second", "submit_us", "complete_us")
# What tells no row from another one, and differs between backends, which align the parts of results.
ALIGNED = ("bytes_out",)
# Tables of parts that run alone.
ALONE = ("alone", "copies", "parts")
# Rows that are measured only, since sim does not see them.
DRIVERS = "raw "


def cases_of(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return [(words[0], words[1], words[2], words[3:]) for words in lines]


def command_of(asked, arguments):
    return [asked.jobs, *arguments[1:]] if arguments[0] == "jobs" else [asked.weir, "bench", *arguments]


def rows_of(path):
    """{(table, texts and numbers of the row, column): {median, min, max}} of a file of figures. Of rows that look
    alike the second one is number 2."""
    with open(path, encoding="utf-8") as file:
        tables = json.load(file)["tables"]
    rows = {}
    for table, lines in tables.items():
        for line in lines:
            texts = tuple(str(v) for name, v in line.items()
                          if not isinstance(v, dict) and v is not None and name not in ALIGNED)
            for column in FIGURES:
                key, number = (table, texts, column), 1
                while key in rows:
                    number += 1
                    key = (table, (*texts, f"number {number}"), column)
                if isinstance(line.get(column), dict):
                    rows[key] = line[column]
    return rows


def text_of(key):
    table, texts, column = key
    return f"{column} of {table}: {' '.join(texts)}"


def print_single(predicted, measured):
    """Lists figures that one side lacks; how many of them should have a partner."""
    lacks = [("not predicted", key) for key in measured if key not in predicted]
    lacks += [("not measured", key) for key in predicted if key not in measured]
    lacks += [("measured as 0", key) for key in measured
              if key in predicted and measured[key]["median"] <= 0]
    count = 0
    for what, key in lacks:
        of_driver = any(text.startswith(DRIVERS) for text in key[1])
        count += not of_driver
        print(f"  {what}{' (of the driver)' if of_driver else ''}: {text_of(key)}")
    return count


def predict(asked, arguments, environment):
    """Its rows; None, with a sentence, if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "figures.json")
        done = subprocess.run([*command_of(asked, arguments), "--turns", "1", "--quiet", "--output", path],
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        if done.returncode == 0:
            return rows_of(path)
    print(f"compare: {' '.join(arguments)}: {done.stdout.strip()}", file=sys.stderr)
    return None


def row_of(key, predicted, measured):
    """(error, key, predicted, measured, whether a turn took less and another one more)"""
    within = measured["min"] <= predicted <= measured["max"]
    return (predicted / measured["median"] - 1, key, predicted, measured, within)


def print_row(row):
    error, key, predicted, measured, within = row
    spread = f"{measured['min']:.3f} to {measured['max']:.3f}{' ' if within else '*'}"
    print(f"  {predicted:12.3f} {measured['median']:12.3f} {100 * error:+7.1f} %  {spread:>24}  "
          f"{text_of(key)}")


def percent(errors, share):
    return 100 * sorted(errors)[min(len(errors) - 1, int(share * len(errors)))]


def summary(rows):
    errors = [abs(row[0]) for row in rows]
    return (f"{len(rows)} figures; error: median {percent(errors, 0.5):.1f} %, worst {100 * max(errors):.1f} %, "
            f"nine in ten below {percent(errors, 0.9):.1f} %")


def print_summary(every):
    errors = [abs(row[0]) for row in every]
    work = [row for row in every if row[1][0] not in ALONE]
    print(f"more than 10 % off: {sum(error > 0.1 for error in errors)}, of which between the least and "
          f"the most of the turns: {sum(abs(row[0]) > 0.1 and row[4] for row in every)}")
    if work:
        print(f"without parts that run alone: {summary(work)}")
    print(f"all: {summary(every)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="what measure.py left")
    parser.add_argument("--weir", required=True, help="the command")
    parser.add_argument("--jobs", default=os.path.join(HERE, "../jobs/jobs"),
                        help="the program of the jobs (tests/bench/jobs)")
    parser.add_argument("--gpu", help="the model (card.ini of the folder)")
    parser.add_argument("--costs", help="what kernels cost (kernels.ini of the folder)")
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--only", help="names of cases, with commas between them")
    asked = parser.parse_args()

    environment = dict(os.environ, WEIR_BACKEND="null", WEIR_PLUGINS="sim",
                       WEIR_SIM_GPU=asked.gpu or os.path.join(asked.folder, "card.ini"),
                       WEIR_SIM_COSTS=asked.costs or os.path.join(asked.folder, "kernels.ini"))
    every, failed, single = [], [], 0
    for name, _, devices, arguments in cases_of(asked.cases):
        path = os.path.join(asked.folder, name + ".json")
        if not os.path.exists(path) or (asked.only and name not in asked.only.split(",")):
            continue
        measured = rows_of(path)
        predicted = predict(asked, arguments, dict(environment, WEIR_NULL_DEVICES=devices))
        if predicted is None:
            failed.append(name)
            continue
        rows = [row_of(key, predicted[key]["median"], value) for key, value in measured.items()
                if key in predicted and value["median"] > 0]
        if not rows:
            sys.exit(f"compare: {path} has no row that the prediction has too")
        every += rows
        print(f"{name}: {summary(rows)}")
        single += print_single(predicted, measured)
        for row in rows:
            print_row(row)
    if failed:
        print(f"not predicted: {', '.join(failed)}")
    if not every:
        sys.exit(f"compare: there are no figures of these cases in {asked.folder}")
    print_summary(every)
    if single:
        print(f"compare: {single} figures have no partner: they are in no median")
    return 1 if failed or single else 0


if __name__ == "__main__":
    sys.exit(main())
