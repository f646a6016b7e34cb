#!/bin/bash
# Makes the Debian packages of debian/control from the delivered archives, with the tools of the
# package dpkg-dev.
#
# usage: build.sh OUT CONTROL NOTICES ARCHIVE... -- SOURCE=PLACE...
#
# OUT is the folder for the packages, CONTROL a file beside the others of this folder, NOTICES the
# file with the licences of the libraries that are linked in. Each SOURCE takes the place of the
# archives' file PLACE, such as bin/weir. The bytes of the packages depend on the files alone.

set -eu
export LC_ALL=C TZ=UTC
umask 022

fail()
{
    echo "deb: $*" >&2
    exit 1
}

for tool in dpkg-deb dpkg-shlibdeps dpkg-gensymbols dpkg-gencontrol dpkg-parsechangelog; do
    command -v "$tool" >/dev/null || fail "$tool is missing; install the packages dpkg and dpkg-dev"
done

# Packages whose files contain code of other libraries.
readonly with_notices=" libweir-dev weir "

out="$(realpath "$1")"
debian="$(dirname "$(realpath "$2")")"
notices="$(realpath "$3")"
shift 3
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

mkdir "$work/tmp" "$work/debian"
while [ "$1" != -- ]; do
    tar -xzf "$1" --strip-components=1 -C "$work/tmp"
    shift
done
shift
for pair in "$@"; do
    [ -e "$work/tmp/${pair#*=}" ] || fail "no archive has ${pair#*=}, which is to be replaced"
    install -m "$(stat -c %a "$work/tmp/${pair#*=}")" "${pair%%=*}" "$work/tmp/${pair#*=}"
done
cp -L "$debian"/* "$work/debian/"
cd "$work"
version="$(dpkg-parsechangelog -SVersion)"
SOURCE_DATE_EPOCH="$(dpkg-parsechangelog -STimestamp)"
export SOURCE_DATE_EPOCH

# is_elf FILE
is_elf()
{
    [ "$(head -c 4 "$1" | od -An -tx1 | tr -d ' ')" = 7f454c46 ]
}

# What a .install file names, a pattern of another one leaves to it.
named="$(sed 's/ .*//' debian/*.install)"

# stage PACKAGE: puts its files in place, as debian/PACKAGE.install and .links name them.
stage()
{
    local source place file target
    while read -r source place; do
        mkdir -p "$1/$place"
        # shellcheck disable=SC2086
        for file in tmp/$source; do
            [ -e "$file" ] || fail "$1.install names $source, and there is none"
            [[ "$source" == "${file#tmp/}" ]] || ! grep -qxF -e "${file#tmp/}" <<<"$named" || continue
            cp -a "$file" "$1/$place/"
            find "$file" -type f -o -type l | sed 's|^tmp/||' >>taken
        done
    done <"debian/$1.install"
    [ -f "debian/$1.links" ] || return 0
    while read -r target place; do
        mkdir -p "$1/$(dirname "$place")"
        ln -s "$target" "$1/$place"
    done <"debian/$1.links"
}

# document PACKAGE: copyright, changelog and lintian's overrides, and compressed manual pages.
document()
{
    local folder="$1/usr/share/doc/$1"
    mkdir -p "$folder"
    cp debian/copyright "$folder/"
    [[ "$with_notices" != *" $1 "* ]] || {
        printf '\nThe libraries that are linked into files of this package:\n\n'
        cat "$notices"
    } >>"$folder/copyright"
    gzip -9nc debian/changelog >"$folder/changelog.gz"
    if [ -f "debian/$1.lintian-overrides" ]; then
        install -D -m 644 "debian/$1.lintian-overrides" "$1/usr/share/lintian/overrides/$1"
    fi
    find "$1" -path '*/man/*' -type f -exec gzip -9n {} +
}

# slim PACKAGE: removes what only a debugger reads.
slim()
{
    local file
    while IFS= read -r file; do
        case "$file" in
        *.a) strip --strip-debug -R .comment --enable-deterministic-archives "$file" ;;
        *) ! is_elf "$file" || strip --strip-unneeded -R .comment -R .note "$file" ;;
        esac
    done < <(find "$1" -type f)
}

# describe PACKAGE: DEBIAN/, with what the files need of other packages.
describe()
{
    local file elf=()
    while IFS= read -r file; do
        ! is_elf "$file" || elf+=("$file")
    done < <(find "$1" -type f)
    mkdir -p "$1/DEBIAN"
    : >"debian/$1.substvars"
    if [ -f "debian/$1.symbols" ]; then
        dpkg-gensymbols -q -c4 -p"$1" -P"$1" -I"debian/$1.symbols"
        echo "libweir 0 libweir0 (>= $version)" >"$1/DEBIAN/shlibs"
        echo "activate-noawait ldconfig" >"$1/DEBIAN/triggers"
    fi
    [ "${#elf[@]}" -eq 0 ] || dpkg-shlibdeps --warnings=0 -T"debian/$1.substvars" "${elf[@]}"
    dpkg-gencontrol -p"$1" -P"$1" -T"debian/$1.substvars" 2>gencontrol.messages ||
        fail "$(cat gencontrol.messages)"
    (cd "$1" && find . -path ./DEBIAN -prune -o -type f -print0 | sort -z |
        xargs -0 md5sum | sed 's|  \./|  |') >"$1/DEBIAN/md5sums"
}

# pack PACKAGE
pack()
{
    find "$1" -type d -exec chmod 755 {} +
    find "$1" -type f -exec chmod u+w,go-w {} +
    find "$1" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
    # One thread: with several, what xz makes depends on the memory of the machine.
    dpkg-deb --root-owner-group -Zxz --threads-max=1 --build "$1" "$out/" >/dev/null
}

packages="$(sed -n 's/^Package: //p' debian/control)"
for package in $packages; do
    stage "$package"
done
left="$(find tmp ! -type d | sed 's|^tmp/||' | sort | comm -23 - <(sort -u taken debian/not-installed))"
[ -z "$left" ] || fail "no package has these files of the archives; name each in a .install file of" \
    "dist/debian, or in not-installed: $left"
for package in $packages; do
    document "$package"
    slim "$package"
    describe "$package"
    pack "$package"
done
