#!/bin/bash
# tools/deb/repository.sh: apt reads the folder that it makes, signed and not, and refuses one that
# was changed afterwards.
. tests/dist/deb.sh
need apt-get dpkg-scanpackages gpg
repository="$root/tools/deb/repository.sh"
cd "$TEST_TMPDIR"
folder="$TEST_TMPDIR/with space/packages"
# Not below TEST_TMPDIR: the agent's socket wants a short name.
GNUPGHOME="$(mktemp -d /tmp/weir-gpg.XXXXXX)"
export GNUPGHOME
trap 'gpgconf --kill all; rm -rf "$GNUPGHOME"' EXIT

# apt COMMAND...: apt-get with a state of its own and one source, as this user.
apt()
{
    apt-get -q -o Dir::State="$PWD/state" -o Dir::Cache="$PWD/cache" -o Dir::Etc="$PWD/etc" \
        -o Dir::State::status="$PWD/state/status" -o APT::Sandbox::User="$(id -un)" \
        -o Acquire::AllowInsecureRepositories=false -o Debug::NoLocking=true "$@"
}
source_is()
{
    rm -rf state cache etc
    mkdir -p state/lists/partial cache/archives/partial etc/sources.list.d etc/preferences.d \
        etc/apt.conf.d etc/trusted.gpg.d
    touch state/status
    printf 'deb [%s] file:%s ./\n' "$1" "${folder// /%20}" >etc/sources.list
}

expect_says 0 "6 packages, not signed" "$repository" "$folder" "$debian"/*.deb
source_is "trusted=yes"
expect_status 0 apt update
expect_status 0 apt download weir libweir0
cmp "weir_${version}_amd64.deb" "$(package weir)"
source_is "signed-by=$PWD/none.gpg"
expect_status 100 apt update

# Signed.
gpg --batch --quiet --passphrase '' --quick-generate-key weir-test ed25519 sign never 2>key.messages ||
    fail "$(cat key.messages)"
expect_says 0 "6 packages, signed with weir-test" "$repository" --key weir-test "$folder"
cp "$folder/weir.gpg" key.gpg
source_is "signed-by=$PWD/key.gpg"
expect_status 0 apt update
expect_status 0 apt download weir-doc
cmp "weir-doc_${version}_all.deb" "$(package weir-doc)"

# Its index was changed by another hand.
cp -r "$folder" kept
printf '\n' >>"$folder/Packages"
rm "$folder/Packages.xz"
source_is "signed-by=$PWD/key.gpg"
expect_status 100 apt update

# What is refused leaves the folder as it was.
rm -rf "$folder"
cp -r kept "$folder"
echo none >no.deb
expect_says 1 "no.deb is no Debian package" "$repository" "$folder" no.deb
expect_says 1 "gpg has no secret key" "$repository" --key no-such-key "$folder" "$(package weir)"
expect_says 1 "has no packages" "$repository" "$TEST_TMPDIR/empty"
expect_says 2 "needs the folder" "$repository"
expect_says 2 "there is no option '--kye'" "$repository" --kye x "$folder"
expect_status 2 "$repository" --key
expect_status 0 "$repository" --help
diff -r kept "$folder"
