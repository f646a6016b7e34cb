#!/bin/bash
# docs/writing-a-backend.md from the copy to a backend that conforms, with the archive and the
# system's compiler alone.
. tests/dist/dist.sh
need cc
page="$root/docs/writing-a-backend.md"
weir="$TEST_TMPDIR/weir"
unpack "$weir"
tarn="$root/tests/support/libtarn"
export LD_LIBRARY_PATH="$tarn" XDG_CACHE_HOME="$TEST_TMPDIR/cache"
mkdir "$TEST_TMPDIR/work"
cd "$TEST_TMPDIR/work"

# bash_block NUMBER: that block of the page.
bash_block()
{
    awk -v wanted="$1" '/^```$/ { shown = 0 } shown { print }
        $0 == "```bash" && ++count == wanted { shown = 1 }' "$page" | grep . ||
        fail "the page has no block $1 in bash"
}

# conformed: of the summary in $output, the tests that passed.
conformed()
{
    printf '%s\n' "$output" | sed -n 's/^\([0-9]*\) passed.*/\1/p; s/.* \([0-9]*\) passed.*/\1/p' |
        head -n 1
}

{
    echo "set -eu"
    printf 'weir=%q\ntarn=%q\n' "$weir" "$tarn"
    bash_block 1
    bash_block 2
} >copy.sh
expect_status 0 bash copy.sh
copied="$(conformed)"
{
    sed '/conform$/d' copy.sh
    bash_block 3
} >finished.sh
rm -r backends
expect_status 0 bash finished.sh
finished="$(conformed)"
[ "$finished" -gt "$copied" ] || fail "the copy passes $copied tests, and Tarn $finished"
expect_contains "$output" "Tarn 0"
exported="$(nm -D --defined-only weir_tarn.so | awk '{ print $3 }' |
    grep -v -x '__bss_start\|_edata\|_end')"
[ "$exported" = weir_module_query ] || fail "weir_tarn.so exports $exported"

# What the page shows is what was built, and its numbers are true.
cat backends/tarn/*.c >sources
python3 - "$page" sources <<'PYTHON'
import re, sys
page = open(sys.argv[1], encoding="utf-8").read()
sources = open(sys.argv[2], encoding="utf-8").read()
blocks = re.findall(r"^```c\n(.*?)^```$", page, re.M | re.S)
assert len(blocks) >= 6, len(blocks)
for block in blocks:
    for function in block.strip("\n").split("\n\n"):
        assert function in sources, "not in the sources:\n" + function
PYTHON
lines="$(cat backends/tarn/*.[ch] | wc -l)"
grep -q "backend has $lines lines" "$page" || fail "the backend has $lines lines"
