# shellcheck shell=bash
# Sourced by the test of the packages in a bare system. bare_system makes one: the essential packages
# of Debian and apt, from the mirror of this machine. It is kept for a week in /var/tmp, with the
# packages that the test wants to install in it, so that further runs need no network.

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
