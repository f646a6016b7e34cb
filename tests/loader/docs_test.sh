#!/bin/bash
# Checks the pages about modules: their commands are run and their example is built, with the
# system's compiler and the public headers.
. tests/support/shell.sh

program="$PWD/tests/loader/open_and_copy"
tree="$TEST_TMPDIR/tree"
unset WEIR_CONFIG WEIR_BACKEND WEIR_PLUGINS
mkdir -p "$tree/backends"
cp -rL api base docs "$tree/"
mkdir "$tree/backends/null"
for file in backends/null/*; do
    [[ "$file" == *.so ]] || cp -L "$file" "$tree/backends/null/"
done
cp -rL backends/kit "$tree/backends/"
cd "$tree"

# block LANGUAGE PAGE: the contents of the fenced blocks of that language.
block()
{
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{/^\`\`\`/d;p}" "$2"
}

block sh docs/writing-a-backend.md >backend.sh
expect_contains "$(cat backend.sh)" "cp -rL backends/null backends/mine"
expect_status 0 bash -eu backend.sh
export WEIR_MODULE_PATH="$tree"
expect_says 0 "mine: used, $tree/weir_mine.so" "$program" mine
expect_contains "$output" "copied weir"
expect_says 0 "weir_module_query" nm -D --defined-only weir_mine.so
expect_not_contains "$output" "mine_"
expect_status 1 grep -rniw null backends/mine --include=BUILD

# Its excerpts are the null backend's.
block c docs/writing-a-backend.md >excerpts.c
expect_status 0 grep -c . excerpts.c
while IFS= read -r line; do
    cat backends/null/*.[ch] | grep -qxF -- "$line" || fail "not in backends/null: $line"
done <excerpts.c

block c docs/writing-a-plugin.md >copies.c
block sh docs/writing-a-plugin.md >plugin.sh
expect_status 0 bash -eu plugin.sh
expect_says 0 "copies: used, $tree/weir_copies.so" "$program" mine copies
expect_contains "$output" "copies 5 bytes on queue 'queue'"
expect_contains "$output" "copied weir"
expect_status 0 "$program" mine
expect_not_contains "$output" "copies"

# Every slot that the pages name exists.
for slot in program_create device_trim event_wait queue_finish event_query queue_submit host_note; do
    grep -q "(\*$slot)" api/weir/module/module.h || fail "module.h has no slot $slot"
done
