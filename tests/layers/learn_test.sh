#!/bin/bash
# --verify: which bytes launches use is found on copies. Without it disjoint parts of a buffer count as the same.
. tests/support/shell.sh

export WEIR_MODULE_PATH="$PWD/lib/weir" XDG_CACHE_HOME="$TEST_TMPDIR"
weir=cli/weir learn=tests/layers/learn
[ "$POCL_DEVICES" != basic ] || export PAIRS_WITHOUT="user_event user_chain flag"

for case in $("$learn" --list); do
    [ "$case" != binary ] || continue # its parts are not apart
    expect_says 1 "may " "$weir" check "$learn" mended "$case"
    expect_contains "$output" "--verify"
done
PAIRS_OPTIONS=--verify python3 tests/layers/pairs.py "$weir" "$learn" || fail "some parts are not told apart"
# Without it a binary is known by its source: the second time without a clang, and not at all if nothing is kept.
if ls /usr/bin/clang* >/dev/null 2>&1; then
    expect_status 0 "$weir" check "$learn" mended binary
    WEIR_OPENCL_CLANG='' expect_status 0 "$weir" check "$learn" mended binary
else
    echo "SKIPPED: there is no clang, which says which arguments are only read"
fi
expect_status 1 env XDG_CACHE_HOME="$TEST_TMPDIR/empty" WEIR_OPENCL_CLANG= "$weir" check "$learn" mended binary
# The configuration may ask for it, too.
printf '[check]\nverify = 1\n' >"$TEST_TMPDIR/verify.ini"
expect_status 0 env WEIR_CONFIG="$TEST_TMPDIR/verify.ini" "$weir" check "$learn" mended halves
# What cannot be run on copies is as without.
PAIRS_OPTIONS=--verify python3 tests/layers/pairs.py "$weir" tests/layers/pairs || fail "some pairs are not told apart"

# A kernel that cannot be run on copies says so once.
for case in $(tests/layers/pairs --list | grep -x 'image_kernel\|svm_kernel'); do
    expect_status 1 "$weir" check --verify tests/layers/pairs broken "$case"
    [ "$(grep -c "is not verified: " <<<"$output")" -eq 1 ] || fail "$output"
done
expect_status 0 "$weir" check --verify "$learn" mended pointer
[ "$(grep -c "'follow' is not verified: on copies it does not end well" <<<"$output")" -eq 1 ] || fail "$output"

# The layer's descriptors may be those of the standard streams.
expect_status 0 "$weir" check --verify "$learn" mended closed_input

# No process is left, also of a program that is killed.
expect_says 137 "read-after-write" "$weir" check --verify tests/layers/pairs killed kernel_read
for _ in $(seq 100); do
    pgrep -f "^$WEIR_MODULE_PATH/weir-opencl-trial" >/dev/null || break
    sleep 0.1
done
! pgrep -f "^$WEIR_MODULE_PATH/weir-opencl-trial" || fail "a process is left"

# Without the program, and without a binary of it.
mkdir modules
cp lib/weir/*.so modules
expect_status 1 env WEIR_MODULE_PATH="$PWD/modules" "$weir" check --verify "$learn" mended halves
expect_contains "$output" "weir-opencl-trial cannot be run; install all of Weir"
expect_contains "$output" "may "
