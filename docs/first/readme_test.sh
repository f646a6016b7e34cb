#!/usr/bin/env bash
# The first program in the README is the one that is built and run, and the code in docs/kernels.md
# is built.
. tests/support/shell.sh

# block FILE: the README's code block that begins after the line with `FILE`.
block()
{
    awk -v name="\`$1\`" 'index($0, name) == 1 { found = 1 } found && /^```$/ { exit }
        shown { print } found && /^```c$/ { shown = 1 }' README.md
}

for file in scale.cl first.c; do
    diff <(block "$file") "docs/first/$file" || fail "README.md shows another $file"
done

# cpp NUMBER: that code block of docs/cpp.md.
cpp()
{
    awk -v wanted="$1" '/^```$/ { shown = 0 } shown { print }
        /^```cpp$/ && ++count == wanted { shown = 1 }' docs/cpp.md
}
diff <(cpp 1) docs/first/first.cc || fail "docs/cpp.md shows another first.cc"
diff <(cpp 2) docs/first/overlap.cc || fail "docs/cpp.md shows another overlap.cc"

python3 - <<'PYTHON' || fail "docs/kernels.md shows what is not built"
import re
import sys

blocks = re.findall(r"^```c\n(.*?)^```$", open("docs/kernels.md").read(), re.S | re.M)
built = open("docs/first/tone.cl").read(), open("docs/first/outside.c").read()
other = [block for block in blocks if not any(block in text for text in built)]
print("".join(other))
sys.exit(bool(other) or len(blocks) < 3)
PYTHON
