#!/bin/bash
# The Debian packages in a system with nothing but Debian's essential packages and apt: installed from
# a signed folder of tools/deb/repository.sh, used, upgraded and purged. What a package needs and does
# not declare is missing there.
. tests/dist/deb.sh

# bare_system makes a bare system: the essential packages of Debian and apt, from the mirror of this machine. It is kept
# for a week in /var/tmp, with the packages that the test wants to install in it, so that further runs need no network.

# What its packages need of others, and what a programmer installs.
readonly tools=(g++ libc6-dev man-db pkg-config)
wanted()
{
    local name
    printf '%s\n' "${tools[@]}"
    for name in "${packages[@]}"; do
        dpkg-deb --field "$(package "$name")" Depends | tr ',' '\n'
    done | sed 's/^ *//; s/[ |].*//' | grep -vxF -f <(printf '%s\n' "${packages[@]}") | sort -u
}

# The settings of this machine's apt for the way to its mirror.
proxies()
{
    apt-config dump | grep -E '^Acquire::(http|https)::' || true
}

# bare_system FILE: makes the archive FILE.
bare_system()
{
    local mirror
    # shellcheck disable=SC2016 # apt-get expands it
    mirror="$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Label: Debian' | head -n 1)"
    mirror="${mirror:-http://deb.debian.org/debian}"
    /usr/lib/apt/apt-helper download-file "${mirror%/}/dists/bookworm/InRelease" \
        "$TEST_TMPDIR/InRelease" >/dev/null 2>&1 ||
        skip mirror "no mirror of Debian is reached, of whose packages a bare system is made"
    proxies >"$TEST_TMPDIR/proxies"
    mapfile -t list < <(wanted)
    expect_status 0 mmdebstrap --mode=root --variant=apt --skip=cleanup/apt --format=tar \
        --aptopt='Acquire::Languages "none"' --aptopt="$TEST_TMPDIR/proxies" \
        --customize-hook="chroot \"\$1\" apt-get -q -y --no-install-recommends --download-only install ${list[*]}" \
        bookworm "$1.new" "deb ${mirror%/} bookworm main"
    mv "$1.new" "$1"
}

# bare_archive: leaves the archive's name in $archive.
bare_archive()
{
    local folder
    folder="/var/tmp/weir-bare-$(id -u)"
    [ -d "$folder" ] || mkdir -m 700 "$folder"
    [ -O "$folder" ] && [ ! -L "$folder" ] || fail "$folder belongs to another user: remove it"
    archive="$folder/$(wanted | sort | md5sum | cut -c 1-12).tar"
    find "$folder" -name '*.tar*' -mtime +6 -delete
    [ -s "$archive" ] || bare_system "$archive"
}
need mmdebstrap unshare dpkg-scanpackages gpg
new="$TEST_TMPDIR/bare"
mkdir -p "$new"
if [ "${1-}" != mounted ]; then
    [ "$(id -u)" -eq 0 ] && unshare -m mount -t tmpfs none "$new" 2>/dev/null ||
        skip mount "a bare system needs root and the right to mount"
    exec unshare -m "$0" mounted
fi
bare_archive
mount -t tmpfs none "$new"
tar -xf "$archive" -C "$new"
for place in dev proc sys; do
    mount --rbind "/$place" "$new/$place"
done
readonly next="$version+next" list=/etc/apt/sources.list.d/weir.list
home="$new/tmp/home"
mkdir "$home"

