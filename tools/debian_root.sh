#!/bin/bash
# Runs both commands of the README in a bare Debian: what tools/setup.sh installs there is all that there is.
set -eu

if [ "${1-}" = --help ] || [ $# -lt 2 ]; then
    cat <<'TEXT'
usage: tools/debian_root.sh SUITE FOLDER COMMAND...
       tools/debian_root.sh --check SUITE

Makes the smallest system of SUITE, such as bookworm or trixie, in FOLDER with mmdebstrap, copies the
tree into it, and runs there, in a namespace of its own without the machine's packages, its CUDA toolkit
or its caches:

  tools/setup.sh && bazel run //:demo
  tools/setup.sh --tests && COMMAND...

FOLDER is missing, or has at most the folder FOLDER/cache, and is seen under the same path inside;
FOLDER/tree is the tree. Where FOLDER/cache is there, what Bazel compiles is also put into this folder,
which --disk_cache takes on a machine with the same compilers. Needs root, mmdebstrap, a mirror of
Debian, and 15 GB. The exit status is that of COMMAND, 78 when one of Weir's steps before it fails, or 75
when no such system could be made.

  --check   only say whether such a system can be made here
TEXT
    exit 0
fi

suite="$1"
[ "$1" != --check ] || suite="$2"
# shellcheck disable=SC2016 # apt-get expands it
mirror_of() { apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' "Label: $1" | head -n 1; }
mirror="$(mirror_of Debian)"
mirror="${mirror:-http://deb.debian.org/debian}"
security="$(mirror_of Debian-Security)"
security="${security:-http://deb.debian.org/debian-security}"
if [ "$1" = --check ]; then
    file="$(mktemp)"
    trap 'rm -f "$file"' EXIT
    unshare --mount true &&
        /usr/lib/apt/apt-helper download-file "${mirror%/}/dists/$suite/InRelease" "$file" >/dev/null
    exit
fi
mkdir -p "$2"
folder="$(cd "$2" && pwd)"
shift 2
cd "$(dirname "${BASH_SOURCE[0]}")/.."
apt-config dump | grep -E '^Acquire::(http|https)::' >"$folder/proxies" || true
mmdebstrap --quiet --mode=root --variant=minbase --aptopt='Acquire::Languages "none"' \
    --aptopt="$folder/proxies" "$suite" "$folder/root" "deb ${mirror%/} $suite main" \
    "deb ${security%/} $suite-security main" || exit 75
# This system is thrown away: a power cut may take it.
echo force-unsafe-io >"$folder/root/etc/dpkg/dpkg.cfg.d/unsafe-io"

mkdir -p "$folder/tree" "$folder/root$folder"
git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -c | tar -x -C "$folder/tree"
cp -L /etc/resolv.conf /etc/hosts "$folder/root/etc/"
cat >"$folder/inside" <<'TEXT'
set -eu
folder="$1" && shift
root="$folder/root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
mount --bind "$folder" "$root$folder"
exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TMPDIR="/tmp" bash -c '
    cd "$0/tree" || exit 78
    say() { echo "-- $suite, $SECONDS s: $*"; }
    # Sandboxes of compilers would find nothing here that they do not find elsewhere.
    printf "%s\n" "startup --output_user_root=$0/bazel" "build --noshow_progress" \
        "build --strategy=CppCompile=local --strategy=CppLink=local --strategy=CppArchive=local" >/root/.bazelrc
    [ ! -d "$0/cache" ] || echo "build --disk_cache=$0/cache" >>/root/.bazelrc
    suite="$1" && shift
    tools/setup.sh >"$0/setup.log" 2>&1 || { tail -n 20 "$0/setup.log"; exit 78; }
    say "tools/setup.sh"
    bazel run //:demo || exit 78
    say "bazel run //:demo"
    tools/setup.sh --tests >"$0/setup.log" 2>&1 || { tail -n 20 "$0/setup.log"; exit 78; }
    say "tools/setup.sh --tests"
    status=0
    "$@" || status=$?
    say "$*: status $status"
    exit "$status"' "$folder" "$@"
TEXT
# All that runs there ends with it.
exec unshare --mount --pid --fork --kill-child bash "$folder/inside" "$folder" "$suite" "$@"
