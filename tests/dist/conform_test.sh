#!/bin/bash
# weir conform, with a suite of this test: how it reports tests that fail, crash, hang or end the
# program.
. tests/dist/dist.sh
there="$TEST_TMPDIR/weir"
unpack "$there"
weir="$there/bin/weir"
cd "$TEST_TMPDIR"
export WEIR_BACKEND=null

# The commands' manual, and the real suite's names.
lint="$(mandoc -T lint -W style "$there/share/man/man1/weir-conform.1" |
    grep -v 'referenced manual not found' || true)"
[ -z "$lint" ] || fail "$lint"
for option in $("$weir" conform --help | sed -nE 's/^  (-[a-z], )?--([a-z]*).*/\2/p'); do
    grep -qE "^\.It (Fl [a-z] , )?Fl Fl $option\b" "$there/share/man/man1/weir-conform.1" ||
        fail "weir-conform.1 does not explain --$option"
done
expect_says 0 $'\nCopy.' "$weir" conform --list
expect_says 2 "no test matches 'Nothing.*'" "$weir" conform --filter 'Nothing.*'
expect_says 2 "did you mean --filter?" "$weir" conform --filte x
expect_says 3 "did you mean 'null'?" "$weir" conform --backend nul

# A suite in a few lines of shell, which speaks as GoogleTest does. $1 of each
# function is the test's name; TESTS says which there are.
cat >"$there/libexec/weir/conformance" <<'SUITE'
#!/bin/bash
ok() { echo "[ RUN      ] $1"; echo noise; echo "[       OK ] $1 (3 ms)"; }
bad() { echo "[ RUN      ] $1"; echo "x.c:7: <&> \"1\" is 2" >&2; echo "[  FAILED  ] $1 (0 ms)"; failed=1; }
skip() { echo "[ RUN      ] $1"; printf 'x.c:8: Skipped\nno second device\n\n'; echo "[  SKIPPED ] $1 (0 ms)"; }
crash() { echo "[ RUN      ] $1"; echo "last words"; kill -SEGV $$; }
hang() { echo "[ RUN      ] $1"; exec sleep 100; }
leave() { exit 0; }
talk() { echo "[ RUN      ] $1"; echo -n "no newline"; echo "[       OK ] $1 (3 ms)"; }
failed=0
for argument in "$@"; do
    case "$argument" in
    --gtest_list_tests)
        echo "S."
        for test in $TESTS; do echo "  $test"; done
        exit 0
        ;;
    --gtest_filter=*) filter=":${argument#*=}:" ;;
    esac
done
for test in $TESTS; do
    [[ "$filter" != *":S.$test:"* ]] || "${test%%_*}" "S.$test"
done
echo "[ CONFORM  ] null on 'x': 9 tests; 1 skipped by limits"
[ -z "$STATUS" ] || exit "$STATUS"
exit "$failed"
SUITE

export STATUS="" TESTS="ok_1 talk_1 skip_1 ok_2"
expect_says 0 "4 tests in " "$weir" conform
expect_contains "$output" "3 passed, 0 failed, 1 skipped"
expect_contains "$output" $'skipped:\n  S.skip_1  no second device'

export TESTS="ok_1 bad_1 ok_2"
expect_says 1 $'FAILED S.bad_1\nx.c:7: <&> "1" is 2' "$weir" conform --xml report.xml
expect_contains "$output" "2 passed, 1 failed"
python3 -c '
import sys, xml.etree.ElementTree as tree
case = tree.parse(sys.argv[1]).find("testcase[@classname=\"S\"][@name=\"bad_1\"]")
assert case.find("failure").get("message") == "x.c:7: <&> \"1\" is 2\n", tree.tostring(case)
' report.xml

# One that crashes or hangs is one failure; the rest runs.
export TESTS="ok_1 crash_1 ok_2 hang_1 ok_3 crash_2"
expect_status 1 "$weir" conform --limit 3 --json
printf '%s\n' "$output" | python3 -c '
import json, sys
report = json.load(sys.stdin)
assert (report["passed"], report["failed"], report["total"]) == (3, 3, 6), report
assert report["module"] == "null" and report["device"] == "null device 0"
tests = {test["name"]: test for test in report["tests"]}
assert tests["S.crash_1"]["outcome"] == "failed" and tests["S.ok_3"]["outcome"] == "passed"
assert "last words\nthe test ended the program with signal 11" in tests["S.crash_1"]["text"]
assert "the test did not end within 3 s and was stopped" in tests["S.hang_1"]["text"]
'

# An interrupt of the command, or of its terminal, ends the suite too.
TESTS="ok_1 bad_1 hang_1 ok_2" "$weir" conform >table 2>messages &
pid=$!
child=""
for _ in $(seq 100); do
    child="$(pgrep -P "$pid" -x sleep || true)" # the suite became it, and hangs
    [ -z "$child" ] || break
    sleep 0.1
done
[ -n "$child" ] || fail "the suite did not begin"
kill -s TERM "$pid"
status=0
wait "$pid" || status=$?
[ "$status" -eq 143 ] || fail "interrupted, it ended with $status: $(cat messages)"
expect_contains "$(cat messages)" "interrupted: 2 of 4 tests have run, and 1 of them failed"
[ ! -s table ] || fail "interrupted, it printed $(cat table)"
! kill -0 "$child" 2>/dev/null || fail "the suite still runs"

# A file that cannot be written is reported before anything runs.
expect_says 1 "nowhere/report.xml: cannot be written" "$weir" conform --xml nowhere/report.xml
expect_not_contains "$output" "tests in"

# A program that ends before all tests have run, or fails after the last one, has failed.
export TESTS="ok_1 leave_1 ok_2"
expect_says 1 $'FAILED S.ok_2\nthe program ended before it ran this test' "$weir" conform
export TESTS="ok_1" STATUS=23
expect_says 1 "what ran after the last test ended the program with status 23" "$weir" conform
expect_contains "$output" "1 passed, 1 failed"

# A program that cannot list its tests is not a suite.
printf '#!/bin/bash\nexit 5\n' >"$there/libexec/weir/conformance"
expect_says 3 "does not list its tests" "$weir" conform
