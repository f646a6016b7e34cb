# shellcheck shell=bash
# Sourced by the tests of the Debian packages, from the root of the runfiles.
. tests/dist/dist.sh

export PATH="$PATH:/usr/sbin:/sbin"
debian="$root/dist/debian"
mapfile -t packages < <(sed -n 's/^Package: //p' "$debian/control" | sort)

# package NAME: its file.
package()
{
    echo "$debian/$1_${version}_"*.deb
}
