#!/bin/bash
# Under `weir check` programs whose threads are ordered by their locks are silent without annotations, and
# each that lacks the order has one finding. The programs count themselves.
. tests/support/shell.sh
export WEIR_BACKEND=null WEIR_MODULE_PATH=lib/weir

for program in pairs pairs_cpp; do
    expect_says 0 " pairs, 0 differ" cli/weir check "tests/locks/$program" mended
    expect_says 1 " pairs, 0 differ" cli/weir check --quiet "tests/locks/$program" broken

    # Without the library calls are in the order in which they happen.
    expect_status 3 cli/weir check --quiet --no-locks "tests/locks/$program" broken
    expect_not_contains "$output" " pairs, 0 differ"

    # Both threads are of the program, so an annotation is all that could order them.
    expect_status 3 cli/weir check --quiet --no-locks --strict "tests/locks/$program" mended
done
