#!/bin/bash
# docs/writing-a-backend.md with the archive and the system's compiler alone: a copy of the null
# backend conforms, alone, under a plugin, and with a driver's library and the kit.
. tests/dist/dist.sh
need cc
weir="$TEST_TMPDIR/weir"
unpack "$weir"
mkdir "$TEST_TMPDIR/work"
cd "$TEST_TMPDIR/work"

{
    printf 'set -eu\nweir=%q\n' "$weir"
    block bash 1 writing-a-backend.md
    block bash 2 writing-a-backend.md
} >walk.sh
expect_status 0 bash walk.sh
[ "$(grep -c ' passed' <<<"$output")" -ge 3 ] || fail "not three runs passed: $output"
expect_contains "$output" "mine device 0"
expect_prints weir_module_query exports weir_mine.so

# Without its driver it names the library and the remedy.
export WEIR_MODULE_PATH="$PWD" WEIR_BACKEND=mine MINE_LIBRARY=libnone.so.1
expect_says 3 "libnone.so.1" "$weir/bin/weir" conform --filter 'Copy*'
expect_contains "$output" "install the package of the driver"
