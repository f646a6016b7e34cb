#!/bin/bash
# The sizes of Debian packages, as the table of docs/install.md.

set -eu
export LC_ALL=C

if [ "${1-}" = --help ] || [ "$#" -eq 0 ]; then
    cat <<'TEXT'
usage: tools/deb/sizes.sh PACKAGE.deb...

Prints a table of the packages: the size of the file, and what it takes when it
is installed, as its field Installed-Size says.
TEXT
    [ "$#" -ne 0 ] && exit 0
    exit 2
fi

echo "| package | file, MB | installed, MB |"
echo "| --- | --- | --- |"
for file in "$@"; do
    installed="$(dpkg-deb --field "$file" Installed-Size)" || exit 1
    awk -v name="$(dpkg-deb --field "$file" Package)" -v bytes="$(stat -Lc %s "$file")" \
        -v kib="$installed" \
        'BEGIN { printf "| `%s` | %.2f | %.2f |\n", name, bytes / 1e6, kib * 1024 / 1e6 }'
done
