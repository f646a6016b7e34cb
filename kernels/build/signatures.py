"""Kernel signatures, read from the LLVM IR that clang emits with -cl-kernel-arg-info.

The text form of metadata is stable in what is used here: `!N = !{...}` nodes
and their references on each `define ... spir_kernel`.
"""

import re
from collections import namedtuple

Kernel = namedtuple("Kernel", "name parameters block")
Parameter = namedtuple("Parameter", "name type_name kind writable scalar size")

SCALARS = {
    "char": ("I8", 1), "uchar": ("U8", 1), "short": ("I16", 2), "ushort": ("U16", 2),
    "int": ("I32", 4), "uint": ("U32", 4), "long": ("I64", 8), "ulong": ("U64", 8),
    "float": ("F32", 4), "double": ("F64", 8),
}
GLOBAL, CONSTANT, LOCAL = 1, 2, 3
SIZE_NAME = "weir__size_of_"


def nodes_of(ir):
    nodes = {}
    for number, body in re.findall(r"^!(\d+) = (?:distinct )?!\{(.*)\}$", ir, re.M):
        nodes[number] = re.findall(r'!"([^"]*)"|i32 (-?\d+)', body)
    return nodes


def attached(line, key, nodes):
    found = re.search(r"!%s !(\d+)" % key, line)
    if not found:
        return None
    return [text if text or not number else int(number) for text, number in nodes[found.group(1)]]


def raw_kernels(ir):
    """(name, [(name, type, qualifiers, address space)], block) of each kernel, in source order."""
    nodes = nodes_of(ir)
    for line in re.findall(r"^define .*spir_kernel .*$", ir, re.M):
        name = re.search(r"@([A-Za-z_0-9]+)\(", line).group(1)
        spaces, types, qualifiers, names = [
            attached(line, "kernel_arg_" + key, nodes) or []
            for key in ("addr_space", "type", "type_qual", "name")]
        block = attached(line, "reqd_work_group_size", nodes) or [0, 0, 0]
        yield name, list(zip(names, types, qualifiers, spaces)), block


def structures(ir):
    """Types of by-value parameters whose size only a compiler knows, each once."""
    found = []
    for _, parameters, _ in raw_kernels(ir):
        for _, type_name, _, _ in parameters:
            if not type_name.endswith("*") and type_name not in SCALARS and type_name not in found:
                found.append(type_name)
    return found


def size_probe(ir):
    """OpenCL C that, appended to the kernels, puts the sizes into the IR."""
    return "".join("__constant uint %s%d = sizeof(%s);\n" % (SIZE_NAME, index, type_name)
                   for index, type_name in enumerate(structures(ir)))


def sizes(ir):
    found = dict(re.findall(r"^@%s(\d+) = .*constant i32 (\d+)" % SIZE_NAME, ir, re.M))
    return {type_name: int(found[str(index)]) for index, type_name in enumerate(structures(ir))}


def parameter(raw, size_of):
    name, type_name, qualifiers, space = raw
    if type_name.endswith("*"):
        const = "const" in qualifiers.split()
        shown = "%s%s *" % ("const " if const else "", type_name[:-1].strip())
        kind = "LOCAL" if space == LOCAL else "BUFFER"
        writable = kind == "BUFFER" and not const and space != CONSTANT
        return Parameter(name, shown, kind, int(writable), "OTHER", 0)
    scalar, size = SCALARS.get(type_name, ("OTHER", size_of.get(type_name)))
    return Parameter(name, type_name, "VALUE", 0, scalar, size)


def read(ir):
    size_of = sizes(ir)
    return [Kernel(name, [parameter(raw, size_of) for raw in parameters], block)
            for name, parameters, block in raw_kernels(ir)]


def to_c(kernels):
    text = ""
    for kernel in kernels:
        if not kernel.parameters:
            continue
        text += "static const struct weir_parameter parameters_%s[] = {\n" % kernel.name
        for p in kernel.parameters:
            text += ('    {.struct_size = sizeof(struct weir_parameter), .name = "%s", .type_name = "%s", '
                     '.kind = WEIR_PARAMETER_%s, .writable = %du, .scalar = WEIR_SCALAR_%s, .size = %du},\n') % (
                p.name, p.type_name, p.kind, p.writable, p.scalar, p.size)
        text += "};\n\n"
    text += "static const struct weir_kernel_signature kernels[] = {\n"
    for kernel in kernels:
        text += ('    {.struct_size = sizeof(struct weir_kernel_signature), .name = "%s", .parameters = %s, '
                 '.parameter_count = %du, .required_block = {%du, %du, %du}},\n') % (
            (kernel.name, "parameters_" + kernel.name if kernel.parameters else "NULL",
             len(kernel.parameters)) + tuple(kernel.block))
    return text + "};\n"
