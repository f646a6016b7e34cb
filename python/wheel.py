#!/usr/bin/env python3
"""wheel.py OUT VERSION STRIP PYTHON_FOLDER LIBWEIR MODULES... -- COMMAND: writes the wheel weir-gpu.

The tag says what the files ask for: the newest glibc symbol gives manylinux_2_N, so that pip refuses the
wheel where the C library is older, or is musl. A library that manylinux does not allow is refused here."""

import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ALLOWED = re.compile(r"(libc|libm|libdl|libpthread|librt|ld-linux-x86-64|libgcc_s|libstdc\+\+)\.so\.\d+|libweir\.so\.0")

METADATA = """Metadata-Version: 2.1
Name: weir-gpu
Version: {version}
Summary: Queues, events and buffers over CUDA and OpenCL, and what finds a missing wait
Requires-Python: >=3.10
Description-Content-Type: text/markdown
Provides-Extra: pocl
Requires-Dist: pocl-binary-distribution; extra == 'pocl'
Provides-Extra: numpy
Requires-Dist: numpy; extra == 'numpy'

Queues, events and buffers for programs that copy and compute at the same time, on CUDA GPUs, OpenCL devices
and, with the extra `pocl`, any processor:

    pip install weir-gpu[pocl]
    weir doctor
    weir check python loop.py
"""

WHEEL = """Wheel-Version: 1.0
Generator: weir ({version})
Root-Is-Purelib: false
Tag: {tag}
"""

ENTRY_POINTS = """[console_scripts]
weir = weir.__main__:main

[pytest11]
weir = weir.pytest_plugin
"""


def needs(file):
    """The newest glibc that an ELF file asks for, as (2, 36); ends the program if it needs other libraries."""
    text = subprocess.run(["readelf", "-d", "-V", "-W", str(file)], check=True, capture_output=True, text=True).stdout
    for library in re.findall(r"\(NEEDED\).*\[(.*?)\]", text):
        if not ALLOWED.fullmatch(library):
            sys.exit(f"wheel.py: {file.name} needs {library}, which a wheel must not ask for: link it statically")
    return max((tuple(map(int, v.split("."))) for v in re.findall(r"Name: GLIBC_([0-9.]+)", text)), default=(2, 5))


def record(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def main(out, version, strip, files):
    """`files`: pairs of a name in the wheel and a path."""
    glibc = (2, 17)
    contents = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, path in files:
            data = pathlib.Path(path).read_bytes()
            if data[:4] == b"\x7fELF":
                stripped = pathlib.Path(folder) / pathlib.Path(name).name
                subprocess.run([strip, "--strip-unneeded", "-o", stripped, path], check=True)
                glibc = max(glibc, needs(stripped))
                data = stripped.read_bytes()
            contents[name] = data
    tag = "cp310-abi3-manylinux_%d_%d_x86_64" % glibc[:2]
    info = f"weir_gpu-{version}.dist-info"
    contents[f"{info}/METADATA"] = METADATA.format(version=version).encode()
    contents[f"{info}/WHEEL"] = WHEEL.format(version=version, tag=tag).encode()
    contents[f"{info}/entry_points.txt"] = ENTRY_POINTS.encode()
    contents[f"{info}/top_level.txt"] = b"weir\n"
    rows = "".join(record(name, data) for name, data in contents.items()) + f"{info}/RECORD,,\n"
    contents[f"{info}/RECORD"] = rows.encode()
    # The name of a wheel holds its tag, and Bazel's names are fixed: an archive holds the wheel.
    path = pathlib.Path(out) / f"weir_gpu-{version}-{tag}.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, data in contents.items():
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if data[:4] == b"\x7fELF" else 0o100644) << 16
            wheel.writestr(entry, data)
    print(path)


if __name__ == "__main__":
    out, version, strip, *rest = sys.argv[1:]
    main(out, version, strip, [pair.split("=", 1) for pair in rest])
