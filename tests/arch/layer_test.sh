#!/bin/bash
# layer_test.sh QUERY FOLDER ALLOWED [EXPECTED]: QUERY's lines are the targets that FOLDER depends
# on but must not. There must be none, or EXPECTED among them.

set -eu

query="$1" folder="$2" allowed="$3" expected="${4-}"

if [ -n "$expected" ]; then
    sed 's,^@@[^/]*[~+]\([^~+/]*\)//,@\1//,' "$query" | grep -qxF -e "$expected" && exit 0
    echo "$folder uses $expected, and the query did not find it. It found:"
    cat "$query"
    exit 1
fi

[ -s "$query" ] || exit 0
echo "$folder/ may use $allowed, but depends on:"
sed 's/^/    /' "$query"
echo "Break the dependency, or, when the map is wrong, change tests/arch/map.bzl with a reason."
exit 1
