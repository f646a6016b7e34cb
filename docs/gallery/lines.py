#!/usr/bin/env python3
"""Counts the lines of the gallery's programs, the same way in CUDA C++ and in Weir.

    docs/gallery/lines.py             a row for each program
    docs/gallery/lines.py FILE...     the calls of these files, for other programs

All lines: neither empty nor a comment alone; for Weir those of the .c and the .cl file. Lines of calls: those of
statements, of conditions and of loops' heads that call CUDA's runtime (`cudaX(`, `<<<`), OpenCL (`clX(`, members of
its C++ classes are not seen) or Weir (`weir_x(`), from the first line of the statement's parentheses to their last.
Checks around them and the functions that the program itself declares are not counted.
"""
import glob
import os
import re
import sys

CALLS = re.compile(r"\b(?:weir_[a-z]\w*|cuda[A-Z]\w*|cl[A-Z]\w*)\s*\(|<<<")


def code(text):
    text = re.sub(r"/\*.*?\*/", lambda comment: "\n" * comment[0].count("\n"), text, flags=re.S)
    return [re.sub(r"//.*", "", line).strip() for line in text.splitlines()]


def all_lines(text):
    return sum(1 for line in code(text) if line)


def opened(line):
    return line.count("(") + line.count("<<<") - line.count(")") - line.count(">>>")


def call_lines(text):
    lines, count, first = code(text), 0, 0
    while first < len(lines):
        last, depth = first, opened(lines[first])
        while depth > 0 and last + 1 < len(lines):
            last += 1
            depth += opened(lines[last])
        if CALLS.search(" ".join(lines[first : last + 1])):
            count += last + 1 - first
        first = last + 1
    return count


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def rows(folder):
    """(name, all lines in CUDA, in Weir, lines of calls in CUDA, in Weir) of each program."""
    for path in sorted(glob.glob(os.path.join(folder, "*.cu"))):
        name = os.path.basename(path)[: -len(".cu")]
        cuda, weir, kernels = (read(path[: -len("cu")] + ending) for ending in ("cu", "c", "cl"))
        yield name, all_lines(cuda), all_lines(weir) + all_lines(kernels), call_lines(cuda), call_lines(weir)


def main():
    if len(sys.argv) > 1:
        for path in sys.argv[1:]:
            print("%4d  %s" % (call_lines(read(path)), path))
        return
    print("%-20s %10s %10s %12s %12s" % ("", "CUDA", "Weir", "calls, CUDA", "calls, Weir"))
    for row in rows(os.path.dirname(os.path.abspath(__file__))):
        print("%-20s %10d %10d %12d %12d" % row)


if __name__ == "__main__":
    main()
