#!/usr/bin/env python3
"""Compares Weir's report on a trace with PyTorch's Holistic Trace Analysis.

usage: check.py TRACE REPORT_JSON...  (pairs)

HTA's temporal breakdown (idle, compute and other time) must equal the report's within
0.1 % of the span or, in short traces, 2 us for each operation, since HTA has begins and
durations in whole microseconds. HTA must find every operation of the devices.
"""

import json
import logging
import os
import shutil
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

TOLERANCE = 1e-3  # of the span
ROUNDING = 2  # microseconds of an operation: its begin and its duration


def breakdown(path):
    """HTA's figures in microseconds, and its rows of work on devices."""
    from hta.trace_analysis import TraceAnalysis

    folder = tempfile.mkdtemp()
    try:
        own = os.path.join(folder, "rank0.json" + (".gz" if path.endswith(".gz") else ""))
        shutil.copy(path, own)
        analysis = TraceAnalysis(trace_files={0: own}, trace_dir=folder)
        row = analysis.get_temporal_breakdown(visualize=False).iloc[0]
        frame = analysis.t.get_trace(0)
        rows = int((frame["stream"] >= 0).sum()) if "stream" in frame else 0
        return row, rows
    finally:
        shutil.rmtree(folder)


def compare(trace, report_path):
    with open(report_path, encoding="utf-8") as file:
        report = json.load(file)
    row, rows = breakdown(trace)
    span = report["span_ns"] / 1e3
    allowed = max(TOLERANCE * span, ROUNDING * report["operations"])
    good = True
    print(f"{trace}: {report['operations']} operations in {span:.0f} us; HTA has {rows} rows")
    for name, theirs in (("idle", "idle_time(us)"), ("compute", "compute_time(us)"),
                         ("non_compute", "non_compute_time(us)")):
        ours = report[name + "_ns"] / 1e3
        difference = abs(ours - float(row[theirs]))
        verdict = "ok" if difference <= allowed else "FAILED"
        good = good and difference <= allowed
        print(f"  {name:12} weir {ours:12.1f} us  HTA {float(row[theirs]):12.1f} us  "
              f"apart {difference:.1f} us of {allowed:.0f}  {verdict}")
    if rows < report["operations"]:
        print(f"  FAILED: HTA lacks {report['operations'] - rows} operations")
        good = False
    return good


def main():
    names = sys.argv[1:]
    if len(names) < 2 or len(names) % 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    results = [compare(trace, report) for trace, report in zip(names[::2], names[1::2])]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
