"""Build-time tool of the rule weir_kernels (tools/bazel/kernels.bzl).

    weir_kernels.py check --dialect DIR --out PREFIX SOURCE...
        Joins the sources, holds them against the dialect of docs/kernels.md
        and writes PREFIX.opencl.cl, PREFIX.cu and PREFIX.ll.

    weir_kernels.py embed --name NAME --header PATH --out PREFIX --ir PREFIX.ll IMAGE...
        Writes PREFIX.c and PREFIX.h, a `struct weir_bundle` that holds every
        IMAGE (FORMAT:ARCHITECTURE:PATH) and every kernel's signature.

    weir_kernels.py text --name NAME --header PATH --out PREFIX FILE
        Writes PREFIX.c and PREFIX.h, FILE as a string.

A kernel is refused in three passes. dialect.py reads its tokens and finds what
compiles and means something else elsewhere. clang then compiles it as OpenCL C,
and once more as CUDA C++ after the CUDA prelude; no pass needs a GPU or a CUDA
toolkit. Output depends on nothing but the input: no time, no absolute path.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import dialect
import signatures

OPENCL_FLAGS = [
    "-x", "cl", "-cl-std=CL1.2", "-target", "spir64", "-O0", "-S", "-emit-llvm",
    "-cl-kernel-arg-info", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
]
CUDA_FLAGS = [
    "-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_75", "-nocudainc", "-nocudalib",
    "--cuda-path=/nonexistent", "-fsyntax-only", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic",
    "-Werror", "-DWEIR_DIALECT_CHECK",
]

# Messages of clang for code that is OpenCL C but not the dialect, and the remedy.
REMEDIES = [
    (r"weir_cuda_(float|u?int)[24]", "the dialect's vectors have components (v.x) and are made "
     "with weir_float4(a, b, c, d); + - * take two of a type, or a scalar on the right"),
    (r"(reference|call) to __host__ function", "put WEIR_FN before the function"),
    (r"undeclared identifier|unknown type name", "not part of the dialect: docs/kernels.md lists "
     "what a kernel may use"),
    (r"C99|C\+\+20|c99-|c\+\+20-", "C++17 is what CUDA compiles; write it without this C form"),
]


def fail(text):
    sys.stderr.write(text.rstrip("\n") + "\n")
    sys.exit(1)


def find_clang():
    for name in ("clang", "clang-14", "clang-15", "clang-16"):
        path = shutil.which(name)
        if path:
            return path
    fail("error: clang is not installed, and kernels are checked with it; run tools/setup.sh")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)


def prelude(directory, name):
    return '#line 1 "kernels/dialect/%s"\n%s' % (name, read(os.path.join(directory, name)))


def compile_text(flags, text, suffix, output, what):
    """Runs clang on `text`; ends the program with its report, and remedies, if it refuses."""
    with tempfile.TemporaryDirectory() as folder:
        # Without its folder, because clang writes the name into the IR.
        name = "kernels" + suffix
        write(os.path.join(folder, name), text)
        command = [find_clang()] + flags + [name]
        if output:
            command += ["-o", os.path.abspath(output)]
        result = subprocess.run(command, stderr=subprocess.PIPE, universal_newlines=True,
                                cwd=folder)
    if result.returncode == 0:
        return
    report = result.stderr
    for pattern, remedy in REMEDIES:
        if re.search(pattern, report):
            report += "remedy: %s\n" % remedy
    fail("error: %s\n%s" % (what, report))


def check(arguments):
    text = dialect.join(arguments.sources)
    errors = dialect.check(text)
    if errors:
        fail("\n".join(errors))
    opencl = prelude(arguments.dialect, "opencl.h") + text
    cuda = prelude(arguments.dialect, "cuda.h") + text
    stub = prelude(arguments.dialect, "check.h")
    compile_text(OPENCL_FLAGS, opencl, ".cl", arguments.out + ".ll",
                 "this does not compile as OpenCL C 1.2")
    compile_text(CUDA_FLAGS, stub + cuda, ".cu", None,
                 "this compiles as OpenCL C but not as CUDA C++, so it is outside the dialect")
    # Only a compiler knows the sizes of structures that are passed by value.
    probe = signatures.size_probe(read(arguments.out + ".ll"))
    if probe:
        compile_text(OPENCL_FLAGS, opencl + probe, ".cl", arguments.out + ".ll",
                     "the sizes of the kernels' parameters cannot be found")
    write(arguments.out + ".opencl.cl", opencl)
    write(arguments.out + ".cu", cuda)


def bytes_table(name, data):
    """A C array of `data` and a closing zero, which makes text a string."""
    lines = []
    data = data + b"\0"
    for at in range(0, len(data), 20):
        lines.append("    " + ",".join(str(byte) for byte in data[at:at + 20]) + ",")
    return "static const _Alignas(16) unsigned char %s[%d] = {\n%s\n};\n" % (
        name, len(data), "\n".join(lines))


FORMATS = {
    "opencl": "WEIR_IMAGE_OPENCL_C",
    "cubin": "WEIR_IMAGE_CUBIN",
    "ptx": "WEIR_IMAGE_PTX",
    "spirv": "WEIR_IMAGE_SPIRV",
}


def embed(arguments):
    kernels = signatures.read(read(arguments.ir))
    if not kernels:
        fail("error: bundle %s has no kernel: a source needs a __kernel function" % arguments.name)
    name = arguments.name
    parts = ["// Generated by weir_kernels. Do not edit.\n",
             '#include "%s"\n' % arguments.header]
    images = []
    for index, image in enumerate(arguments.images):
        kind, architecture, path = image.split(":", 2)
        with open(path, "rb") as file:
            data = file.read()
        if not data:
            fail("error: %s is empty" % path)
        parts.append(bytes_table("image_%d" % index, data))
        images.append((
            "    {.struct_size = sizeof(struct weir_image), .format = %s, .target = \"%s\", "
            ".data = image_%d, .size = %d},\n") % (
            FORMATS[kind], "sm_" + architecture if architecture != "0" else "", index, len(data)))
    parts.append("static const struct weir_image images[] = {\n%s};\n" % "".join(images))
    parts.append(signatures.to_c(kernels))
    parts.append(
        "const struct weir_bundle %s = {\n    .struct_size = sizeof(struct weir_bundle),\n"
        "    .name = \"%s\",\n    .kernels = kernels,\n    .kernel_count = %du,\n"
        "    .images = images,\n    .image_count = %du,\n};\n" % (name, arguments.label, len(kernels), len(images)))
    write(arguments.out + ".c", "\n".join(parts))
    declare(arguments, "#include <weir/program.h>",
            "// The kernels %s.\nextern const struct weir_bundle %s;" % (
                ", ".join(kernel.name for kernel in kernels), name))


def declare(arguments, include, declaration):
    guard = re.sub(r"[^A-Z0-9]", "_", arguments.header.upper())
    write(arguments.out + ".h", """// Generated by weir_kernels. Do not edit.
