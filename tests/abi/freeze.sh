#!/bin/bash
# Freezes the public headers, and the sources of two modules with them, as they are now. For a
# release, and for a deliberate change of the ABI: docs/decisions/0011-sizes-of-structures.md.

set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly frozen=tests/abi/frozen

rm -rf "$frozen"
mkdir -p "$frozen/api" "$frozen/null" "$frozen/count"
cp -r api/weir "$frozen/api/"
# What a module links statically is no interface.
rm -r "$frozen/api/weir/kit"
cp backends/null/*.[ch] "$frozen/null/"
cp tests/plugins/count/*.c "$frozen/count/"
sed -i "s|^#include \"backends/|#include \"$frozen/|" "$frozen"/null/*.[ch]
