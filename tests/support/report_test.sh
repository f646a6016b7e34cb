#!/bin/bash
# The output of a failing test in C.

. tests/support/shell.sh

readonly program=tests/support/failing
readonly source=tests/support/failing.c

unset TESTBRIDGE_TEST_ONLY XML_OUTPUT_FILE # what fails here is not this test
expect_status 1 "$program"
all="$output"

# Each check that fails is reported with its line.
while IFS=: read -r line _; do
    expect_contains "$all" "$source:$line: "
done < <(grep -n '// at$' "$source")
expect_contains "$all" 'three() is 3'
expect_contains "$all" '2 of 6 bytes differ, the first at offset 2: 0x63 and 0x58'
expect_contains "$all" 'with: row 7'
expect_contains "$all" 'no device here'

# EXPECT continues, ASSERT and SKIP return.
expect_contains "$all" 'Int went on'
expect_not_contains "$all" 'Assert went on'
expect_not_contains "$all" 'Skips went on'
expect_contains "$all" '[  PASSED  ] 1 test'
expect_contains "$all" '[  SKIPPED ] 1 test'
expect_contains "$all" '[  FAILED  ] 4 tests'

# Unknown options are not ignored.
expect_status 2 "$program" --no_such_option
expect_status 2 tests/support/no_tests
