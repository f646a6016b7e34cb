#!/bin/bash
# Makes a folder from which apt installs packages, for a web server or a disk of one's own.

set -eu
export LC_ALL=C
umask 022

usage()
{
    cat <<'TEXT'
usage: tools/deb/repository.sh [--key KEY] FOLDER [PACKAGE.deb...]

Copies the packages into FOLDER, which is made if missing, and writes its index:
Packages, Packages.xz, Release, and with --key also InRelease, Release.gpg and
the public key, weir.gpg. Older versions in FOLDER stay until they are deleted
there; without a PACKAGE the index is written anew. Needs dpkg-dev, and gpg for
--key.

  --key KEY  sign with this secret key of gpg's: its fingerprint or address
  --help     this text

On a machine that uses it, with a server at https://packages.example.org/weir:

  curl -o /usr/share/keyrings/weir.gpg https://packages.example.org/weir/weir.gpg
  echo 'deb [signed-by=/usr/share/keyrings/weir.gpg] https://packages.example.org/weir ./' \
      >/etc/apt/sources.list.d/weir.list
  apt update && apt install weir

A folder without a signature is used as 'deb [trusted=yes] file:/folder ./'.
TEXT
}

fail()
{
    echo "repository: $*" >&2
    exit "${code:-1}"
}

key=
folder=
packages=()
while [ "$#" -gt 0 ]; do
    case "$1" in
    --help)
        usage
        exit 0
        ;;
    --key)
        [ "$#" -ge 2 ] || code=2 fail "--key needs a value: --key KEY"
        key="$2"
        shift
        ;;
    -*) code=2 fail "there is no option '$1'; --help lists them" ;;
    *)
        if [ -n "$folder" ]; then
            packages+=("$1")
        else
            folder="$1"
        fi
        ;;
    esac
    shift
done
[ -n "$folder" ] || code=2 fail "needs the folder to make: tools/deb/repository.sh FOLDER PACKAGE.deb..."
for tool in dpkg-deb dpkg-scanpackages xz ${key:+gpg}; do
    command -v "$tool" >/dev/null || fail "$tool is missing; install dpkg-dev, xz-utils and gpg"
done

# Everything that can fail does so before anything changes in FOLDER.
for package in "${packages[@]}"; do
    dpkg-deb --info "$package" >/dev/null 2>&1 ||
        fail "$package is no Debian package; \`bazel build //:deb\` makes them in bazel-bin/dist/debian"
done
if [ -n "$key" ]; then
    gpg --batch --list-secret-keys "$key" >/dev/null 2>&1 ||
        fail "gpg has no secret key '$key'; \`gpg --list-secret-keys\` lists those that it has"
fi
mkdir -p "$folder"
new="$(mktemp -d "$folder/.new.XXXXXX")" || fail "$folder cannot be written"
trap 'rm -rf "$new"' EXIT

for package in "${packages[@]}"; do
    name="$(dpkg-deb --show --showformat '${Package}_${Version}_${Architecture}.deb' "$package")"
    install -m 644 "$package" "$new/$name"
    mv "$new/$name" "$folder/"
done
(cd "$folder" && dpkg-scanpackages --multiversion . 2>"$new/messages") >"$new/Packages" ||
    fail "$(cat "$new/messages")"
[ -s "$new/Packages" ] || fail "$folder has no packages; name some: tools/deb/repository.sh $folder PACKAGE.deb..."
xz -9 -k "$new/Packages"

{
    echo "Origin: Weir"
    echo "Label: Weir"
    echo "Date: $(date -u -R -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}")"
    echo "Architectures: $(sed -n 's/^Architecture: //p' "$new/Packages" | sort -u | tr '\n' ' ')"
    echo "SHA256:"
    for file in Packages Packages.xz; do
        printf ' %s %s %s\n' "$(sha256sum <"$new/$file" | cut -d ' ' -f 1)" \
            "$(stat -c %s "$new/$file")" "$file"
    done
} >"$new/Release"
if [ -n "$key" ]; then
    gpg --batch --yes --local-user "$key" --detach-sign --armor -o "$new/Release.gpg" "$new/Release" &&
        gpg --batch --yes --local-user "$key" --clear-sign -o "$new/InRelease" "$new/Release" &&
        gpg --batch --export "$key" >"$new/weir.gpg" || fail "gpg could not sign with the key '$key'"
else
    rm -f "$folder/InRelease" "$folder/Release.gpg"
fi
rm -f "$new/messages"
mv "$new"/* "$folder/"
count="$(grep -c '^Package: ' "$folder/Packages")"
echo "$folder: $count packages, $([ -n "$key" ] && echo "signed with $key" || echo "not signed")"
