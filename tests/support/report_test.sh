#!/bin/bash
# The output, the filters and the XML of a failing test in C.

. tests/support/shell.sh

readonly program=tests/support/failing
readonly source=tests/support/failing.c

# line_of WORD: the source's line that ends in "// at: WORD".
line_of()
{
    grep -n "// at: $1\$" "$source" | cut -d: -f1
}

# expect_at WORD PART...: the report of that line contains each part.
expect_at()
{
    local line report part
    line="$(line_of "$1")"
    [ -n "$line" ] || fail "no line is marked $1"
    report="$(printf '%s\n' "$all" | grep -F -A4 "$source:$line: ")" ||
        fail "nothing was reported at $source:$line, in:
$all"
    shift
    for part in "$@"; do
        expect_contains "$report" "$part"
    done
}

unset XML_OUTPUT_FILE TESTBRIDGE_TEST_ONLY
expect_status 1 "$program" --gtest_output="xml:$TEST_TMPDIR/all.xml"
all="$output"

expect_at int 'three() == -4' 'three() is 3'
expect_at assert '1U is 1' 'UINT64_MAX is 18446744073709551615'
expect_at true 'three() == 4 is false'
expect_at false 'three() == 3 is true'
expect_at double '2.5 < 1.25'
expect_at near '1.0 within 0.25 of 1.5' '1.0 is 1'
expect_at null 'NULL'
expect_at str 'text is "some text"' '"other text"'
expect_at contains 'text contains "absent"' 'text is "some text"'
expect_at not_contains 'text does not contain "some"'
expect_at mem '2 of 6 bytes differ, the first at offset 2: 0x63 and 0x58'
expect_at size 'sizeof(char) is 1'
expect_at ptr 'text != text' 'text is 0x'
expect_at hook 'the hook says so' 'with: row 7'
expect_at fail 'and fails' 'with: row 7'
expect_at skip 'no device here'

# EXPECT continues, ASSERT and SKIP return.
expect_contains "$all" 'Int went on'
expect_not_contains "$all" 'Assert went on'
expect_not_contains "$all" 'Skips went on'
expect_contains "$all" '[  PASSED  ] 1 test'
expect_contains "$all" '[  SKIPPED ] 1 test'
expect_contains "$all" '[  FAILED  ] 4 tests'

# The XML, requested by the option and by Bazel's variable.
XML_OUTPUT_FILE="$TEST_TMPDIR/bazel.xml" expect_status 1 "$program"
for file in all.xml bazel.xml; do
    xml="$(cat "$TEST_TMPDIR/$file")"
    expect_contains "$xml" 'tests="6" failures="4"'
    expect_contains "$xml" "<failure message=\"$source:$(line_of int)"
    expect_contains "$xml" 'three() is 3'
    expect_contains "$xml" 'result="skipped"'
done

# The filter, likewise.
expect_status 0 "$program" --gtest_filter='Passing.*'
expect_contains "$output" 'Running 2 tests'
expect_not_contains "$output" 'Failing'
TESTBRIDGE_TEST_ONLY='Passing.Passes' expect_status 0 "$program"
expect_contains "$output" 'Running 1 test'

# Unknown options are not ignored.
expect_status 2 "$program" --no_such_option
expect_contains "$output" 'unknown argument --no_such_option'
expect_status 2 tests/support/no_tests
expect_contains "$output" 'no WEIR_TEST is linked into this program'
