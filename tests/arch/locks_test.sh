#!/bin/bash
# docs/architecture.md lists core's locks as core/support/locks.h has them, in that order, and
# core has no other mutex.
. tests/support/shell.sh

sed -n 's/^ *LOCK([A-Z_]*, "\(.*\)") *\\*$/\1/p' core/support/locks.h >"$TEST_TMPDIR/header"
sed -n '/^## Locks/,/^## /s/^| \([^|]*[^ |]\) *|.*/\1/p' docs/architecture.md |
    grep -v '^lock$\|^---$' >"$TEST_TMPDIR/page"
[ "$(wc -l <"$TEST_TMPDIR/header")" -ge 15 ] || fail "core/support/locks.h: its list was not found"
diff "$TEST_TMPDIR/header" "$TEST_TMPDIR/page" ||
    fail "docs/architecture.md and core/support/locks.h differ"

! grep -rn 'pthread_mutex_' core --include='*.[ch]' ||
    fail "core takes a mutex that has no place in core/support/locks.h"
