#!/usr/bin/env bash
# The programs in the README are those that are built and run, its finding is that of docs/check.md, and the code in
# docs/cpp.md and docs/kernels.md is built.
. tests/support/shell.sh

# block FILE: the README's code block that begins after the line with `FILE`.
block()
{
    awk -v name="\`$1\`" 'index($0, name) { found = 1 } found && shown && /^```$/ { exit }
        shown { print } found && /^```c(pp)?$/ { shown = 1 }' README.md
}

for file in scale.cl first.c first.cc; do
    diff <(block "$file") "docs/first/$file" || fail "README.md shows another $file"
done

# within NUMBER FILE: that code block of the README is a part of the file.
within()
{
    python3 - "$@" <<'PYTHON'
import re
import sys

blocks = re.findall(r"^```c?\n(.*?)^```$", open("README.md").read(), re.S | re.M)
sys.exit(blocks[int(sys.argv[1])] not in open(sys.argv[2]).read())
PYTHON
}
within 0 tests/plugins/check/frames.c || fail "README.md shows another loop than frames.c"
within 1 docs/check.md || fail "README.md shows another finding than docs/check.md"

python3 - <<'PYTHON' || fail "a page shows what is not built"
import re
import sys

blocks = re.findall(r"^```c\n(.*?)^```$", open("docs/kernels.md").read(), re.S | re.M)
built = [open("docs/programs/tone.cl").read(), open("docs/programs/outside.c").read(), open("tests/kernels/images.cl").read()]
# As in images_test.c, but for the check of a status and what it does to the lines.
built.append(open("tests/kernels/images_test.c").read().replace("EXPECT_OK(", "WEIR_CHECK("))
other = [block for block in blocks if not any("".join(block.split()) in "".join(text.split()) for text in built)]
overlap = open("docs/programs/overlap.cc").read()
parts = re.findall(r"^```cpp\n(.*?)^```$", open("docs/cpp.md").read(), re.S | re.M)
other += [part for part in parts if part not in overlap]
print("".join(other))
sys.exit(bool(other) or len(blocks) < 3 or len(parts) != 2)
PYTHON
