#!/bin/bash
# tools/setup.sh with programs in place of apt and dpkg: what it installs for the first command and for all
# tests, and by which names where a release lacks some.
# shellcheck disable=SC2016 # the programs expand it
. tests/support/shell.sh

mkdir -p "$TEST_TMPDIR/programs" "$TEST_TMPDIR/tree/tools/bazel"
setup="$TEST_TMPDIR/tree/tools/setup.sh"
cp tools/setup.sh "$setup"
cd "$TEST_TMPDIR/programs"
# LACKS: names that the release does not have.
cat >dpkg-query <<'TEXT'
#!/bin/bash
grep -qxF "${@: -1}" ../installed && echo -n "install ok installed"
TEXT
cat >apt-cache <<'TEXT'
#!/bin/bash
[ -e ../lists ] || exit 0
[ "$1" != pkgnames ] || exec echo "$2"
[[ " $LACKS " == *" $2 "* ]] || printf '%s:\n  Candidate: 1.0\n' "$2"
TEXT
cat >apt-get <<'TEXT'
#!/bin/bash
for word; do
    case "$word" in
    update) exec touch ../lists ;;
    -* | install) ;;
    *) ! [[ " $LACKS " == *" $word "* ]] || exit 100 && echo "$word" >>../installed ;;
    esac
done
TEXT
printf '#!/bin/bash\necho 0\n' >id
chmod +x ./*
export PATH="$PWD:$PATH" LACKS=""

# bare LACKS: a machine with nothing.
bare()
{
    rm -f ../lists
    : >../installed
    LACKS="$1"
}
installs() { grep -qxF "$1" ../installed || fail "no $1: $(tr '\n' ' ' <../installed)"; }
lacks() { ! grep -qxF "$1" ../installed || fail "$1 is installed"; }

# The first command wants a compiler and a driver, and nothing that only tests run.
bare ""
expect_status 1 "$setup" --check
[ ! -s ../installed ] || fail "--check installs"
expect_status 0 "$setup"
for name in bazel-bootstrap clang-22 libclc-22 pocl-opencl-icd libjpeg-dev; do installs "$name"; done
for name in chromium openmpi-bin mpich fish doxygen lintian ffmpeg googletest; do lacks "$name"; done
expect_status 0 "$setup" --check
expect_says 1 "gpg-agent" "$setup" --tests --check
expect_status 0 "$setup" --tests
for name in chromium openmpi-bin mpich gpg-agent googletest mmdebstrap; do installs "$name"; done
expect_status 0 "$setup" --check --tests

# Ubuntu 24.04: an older clang, and no browser.
bare "clang-22 libclc-22 chromium"
expect_status 0 "$setup" --tests
installs clang-18
installs libclc-18
lacks chromium
expect_status 0 "$setup" --tests --check

# A package that must be there and is not.
bare "pocl-opencl-icd"
expect_status 100 "$setup"

expect_says 2 "unknown argument '--all'" "$setup" --all
expect_says 0 "--tests" "$setup" --help
echo PASS
