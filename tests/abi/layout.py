"""Writes down the layout of the public headers.

usage: layout.py PREPROCESSED UNIT    a C program that prints the layout, to stdout

UNIT includes the headers, PREPROCESSED is what the compiler made of it. The program prints one line
for each structure, field, constant of an enumeration and function: what it is, its numbers and its
type without the names of parameters.
"""

import re
import sys

TOKEN = re.compile(r'\w+|"[^"]*"|\.\.\.|\S')
MARKER = re.compile(r'^# \d+ "([^"]*)"')
OWN = re.compile(r"/(weir|patterns)/")
NAME = re.compile(r"[A-Za-z_]\w*$")
# Memory for a copy, which only its allocator reads; its fields follow those of their types.
LOCAL = ("weir_operation_room",)


def fail(text):
    sys.exit("layout: " + text)


def own_lines(text):
    """The lines that came from the headers of Weir, by the compiler's line markers."""
    own = False
    for line in text.splitlines():
        marker = MARKER.match(line)
        if marker:
            own = OWN.search(marker.group(1))
        elif own:
            yield line


def closing(tokens, start):
    """The index of the bracket that closes the one at `start`."""
    depth = 0
    for i in range(start, len(tokens)):
        depth += (tokens[i] in "({[") - (tokens[i] in ")}]")
        if depth == 0:
            return i
    fail("no end of " + " ".join(tokens[start:start + 8]))


def without_attributes(tokens):
    out, i = [], 0
    while i < len(tokens):
        if tokens[i] == "__attribute__":
            i = closing(tokens, i + 1)
        elif tokens[i] != "__extension__":
            out.append(tokens[i])
        i += 1
    return out


def declarations(tokens):
    """Splits at every `;` outside of brackets, and after the body of a function."""
    start = i = 0
    while i < len(tokens):
        if tokens[i] in ("(", "{", "["):
            body = tokens[i] == "{" and i > start and tokens[i - 1] == ")"
            i = closing(tokens, i)
            if body:
                start = i + 1
        elif tokens[i] == ";":
            yield tokens[start:i]
            start = i + 1
        i += 1


def without_names(tokens):
    """The tokens between the brackets of a function, without the names of its parameters."""
    out = []
    for i, token in enumerate(tokens):
        ends = i + 1 == len(tokens) or tokens[i + 1] in (",", ")", "[")
        named = i > 0 and (tokens[i - 1] == "*" or NAME.match(tokens[i - 1]))
        if not (ends and named and NAME.match(token) and tokens[i - 1] not in ("struct", "enum", "const")):
            out.append(token)
    return out


def declarator(tokens):
    """Name and type of a field or function."""
    if "(" in tokens and "[" not in tokens[:tokens.index("(")]:
        at = tokens.index("(")
        if tokens[at + 1] == "*":
            end = closing(tokens, at)
            name = tokens[end - 1]
            return name, tokens[:at] + ["(*)"] + without_names(tokens[end + 1:])
        return tokens[at - 1], tokens[:at - 1] + without_names(tokens[at:])
    at = tokens.index("[") if "[" in tokens else len(tokens)
    if "," in tokens or not NAME.match(tokens[at - 1]):
        fail("not one field: " + " ".join(tokens))
    return tokens[at - 1], tokens[:at - 1] + ["[]"] * (at < len(tokens))


def fields(body, prefix=""):
    for tokens in declarations(body):
        if "{" in tokens:
            name = prefix + tokens[-1]
            yield name, tokens[0]
            yield from fields(tokens[tokens.index("{") + 1:-2], name + ".")
        else:
            name, kind = declarator(tokens)
            yield prefix + name, " ".join(kind)


def constants(body):
    """The first token of each part between commas."""
    first, depth = True, 0
    for token in body:
        if first and NAME.match(token):
            yield token
            first = False
        depth += (token == "(") - (token == ")")
        first = first or (token == "," and depth == 0)


def probe_lines(tokens):
    """Statements that print what a header declares."""
    for declaration in declarations(tokens):
        words = [token for token in declaration if token not in ("typedef", "extern")]
        if words[:2] == ["enum", "{"]:
            yield from probe_enum("", words[2:-1])
        elif "{" in words and words[0] in ("struct", "enum") and words[2] == "{":
            name, body = words[1], words[3:closing(words, 2)]
            yield from probe_struct(name, body) if words[0] == "struct" else probe_enum(name, body)
        elif "static" in words or "(" not in words:
            continue
        else:
            name, kind = declarator(words)
            yield 'printf("function %s: 0 %s\\n");' % (name, " ".join(kind))


def probe_struct(name, body):
    struct = "struct " + name
    yield 'printf("structure %s: %%zu -\\n", sizeof(%s));' % (name, struct)
    if name in LOCAL:
        return
    for field, kind in fields(body):
        yield 'printf("field %s.%s: %%zu+%%zu %s\\n", offsetof(%s, %s), sizeof((%s *)0)->%s);' % (
            name, field, kind, struct, field, struct, field)


def probe_enum(name, body):
    for constant in constants(body):
        yield 'printf("constant %s: %%lld enum %s\\n", (long long)%s);' % (constant, name, constant)


def probe(path, unit_path):
    with open(unit_path, encoding="utf-8") as file:
        unit = file.read()
    with open(path, encoding="utf-8") as file:
        tokens = TOKEN.findall("\n".join(own_lines(file.read())))
    lines = list(probe_lines(without_attributes(tokens)))
    print("#include <stddef.h>\n#include <stdio.h>\n" + unit)
    print("int main(void)\n{\n    " + "\n    ".join(lines) + "\n    return 0;\n}")


def main():
    if len(sys.argv) != 3:
        fail(__doc__)
    probe(sys.argv[1], sys.argv[2])


main()
