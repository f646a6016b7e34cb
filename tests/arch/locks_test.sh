#!/bin/bash
# docs/architecture.md lists core's locks as core/support/locks.h has them, in that order, and
# core has no other mutex. Its second table names every lock of the backends, the kit, the plugins,
# the transports and the patterns. The tree is the one that contains README.md.
. tests/support/shell.sh
cd "$(dirname "$(readlink -f README.md)")" || fail "no tree"

# names SECTION COLUMN: that column of the table under the heading.
names()
{
    sed -n "/^## Locks/,/^## [^L]/p" docs/architecture.md |
        awk -F '|' -v wanted="$1" -v column="$2" '
            /^##/ { inside = ($0 == wanted) }
            inside && /^\|/ && ++row > 2 { gsub(/^ +| +$/, "", $(column + 1)); print $(column + 1) }'
}

sed -n 's/^ *LOCK([A-Z_]*, "\(.*\)") *\\*$/\1/p' core/support/locks.h >"$TEST_TMPDIR/header"
names "## Locks" 1 >"$TEST_TMPDIR/page"
[ "$(wc -l <"$TEST_TMPDIR/header")" -ge 15 ] || fail "core/support/locks.h: its list was not found"
diff "$TEST_TMPDIR/header" "$TEST_TMPDIR/page" ||
    fail "docs/architecture.md and core/support/locks.h differ"

! grep -rn 'pthread_mutex_' core --include='*.[ch]' ||
    fail "core takes a mutex that has no place in core/support/locks.h"

# declared FOLDER...: the locks that the sources declare, as "structure.member" or "variable".
declared()
{
    find "$@" -name '*.[ch]' | sort | xargs awk '
        FNR == 1 { structure = ""; count = 0 }
        /^(typedef )?(static )?struct( [a-z_]+)? \{$/ {
            structure = $0
            sub(/ \{$/, "", structure)
            sub(/.*struct ?/, "", structure)
        }
        /(pthread_(mutex|rwlock|spinlock)_t|struct weir_(biased_)?lock) \*/ { next }
        match($0, /(pthread_(mutex|rwlock|spinlock)_t|struct weir_(biased_)?lock) [a-z_]+( =|;)/) {
            name = substr($0, RSTART, RLENGTH)
            sub(/( =|;)$/, "", name)
            sub(/.* /, "", name)
            if ($0 ~ /^ /) members[count++] = name; else print name
            next
        }
        /pthread_(mutex|rwlock|spinlock)_t[^a-z]|struct weir_(biased_)?lock[ ;]/ { print FILENAME ":" FNR ": not understood: " $0 }
        /^\}/ {
            if (structure == "") { structure = $2; sub(/;$/, "", structure) }
            for (i = 0; i < count; i++) print structure "." members[i]
            structure = ""
            count = 0
        }' | sort
}

# A declaration in each form is found, and so one without a row would be.
mkdir "$TEST_TMPDIR/sources"
cat >"$TEST_TMPDIR/sources/made.c" <<'C'
struct pair {
    int count;
    pthread_mutex_t lock; // guards what follows
    struct weir_biased_lock other;
};
static struct {
    pthread_mutex_t start;
} state = {
    .start = PTHREAD_MUTEX_INITIALIZER,
};
static pthread_mutex_t variable = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t array[2];
C
declared "$TEST_TMPDIR/sources" >"$TEST_TMPDIR/made"
expect_contains "$(grep -v understood "$TEST_TMPDIR/made" | tr '\n' ' ')" \
    "pair.lock pair.other state.start variable "
expect_contains "$(cat "$TEST_TMPDIR/made")" "made.c:12: not understood"

declared backends plugins patterns transports api/weir/kit >"$TEST_TMPDIR/declared"
names "### Locks of modules and patterns" 2 | grep -o '`[^`]*`' | tr -d '`' | sort >"$TEST_TMPDIR/rows"
[ "$(wc -l <"$TEST_TMPDIR/declared")" -ge 20 ] || fail "the locks of modules were not found"
diff "$TEST_TMPDIR/declared" "$TEST_TMPDIR/rows" ||
    fail "docs/architecture.md and the sources differ in the locks of modules and patterns"
