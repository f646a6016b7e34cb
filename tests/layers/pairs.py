"""Runs each pair of a program under `weir check`: pairs.py WEIR COMMAND... Broken ones have one finding, with the two
lines that the program prints, and mended ones none."""

import json
import os
import subprocess
import sys


def check(weir, command, kind):
    ended = subprocess.run(
        [weir, "check", "--json", "--", *command, kind],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
    )
    lines = [line.split() for line in ended.stderr.splitlines() if line.replace(" ", "").isdigit()]
    if not lines or not ended.stdout:
        return None, "ended with %d: %s" % (ended.returncode, ended.stderr)
    findings = [it for it in json.loads(ended.stdout)["findings"] if not it["hint"]]
    return ([int(number) for number in lines[-1]], findings), ended.stderr


def judge(wanted, findings, kind):
    if kind == "mended":
        return not findings
    if len(findings) != 1:
        return False
    # What waits for a user event comes after what does not.
    one = findings[0]
    return sorted([one["first"]["line"], one["second"]["line"]]) == sorted(wanted)


def main(weir, *command):
    names = subprocess.run([*command, "--list"], stdout=subprocess.PIPE, text=True, check=True)
    wrong = 0
    left_out = os.environ.get("PAIRS_WITHOUT", "").split()
    pairs = [name for name in names.stdout.split() if name not in left_out]
    for name in pairs:
        for kind in ("broken", "mended"):
            result, text = check(weir, [*command, name], kind)
            if result and judge(*result, kind):
                continue
            wrong += 1
            told = [it["message"] for it in result[1]] if result else []
            print("%s, %s: lines %s, found:\n%s\n%s" % (name, kind, result and result[0], "\n".join(told), text))
    print("%d pairs, %d programs wrong" % (len(pairs), wrong))
    return wrong != 0 or not pairs


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