in_bare()
{
    # shellcheck disable=SC2016
    chroot "$new" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp/home LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive sh -c 'cd "$HOME" && exec "$@"' sh "$@"
}
apt()
{
    in_bare apt-get -q -y --no-install-recommends "$@"
}
# publish FILE...: adds packages to the folder, and apt reads its list again, and no other one.
publish()
{
    expect_status 0 "$root/tools/deb/repository.sh" --key weir-test "$new/srv/weir" "$@"
    install -m 644 "$new/srv/weir/weir.gpg" "$new/usr/share/keyrings/weir.gpg"
    echo 'deb [signed-by=/usr/share/keyrings/weir.gpg] file:/srv/weir ./' >"$new$list"
    expect_status 0 apt -o Dir::Etc::SourceList="$list" -o Dir::Etc::SourceParts=/dev/null \
        -o APT::Get::List-Cleanup=0 update
}
# state: all files but apt's and dpkg's own and the caches, and all packages.
state()
{
    (cd "$new" && find . -xdev \( -path ./tmp -o -path ./srv -o -path ./var/cache -o -path ./var/log \
        -o -path ./var/lib/apt -o -path ./var/lib/dpkg \) -prune -o ! -name ld.so.cache \
        -printf '%p %y %m %l\n' | sort)
    find "$new/etc" -type f ! -name ld.so.cache -exec md5sum {} + | sort
    dpkg-query --admindir="$new/var/lib/dpkg" -W -f '${Package} ${Version} ${Status}\n'
}
# purge: nothing of the packages, and of what came with them, stays.
purge()
{
    expect_status 0 apt --purge --autoremove purge "${packages[@]}"
    state >"$TEST_TMPDIR/after"
    diff "$TEST_TMPDIR/before" "$TEST_TMPDIR/after" || fail "this differs after the purge"
}
# complete: every program and library of the packages finds all that it is linked with.
complete()
{
    local file missing
    for file in /usr/bin/weir /usr/libexec/weir/conformance /usr/libexec/weir/compare \
        /usr/lib/x86_64-linux-gnu/libweir.so.0 "$new"/usr/lib/x86_64-linux-gnu/weir/*.so; do
        missing="$(in_bare ldd "${file#"$new"}" | grep 'not found' || true)"
        [ -z "$missing" ] || fail "${file#"$new"}: $missing"
    done
}
# are VERSION: all packages are installed, in that version.
are()
{
    local name
    for name in "${packages[@]}"; do
        output="$(dpkg-query --admindir="$new/var/lib/dpkg" -W -f '${Status} ${Version}' "$name")"
        [ "$output" = "install ok installed $1" ] || fail "$name is: $output"
    done
}

GNUPGHOME="$(mktemp -d /tmp/weir-gpg.XXXXXX)"
export GNUPGHOME
trap 'gpgconf --kill all; rm -rf "$GNUPGHOME"' EXIT
expect_status 0 gpg --batch --quiet --passphrase '' --quick-generate-key weir-test ed25519 sign never
publish "$debian"/*.deb
state >"$TEST_TMPDIR/before"

# The system is bare: without what they declare the packages do not run in it.
in_srv() { in_bare sh -c "cd /srv/weir && exec $*"; }
expect_status 0 in_srv dpkg --force-depends --install "libweir0_*.deb" "weir_*.deb"
expect_says 127 "error while loading shared libraries" in_bare weir --version
expect_status 0 in_bare dpkg --purge weir libweir0

# The command alone, and then with the backends.
expect_status 0 apt install weir
complete
expect_prints "weir $version" in_bare weir --version
expect_says 3 "null is used" in_bare env WEIR_BACKEND=null weir doctor
expect_contains "$output" "1 problem" # the null backend runs no kernels
expect_says 0 "0 failed" in_bare weir conform --backend null --filter 'Copy.*'
expect_says 3 "no weir_opencl.so" in_bare env WEIR_BACKEND=opencl weir doctor
expect_contains "$output" "install the package weir-opencl, or set module_path"
expect_status 0 apt install "${packages[@]}"
are "$version"
complete
expect_says 3 "pocl-opencl-icd" in_bare env WEIR_BACKEND=opencl weir doctor
expect_says 3 "libcuda.so.1" in_bare env WEIR_BACKEND=cuda weir doctor
[ -s "$new/usr/share/doc/weir-doc/docs/install.md" ] || fail "weir-doc has no pages"

# The next version, which has one page fewer and one more.
mkdir "$TEST_TMPDIR/next"
for name in "${packages[@]}"; do
    changed="$TEST_TMPDIR/changed/$name"
    mkdir -p "${changed%/*}"
    dpkg-deb -R "$(package "$name")" "$changed"
    sed -i "s/^Version: .*/Version: $next/; s/(= $version)/(= $next)/" "$changed/DEBIAN/control"
    [ "$name" != weir-doc ] || mv "$changed/usr/share/doc/weir-doc/docs/"{install,installing}.md
    dpkg-deb --root-owner-group -Znone --build "$changed" "$TEST_TMPDIR/next/" >/dev/null
done
publish "$TEST_TMPDIR/next"/*.deb
expect_status 0 apt upgrade
are "$next"
complete
expect_status 0 in_bare weir conform --backend null --filter 'Copy.*'
[ -s "$new/usr/share/doc/weir-doc/docs/installing.md" ] || fail "the upgrade brought no new page"
[ ! -e "$new/usr/share/doc/weir-doc/docs/install.md" ] || fail "the upgrade left an old page"
purge

# A programmer's system, with Debian's compiler.
expect_status 0 apt install "${tools[@]}"
state >"$TEST_TMPDIR/before"
expect_status 0 apt install libweir-dev weir
block c 1 >"$home/first.c"
# shellcheck disable=SC2016
expect_status 0 in_bare sh -c 'cc -std=c11 -Wall -Wextra -Wpedantic -Werror first.c -o first $(pkg-config --cflags --libs weir)'
expect_prints "Weir $version, backend null" in_bare ./first
expect_status 0 in_bare env WEIR_BACKEND=null weir check ./first
purge
