#!/bin/bash
# docs/check.md: its program is the one that is built, its mend leads to the mended one, and `weir
# check` says of both what the page says.
. tests/support/shell.sh

# block LANGUAGE [NUMBER [PAGE]]: that block of the page in that language; "" for one without.
block()
{
    awk -v fence="\`\`\`$1" -v wanted="${2-1}" '
        /^```/ && inside { exit }
        inside { print }
        $0 == fence && !outside && ++count == wanted { inside = 1 }
        /^```/ { outside = !outside }' "${3-docs/check.md}"
}
block "c whole" >"$TEST_TMPDIR/frames.c"
expect_status 0 diff "$TEST_TMPDIR/frames.c" tests/plugins/check/frames.c
block diff >"$TEST_TMPDIR/mend.diff"
cp tests/plugins/check/frames_mended.c "$TEST_TMPDIR"
page="$(block "")"
reversed="$(block "" 2)"
[ -n "$page" ] && [ -n "$reversed" ] || fail "docs/check.md shows no findings"

export WEIR_MODULE_PATH="$PWD/lib/weir" WEIR_BACKEND=null
docs="$PWD/docs/check.md" weir="$PWD/cli/weir" frames="$PWD/tests/plugins/check/frames" tiles="$PWD/tests/plugins/check/tiles"
cd "$TEST_TMPDIR"
expect_status 0 patch -s frames.c mend.diff
expect_status 0 diff frames.c frames_mended.c
expect_status 1 "$weir" check "$frames"
expect_contains "${output//tests\/plugins\/check\//}" "$page"
expect_contains "$output" "0 wrong bytes"
expect_status 1 "$weir" check --demonstrate "$frames"
expect_contains "${output//tests\/plugins\/check\//}" "$reversed"

# What kernels do: the parts of the program are in it, and the finding is the page's.
for part in 1 2; do
    python3 -c 'import sys; sys.exit(sys.argv[1] not in open(sys.argv[2]).read())' "$(block c "$part" "$docs")" "$tiles.c" ||
        fail "part $part of docs/check.md is not in tiles.c"
done
export POCL_DEVICES=basic
expect_status 1 env WEIR_BACKEND=opencl "$weir" check --verify "$tiles"
expect_contains "${output//tests\/plugins\/check\//}" "$(block "" 3 "$docs")"
expect_contains "$output" "64 wrong pixels"
expect_status 0 env WEIR_BACKEND=opencl "$weir" check "$tiles"
expect_contains "$output" "nothing was found"

# Every key of the JSON is on the page.
"$weir" check --json "$frames" 2>/dev/null | python3 -c '
import json, sys
page = open(sys.argv[1]).read()
keys = set()
def visit(value):
    if isinstance(value, dict):
        keys.update(value)
        for each in value.values():
            visit(each)
    elif isinstance(value, list):
        for each in value:
            visit(each)
visit(json.load(sys.stdin))
missing = sorted(key for key in keys if "`%s`" % key not in page)
sys.exit("not on the page: %s" % missing if missing or len(keys) < 25 else 0)
' "$docs" || fail "docs/check.md does not explain the JSON"
expect_status 0 "$weir" check "${frames}_mended"
expect_contains "$output" "nothing was found"
expect_contains "$output" "0 wrong bytes"
