"""Runs the pairs of a program under `weir check`: pairs.py WEIR COMMAND... All broken ones have one finding each, with the
two lines that the program prints, and nothing else; all mended ones none."""

import collections
import json
import os
import subprocess
import sys


def started(command, timeout):
    """What a command printed, and its status, which is -1 if it has not ended by itself."""
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, -1, "", "it has not ended within %d s" % timeout)


def run(weir, command, kind, names):
    """The lines that the program prints, of each case, and those of the findings, with the messages; or None."""
    options = os.environ.get("PAIRS_OPTIONS", "").split()
    ended = started([weir, "check", "--json", *options, "--", *command, kind, *names], 30 + 10 * len(names))
    printed = [line.split() for line in ended.stderr.splitlines()]
    cases = {it[0]: tuple(sorted(map(int, it[1:]))) for it in printed if len(it) == 3 and it[0] in names}
    if sorted(cases) != sorted(names) or not ended.stdout:
        print("%s %s ended with %d: %s" % (kind, " ".join(names), ended.returncode, ended.stderr))
        return None
    # What waits for a user event comes after what does not, so the two lines have no order.
    found = [
        (tuple(sorted((it["first"]["line"], it["second"]["line"]))), it["message"])
        for it in json.loads(ended.stdout)["findings"]
        if not it["hint"]
    ]
    return cases, found


def main(weir, *command):
    listed = subprocess.run([*command, "--list"], stdout=subprocess.PIPE, text=True, check=True)
    left_out = os.environ.get("PAIRS_WITHOUT", "").split()
    names = [name for name in listed.stdout.split() if name not in left_out]
    # PoCL 7.1 ends a process that runs them all, also without the layer.
    plain = started([*command, "mended", *names], 30)
    groups = [names] if plain.returncode >= 0 else [[name] for name in names]
    wrong = 0
    for kind in ("broken", "mended"):
        cases, found = {}, []
        for group in groups:
            of_group = run(weir, command, kind, group)
            if of_group is None:
                wrong += len(group)
                continue
            cases.update(of_group[0])
            found += of_group[1]
        wanted = collections.Counter(cases.values() if kind == "broken" else [])
        counts = collections.Counter(lines for lines, _ in found)
        for name, lines in cases.items():
            if wanted[lines] > counts[lines]:
                wrong += 1
                print("%s, %s: lines %s: not found" % (name, kind, lines))
        for lines, message in found:
            if wanted[lines] != counts[lines]:
                wrong += 1
                print("%s: lines %s: %s" % (kind, lines, message))
    print("%d pairs, %d differ" % (len(names), wrong))
    return wrong != 0 or not names


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
