#!/usr/bin/env bash
# What the README shows of the first program is what is built and run.
. tests/support/shell.sh

# block FILE: the README's code block that begins behind the line with `FILE`.
block()
{
    awk -v name="\`$1\`" 'index($0, name) == 1 { found = 1 } found && /^```$/ { exit }
        shown { print } found && /^```c$/ { shown = 1 }' README.md
}

for file in scale.cl first.c; do
    diff <(block "$file") "docs/first/$file" || fail "README.md shows another $file"
done
# Every file that the README links to is there, in the tree that README.md is of.
root=$(dirname "$(readlink -f README.md)")
while read -r link; do
    [ -e "$root/$link" ] || fail "README.md links to $link, which is not there"
done < <(grep -oE '\]\([a-zA-Z0-9_./-]+\)' README.md | tr -d ']()')
