#!/bin/bash
# Unpacks packages of another suite of Debian, with all that they depend on, into a root folder.
set -eu

if [ "${1-}" = --help ] || [ $# -lt 3 ]; then
    cat <<'TEXT'
usage: tools/opencl/unpack_suite.sh FOLDER SUITE PACKAGE...

Downloads PACKAGEs of SUITE and all that they depend on with apt-get, from the system's mirror, and
unpacks them into FOLDER/root. Neither the system's packages nor its lists of packages are touched.
What FOLDER has already is not downloaded again. Needs no privileges.
TEXT
    exit 0
fi

mkdir -p "$1"
folder="$(cd "$1" && pwd)"
suite="$2"
shift 2

# shellcheck disable=SC2016 # apt-get expands it
mirror="$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Label: Debian' | head -n 1)"
mkdir -p "$folder"/none "$folder"/lists/partial "$folder"/cache/archives/partial "$folder"/root/usr
: >"$folder/status"
# A mirror that is not renewed any more still has drivers to test with.
cat >"$folder/sources.list" <<TEXT
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg check-valid-until=no] ${mirror:-http://deb.debian.org/debian} $suite main
TEXT
# Without Dir::Etc::Parts the system's own settings hold, such as its proxy.
cat >"$folder/apt.conf" <<TEXT
Dir::Etc::SourceList "$folder/sources.list";
Dir::Etc::SourceParts "$folder/none";
Dir::State::Lists "$folder/lists";
Dir::State::Status "$folder/status";
Dir::Cache "$folder/cache";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
Acquire::Languages "none";
Debug::NoLocking "true";
TEXT
export APT_CONFIG="$folder/apt.conf"
apt-get update
apt-get install --yes --download-only "$@"

# As base-files has them.
for name in bin sbin lib lib64; do
    mkdir -p "$folder/root/usr/$name"
    ln -sfn "usr/$name" "$folder/root/$name"
done
for package in "$folder"/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$folder/root"
done
rm -r "$folder/lists" "$folder/cache"
