#!/bin/bash
# examples_test.sh PYTHON: the seeds' loops. Each broken one is found, with the lines and the words that stand at its end,
# and nothing else; each mended one is silent and right; both differ in the missing wait only.
. tests/support/shell.sh

python="$1"
weir="$PWD/cli/weir"
tree="$PWD"
unset WEIR_CONFIG WEIR_PLUGINS WEIR_OPENCL_DRIVER
export PYTHONPATH="$PWD/python/package" PYTHONDONTWRITEBYTECODE=1 WEIR_BACKEND=opencl POCL_DEVICES=pthread
cp -L python/examples/*.py "$TEST_TMPDIR/"
cd "$TEST_TMPDIR"
count=0
for broken in *_broken.py; do
    mended="${broken%_broken.py}.py"
    expect_status 0 "$weir" check "$python" "$mended"
    expect_contains "$output" "wrong: 0"
    expect_contains "$output" "nothing was found"
    expect_status 1 "$weir" check "$python" "$broken"
    # The text has the whole path of the file, as Python names it, and the finding's count may differ.
    sed -n '/^# weir check/,$s/^# \{0,1\}//p' "$broken" | sed 1,2d | grep -v ' times\?$' >wanted
    grep -c . wanted >/dev/null || fail "$broken does not say what check finds"
    while IFS= read -r line; do
        expect_contains "${output//$PWD\//}" "$line"
    done <wanted
    wanted_findings="$(grep -c '^  to do:' wanted || true)"
    expect_contains "$output" "$wanted_findings finding"
    lines="$(diff <(sed '/^# weir check/,$d' "$broken") "$mended" | grep -c '^[<>] *[^ ]')"
    [ "$lines" -le 10 ] || fail "$broken and $mended differ in $lines lines"
    count=$((count + 1))
done
[ "$count" -eq 9 ] || fail "$count loops, not 9"

# The rows of docs/python.md: each is a line of rows.py, which runs.
cp -L "$tree/python/tests/rows.py" .
expect_status 0 "$python" rows.py
grep -q '^| ' "$tree/docs/python.md" || fail "docs/python.md has no table"
sed -n '/^## Coming from torch.cuda/,$p' "$tree/docs/python.md" | grep '^| `' | awk -F' \\| ' '{ print $2 }' |
    grep -o '`[^`]*`' | tr -d '`' >calls
grep -c . calls >/dev/null || fail "docs/python.md has no row of torch.cuda"
while IFS= read -r line; do
    grep -qF -- "$line" rows.py || fail "docs/python.md: '$line' is not in python/tests/rows.py"
done <calls
