#!/bin/bash
# archive.sh OUT FOLDER MANIFEST
#
# Makes a .tar.gz of the files that a manifest lists, which depends on their contents and places alone: entries are
# sorted, have one date and one owner, and folders are entries too.
#
# Each line of the manifest is "file SOURCE PLACE" or "link TARGET PLACE"; places are below FOLDER, which may be empty.
set -euo pipefail
export LC_ALL=C
umask 022

fail()
{
    echo "archive: $*" >&2
    exit 1
}

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
while read -r kind source place; do
    path="$work/${2:+$2/}$place"
    [ ! -e "$path" ] && [ ! -L "$path" ] || fail "$source and another file both go to $place"
    mkdir -p "${path%/*}"
    if [ "$kind" = link ]; then
        ln -s "$source" "$path"
        continue
    fi
    mode=644
    read -r -a begin < <(od -An -v -tx1 -N20 -w20 "$source") || true
    case "${begin[*]:0:4}" in
    "7f 45 4c 46")
        [ "${begin[*]:18:2}" = "3e 00" ] || fail "$source is not for x86-64, which the archive's name promises"
        [[ "${path##*/}" == *.so* ]] || mode=755
        ;;
    "23 21 "*) [[ "${path##*/}" == *.so* ]] || mode=755 ;;
    esac
    install -m "$mode" "$source" "$path"
done <"$3"
# tar warns of files from 1970.
find "$work" -mindepth 1 -printf '%P\n' | sort |
    tar -C "$work" -c --no-recursion --format=gnu --mtime='2000-01-01 UTC' --owner=root:0 --group=root:0 -T - |
    gzip -9n >"$1"
