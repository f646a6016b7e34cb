"""Makes newer headers of the public ones: each structure, table of slots and enumeration that may
grow gets something at its last line "above: VERSION".

usage: newer.py HEADER NEWER [HEADER NEWER]...

A structure gets the field `newer`, of four words, so that it outgrows every padding. Headers of
patterns are included as programs outside the tree include them: <weir/patterns/x.h>.
"""

import re
import sys

MARK = re.compile(r"^( *)// above: .*\n", re.MULTILINE)
PATTERNS = re.compile(r'^#include "(patterns/.*)"', re.MULTILINE)
OPENING = re.compile(r"^(?:typedef )?(struct|enum) (\w+) \{$", re.MULTILINE)

SLOT = "weir_status (*newer)(const struct weir_link *link);"
FIELD = "uint64_t newer[4];"
IN_ENUM = {
    "weir_operation_kind": "WEIR_OPERATION_NEWER,",
    "weir_operation_flags": "WEIR_OPERATION_NEWER_FLAG = 1u << 30,",
}


def addition(kind, name):
    if kind == "enum":
        return IN_ENUM[name]
    return SLOT if name == "weir_module_ops" else FIELD


def grow(text):
    """The text with something after the last mark of each structure or enumeration."""
    last = {}
    for mark in MARK.finditer(text):
        opening = list(OPENING.finditer(text, 0, mark.start()))[-1]
        last[opening.start()] = (mark, opening.groups())
    parts, end = [], 0
    for mark, (kind, name) in last.values():
        parts += [text[end:mark.end()], mark.group(1), addition(kind, name), "\n"]
        end = mark.end()
    return "".join(parts) + text[end:]


def main():
    paths = iter(sys.argv[1:])
    for header, newer in zip(paths, paths):
        with open(header, encoding="utf-8") as file:
            text = file.read()
        if text.count("// above: ") != len(MARK.findall(text)):
            sys.exit("newer: %s: a line '// above:' that does not stand alone" % header)
        with open(newer, "w", encoding="utf-8") as file:
            file.write(PATTERNS.sub(r"#include <weir/\1>", grow(text)))


main()
