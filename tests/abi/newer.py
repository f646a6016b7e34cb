"""Makes newer headers of the public ones: each structure, table of slots and enumeration that may
grow gets something at its end. A structure may unless its comment says "Closed.", or it is of the kit, which is
compiled with the module that uses it.

usage: newer.py HEADER NEWER [HEADER NEWER]...

A structure gets the field `newer`, of four words, so that it outgrows every padding. Headers of
patterns are included as programs outside the tree include them: <weir/patterns/x.h>.
"""

import re
import sys

PATTERNS = re.compile(r'^#include "(patterns/.*)"')
OPENING = re.compile(r"^(struct|enum) (\w+) \{$")
# Appended before these lines: the end, and the number of kinds.
END = re.compile(r"^\}|^ *WEIR_OPERATION_KINDS,")

SLOT = "weir_status (*newer)(const struct weir_link *link);"
FIELD = "uint64_t newer[4];"
IN_ENUM = {
    "weir_operation_kind": "WEIR_OPERATION_NEWER,",
    "weir_operation_flags": "WEIR_OPERATION_NEWER_FLAG = 1u << 30,",
}


# Memory for a copy, which only its allocator reads; its fields follow those of their types.
LOCAL = ("weir_operation_room",)


def addition(kind, name, comment):
    if kind == "enum":
        return IN_ENUM.get(name)
    if "Closed." in comment or name in LOCAL or name.startswith("weir__"):
        return None
    return SLOT if name == "weir_module_ops" else FIELD


def grow(lines):
    """The lines, with something at the end of each structure or enumeration."""
    comment, added = "", None
    for line in lines:
        opening = OPENING.match(line)
        if opening:
            added = addition(*opening.groups(), comment)
        if added and END.match(line):
            yield "    %s\n" % added
            added = None
        comment = comment + line if line.startswith("//") else ""
        yield PATTERNS.sub(r"#include <weir/\1>", line)


def main():
    paths = iter(sys.argv[1:])
    for header, newer in zip(paths, paths):
        with open(header, encoding="utf-8") as file, open(newer, "w", encoding="utf-8") as out:
            out.writelines(file if "/kit/" in header else grow(file))


main()
