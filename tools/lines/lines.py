"""Counts what Weir touches in one sequence: instructions, and cache lines of code and data.

lines.py PLACES TRACE: what tools/lines/sequence.c printed, and lackey's trace of its accesses.
What the driver executes, and the C library for it, is left out.
"""
import sys

LINE = 64
CALLS = ["copy", "launch", "record", "wait"]


def read_places(path):
    step, maps = None, []
    for line in open(path):
        fields = line.split()
        if fields[0] == "step":
            step = int(fields[1], 16)
        elif "-" in fields[0] and len(fields) > 5:
            low, high = (int(x, 16) for x in fields[0].split("-"))
            maps.append((low, high, fields[5]))
    return step, maps


def library_of(maps, address, known={}):
    page = address >> 12
    if page not in known:
        known[page] = next((n for low, high, n in maps if low <= address < high), "")
    return known[page]


class Count:
    def __init__(self):
        self.instructions, self.code, self.data = 0, set(), set()


def accesses(path):
    """Yields (kind, address): I, L, S or M."""
    for line in open(path, errors="replace"):
        kind, _, place = line.strip().partition(" ")
        if kind in ("I", "L", "S", "M"):
            yield kind, int(place.split(",")[0], 16)


def count(step, maps, trace):
    counts, at, in_driver = [Count() for _ in CALLS], 0, False
    for kind, address in accesses(trace):
        if address == step and kind in "SM":
            at += 1
        elif 1 <= at <= len(CALLS):
            if kind == "I":
                library = library_of(maps, address)
                if "libcuda" in library:
                    in_driver = True
                elif "libc.so" not in library and "ld-linux" not in library:
                    in_driver = False
            if in_driver:
                continue
            if kind == "I":
                counts[at - 1].instructions += 1
                counts[at - 1].code.add(address // LINE)
            else:
                counts[at - 1].data.add(address // LINE)
    if at != len(CALLS) + 1:
        sys.exit("lines: the sequence is not in the trace")
    return counts


def main():
    step, maps = read_places(sys.argv[1])
    counts = count(step, maps, sys.argv[2])
    row = "{:<12}{:>14}{:>12}{:>12}"
    print(row.format("call", "instructions", "code lines", "data lines"))
    for name, one in zip(CALLS, counts):
        print(row.format(name, one.instructions, len(one.code), len(one.data)))
    print(row.format("all, once", sum(c.instructions for c in counts),
                     len(set().union(*(c.code for c in counts))),
                     len(set().union(*(c.data for c in counts)))))


main()