#ifndef %s
#define %s

%s

#ifdef __cplusplus
extern "C" {
#endif

%s

#ifdef __cplusplus
}
#endif

#endif
""" % (guard, guard, include, declaration))


def text(arguments):
    data = read(arguments.file).encode("utf-8")
    write(arguments.out + ".c", '// Generated by weir_kernels. Do not edit.\n#include "%s"\n\n'
          "%s\nconst char *const %s = (const char *)text;\n" % (
              arguments.header, bytes_table("text", data), arguments.name))
    declare(arguments, "", "// %s, zero-terminated.\nextern const char *const %s;" % (
        arguments.file, arguments.name))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("check")
    one.add_argument("--dialect", required=True)
    one.add_argument("--out", required=True)
    one.add_argument("sources", nargs="+")
    one = commands.add_parser("embed")
    one.add_argument("--name", required=True)
    one.add_argument("--label", required=True)
    one.add_argument("--header", required=True)
    one.add_argument("--out", required=True)
    one.add_argument("--ir", required=True)
    one.add_argument("images", nargs="+")
    one = commands.add_parser("text")
    one.add_argument("--name", required=True)
    one.add_argument("--header", required=True)
    one.add_argument("--out", required=True)
    one.add_argument("file")
    arguments = parser.parse_args()
    {"check": check, "embed": embed, "text": text}[arguments.command](arguments)


main()
