#!/bin/bash
# Each public function of core that is given objects looks at all of them before it uses one, so that
# debug mode can refuse them: with WEIR_ENTER(), WEIR_IS_ALIVE() or WEIR_MAY_END(), or by passing them
# to a function that does. The tree is the one that contains README.md.
. tests/support/shell.sh
cd "$(dirname "$(readlink -f README.md)")" || fail "no tree"

cat >"$TEST_TMPDIR/calls.py" <<'PYTHON'
import re, sys

KINDS = "runtime|device|queue|buffer|program|kernel|graph|pool|comm"
DEFINITION = re.compile(r"^(?!static)[a-z][\w \*]*\b(weir_[a-z]\w*)\(([^;{}]*?)\)\n\{\n(.*?)^\}", re.S | re.M)
LOOKS = r"(?:WEIR_ENTER|WEIR_ENTER_AT|WEIR_ENTER_OF|WEIR_IS_ALIVE|WEIR_MAY_END)"
PASSES = r"(?:plugin_of|weir_[a-z]\w*|check_host_use|check_transfer|extension|is_wanted)"
count = 0
for path in sys.argv[1:]:
    text = open(path).read()
    for name, parameters, body in DEFINITION.findall(text):
        for parameter in parameters.split(","):
            found = re.fullmatch(r"\s*(?:const )?weir_(?:%s) \*(\*?)(\w+)\s*" % KINDS, parameter)
            if not found or found[2].startswith("out_"):
                continue
            count += 1
            word = (r"\*" if found[1] else "") + r"\b" + found[2] + r"\b"
            first = re.search(LOOKS + r"\([^;]*?" + word, body)
            before = first and re.sub(r"WEIR_REQUIRE\w*\([^;]*;|if \(![^\n]*", "", body[:first.start()])
            if first and re.search(r"\b" + found[2] + r"\b", before):
                print("%s: %s does not look at '%s' before it uses it" % (path, name, found[2]))
            if not re.search(LOOKS + r"\([^;]*?" + word + r"[^;]*?\)", body) and \
               not re.search(PASSES + r"\([^;]*?\b" + found[2] + r"\b[^;]*?\)", body):
                print("%s: %s does not look at '%s'" % (path, name, found[2]))
print("%d looked at" % count)
PYTHON

python3 "$TEST_TMPDIR/calls.py" $(find core -name '*.c') >"$TEST_TMPDIR/found" || fail "the search failed"
count=$(sed -n 's/ looked at$//p' "$TEST_TMPDIR/found")
[ "$count" -ge 120 ] || fail "only $count parameters were found: is the search still right?"
! grep 'does not look' "$TEST_TMPDIR/found" ||
    fail "add WEIR_ENTER(), WEIR_ENTER_AT() or WEIR_IS_ALIVE(): core/support/debug.h"

# The search finds a function that looks at one of its objects only, and one that looks too late.
cat >"$TEST_TMPDIR/made.c" <<'C'
weir_status weir_made_call(weir_queue *queue, weir_buffer *buffer)
{
    WEIR_ENTER(queue);
    return WEIR_OK;
}

weir_status weir_late_call(weir_queue *queue)
{
    WEIR_REQUIRE(NULL, queue);
    use(queue);
    WEIR_ENTER(queue);
    return WEIR_OK;
}
C
python3 "$TEST_TMPDIR/calls.py" "$TEST_TMPDIR/made.c" | grep -q "weir_made_call does not look at 'buffer'" ||
    fail "a call that looks at one object of two was not found"
python3 "$TEST_TMPDIR/calls.py" "$TEST_TMPDIR/made.c" | grep -q "weir_late_call does not look at 'queue' before" ||
    fail "a call that uses an object before it looks at it was not found"
