#!/bin/bash
# The output of a failing test in C.

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
    report="$(printf '%s\n' "$all" | sed -n "\\|$source:$line: |,/^\$/p")"
    [ -n "$report" ] || fail "nothing was reported at $source:$line, in:
$all"
    shift
    for part in "$@"; do
        expect_contains "$report" "$part"
    done
}

unset TESTBRIDGE_TEST_ONLY XML_OUTPUT_FILE # what fails here is not this test
expect_status 1 "$program"
all="$output"

expect_at int 'three() == -4' 'three() is 3'
expect_at assert '1U is 1' 'UINT64_MAX is 18446744073709551615'
expect_at true 'three() == 4 is false'
expect_at false 'three() == 3 is true'
expect_at double '2.5 < 1.25' '2.5 is 2.5'
expect_at near '1.0 within 0.25 of 1.5' '1.0 is 1'
expect_at null 'NULL is NULL'
expect_at str 'text is "some text"' '"other text"'
expect_at contains 'text contains "absent"' 'text is "some text"'
expect_at not_contains 'text does not contain "some"' 'text is "some text"'
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

# Unknown options are not ignored.
expect_says 2 'unknown argument --no_such_option' "$program" --no_such_option
expect_says 2 'no WEIR_TEST is linked into this program' tests/support/no_tests
