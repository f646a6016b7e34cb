#!/bin/bash
# Every row of docs/memory-model.md names a test, and every test and target that
# the page names exists.
. tests/support/shell.sh

page=docs/memory-model.md

rows=0
while IFS= read -r row; do
    rows=$((rows + 1))
    [[ "$row" =~ \`[A-Z][A-Za-z0-9]*\.[A-Za-z0-9*]+\` ]] || fail "$page: this row names no test: $row"
done < <(grep '^| ' "$page" | grep -v '^| trap \|^| --- ')
[ "$rows" -ge 30 ] || fail "$page: $rows rows were found; has its form changed?"

while read -r name; do
    suite=${name%%.*}
    test=${name#*.}
    [ "$test" = '*' ] && test='[A-Za-z0-9]*'
    grep -qE "^[A-Z_]+\($suite, $test[,)]" \
        tests/conformance/*.c tests/unit/core_*_test.c tests/comm/*_test.c ||
        fail "$page names $name, and there is no such test"
done < <(grep -o '`[A-Z][A-Za-z0-9]*\.[A-Za-z0-9*]*`' "$page" | tr -d '`' | sort -u)

while read -r target; do
    grep -q "\"${target#conformance_}\"" tests/conformance/BUILD ||
        fail "$page names the target $target, and there is no such target"
done < <(grep -o '`conformance_[a-z_]*`' "$page" | tr -d '`')
