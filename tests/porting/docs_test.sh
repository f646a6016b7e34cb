#!/bin/bash
# The code of docs/porting.md and docs/opencl.md is from the files that are built and run beside this test.
. tests/support/shell.sh

python3 - <<'PYTHON' || fail "a page shows what is not run"
import re
import sys

FOLDER = "tests/porting/"
PLAIN = re.compile(r'[\w.+=#"\-]+( = [\w"\[\]=]+)?')  # names, options, fields of the build rule


def words(text):
    return re.sub(r"\s+|rig->|rig\.", "", text)  # of the tests' rig


# CUDA's names in the rows about device code that device.cu and sub_groups.cu have not, with the reason.
WITHOUT = {
    "__host__": "a header", "cooperative_groups": "host_test.c has a barrier of the grid",
    "_system": "of several devices", "use_fast_math": "an option of nvcc",
    "__hadd": "of uint: __uhadd", "__rhadd": "of uint: __urhadd", "make_float4": "make_uint4",
    "__nv_bfloat16": "in integers", "printf": "writes no results",
    "__brev": "no counterpart", "__byte_perm": "no counterpart", "clock64": "no counterpart",
    "wgmma": "a twin",
}

page, opencl = open("docs/porting.md").read(), open("docs/opencl.md").read()
cuda = "".join(open(FOLDER + name).read() for name in ("device.cu", "sub_groups.cu"))
run = words("".join(open(FOLDER + name).read()
                    for name in ("device.cl", "sub_groups.cl", "host.cl", "host_test.c", "opencl_test.c")))
rows = re.findall(r"^\| (.*) \|$", page + opencl, re.M)
checked = 0
for row in rows:
    cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)]
    if len(cells) < 2 or cells[0] in ("CUDA", "OpenCL", "PyTorch", "---"):
        continue
    for code in re.findall(r"`([^`]+)`", cells[1].replace("\\|", "|")):
        if PLAIN.fullmatch(code):
            continue
        checked += 1
        if words(code) not in run:
            print("not run: %s" % code)
            checked = -10000
for row in re.findall(r"^\| (.*) \|$", page.split("## The host")[0], re.M):
    for code in re.findall(r"`([^`]+)`", re.split(r"(?<!\\)\|", row)[0]):
        name = re.search(r"[A-Za-z_]\w*", code)
        if name and name.group() not in WITHOUT and name.group() not in cuda:
            print("not in CUDA C++: %s" % code)
            checked = -10000
drivers = words(open("tests/kernels/compiler_cases.txt").read() +
                open("kernels/drivers/drivers.cl").read())
for block in re.findall(r"^```c\n(.*?)^```$", page, re.S | re.M):
    if words(block) not in drivers:
        print("not run:\n%s" % block)
        checked = -10000
print("%d pieces of code" % checked)
sys.exit(checked < 160)
PYTHON
