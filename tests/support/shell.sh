# shellcheck shell=bash
# Sourced by shell tests: . tests/support/shell.sh
# Sets the same environment as tests/support/main.cc, and defines assertions.

set -eu

: "${TEST_TMPDIR:?run this through bazel test}"
# Bazel's own HOME for tests need not be writable.
export HOME="$TEST_TMPDIR/home"
# --test_env=POCL_CACHE_DIR=FOLDER: the kernels that PoCL has compiled in other tests too.
export POCL_CACHE_DIR="${POCL_CACHE_DIR:-$TEST_TMPDIR/pocl}"
mkdir -p "$HOME" "$POCL_CACHE_DIR"

# Suppression files are named from here, and a test may change its folder.
for variable in ASAN_OPTIONS LSAN_OPTIONS TSAN_OPTIONS UBSAN_OPTIONS; do
    value="${!variable-}"
    if [[ "$value" == *suppressions=[!/]* ]]; then
        export "$variable=${value/suppressions=/suppressions=$PWD/}"
    fi
done
unset variable value

# The line of the test that has called, through whatever functions of this file.
test_line()
{
    local i=1
    while [ "${BASH_SOURCE[i]}" = "${BASH_SOURCE[0]}" ]; do i=$((i + 1)); done
    printf '%s:%s' "${BASH_SOURCE[i]}" "${BASH_LINENO[i - 1]}"
}

# fail TEXT...: ends the test.
fail()
{
    printf '%s: %s\n' "$(test_line)" "$*" >&2
    exit 1
}

# expect_contains TEXT PART and expect_not_contains TEXT PART.
expect_contains()
{
    [[ "$1" == *"$2"* ]] && return 0
    printf '%s: expected "%s" in:\n%s\n' "$(test_line)" "$2" "$1" >&2
    exit 1
}

expect_not_contains()
{
    [[ "$1" != *"$2"* ]] && return 0
    printf '%s: did not expect "%s" in:\n%s\n' "$(test_line)" "$2" "$1" >&2
    exit 1
}

# expect_status WANTED COMMAND...: runs it, and leaves its output, standard error
# included, in $output.
expect_status()
{
    local wanted="$1" status=0
    shift
    output="$("$@" 2>&1)" || status=$?
    [ "$status" -eq "$wanted" ] && return 0
    printf '%s: %s ended with %s, expected %s. It printed:\n%s\n' "$(test_line)" "$*" "$status" \
        "$wanted" "$output" >&2
    exit 1
}

# expect_prints TEXT COMMAND...: it succeeds, and prints that and nothing else.
expect_prints()
{
    local expected_text="$1"
    shift
    expect_status 0 "$@"
    [ "$output" = "$expected_text" ] || fail "$* printed '$output', and not '$expected_text'"
}

# expect_says WANTED PART COMMAND...: the same, and its output has that part.
expect_says()
{
    local wanted="$1" expected_part="$2"
    shift 2
    expect_status "$wanted" "$@"
    expect_contains "$output" "$expected_part"
}
