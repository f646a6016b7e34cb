#!/usr/bin/env bash
# The gallery's programs in CUDA C++ compile and link, without a warning. None of them runs here.
. tests/support/shell.sh

if [ -z "$NVCC" ]; then
    echo "skipped: there is no nvcc"
    exit 0
fi
mkdir -p "$TEST_TMPDIR/docs/gallery"
printf '%s\n' docs/gallery/*.cu | xargs -P 2 -I SOURCE "$NVCC" -std=c++17 -Werror all-warnings -o "$TEST_TMPDIR/SOURCE.out" SOURCE ||
    fail "a program of the gallery does not compile"
for source in docs/gallery/*.cu; do
    [ -x "$TEST_TMPDIR/$source.out" ] || fail "$source gave no program"
done
# And the compiler is asked: an error is one.
echo "int main() { return no_such_name; }" >"$TEST_TMPDIR/wrong.cu"
! "$NVCC" -o "$TEST_TMPDIR/wrong" "$TEST_TMPDIR/wrong.cu" 2>/dev/null || fail "a wrong program compiles"
