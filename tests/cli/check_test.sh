#!/bin/bash
# weir check: a program with a missing wait, the same one mended, and what comes of either.
. tests/cli/cli.sh
export WEIR_BACKEND=null WEIR_MODULE_PATH="$here/lib/weir"
small="$here/tests/plugins/check/small"
broken="$here/tests/plugins/check/frames"
mended="$here/tests/plugins/check/frames_mended"
export TMPDIR="$TEST_TMPDIR/folders"
mkdir "$TMPDIR"

# line PART: the number of the line of the program that contains it.
line()
{
    grep -nF "$1" "$here/tests/plugins/check/frames.c" | head -n 1 | cut -d : -f 1
}
up="frames.c:$(line 'weir_queue_copy(up, ')"
run="frames.c:$(line 'weir_queue_copy(run, ')"

# What was found is told, as docs/check.md has it.
expect_data 1 "$weir" check "$broken"
[ "$output" = "0 wrong bytes" ] || fail "weir check wrote to standard output: $output"
expect_contains "$messages" "frames: 1 finding, 0 hints, 0 suppressed"
expect_message 1 "write-after-read, 6 times" "$weir" check --quiet "$broken"

# Nothing is, for the mended one.
expect_data 0 "$weir" check "$mended"
[ "$messages" = "weir: frames_mended: nothing was found" ] || fail "$messages"
expect_quiet 0 "$weir" check --quiet "$mended"

# JSON, alone on standard output; text and SARIF in files.
expect_message 1 "out" "$weir" check --json -- sh -c 'echo out; "$1"' sh "$broken"
as_json '(data["errors"], data["complete"], data["program"]) == (1, True, "frames")'
as_json 'data["findings"][0]["kind"] == "write-after-read" and data["findings"][0]["count"] == 6'
as_json "data['findings'][0]['second']['file'].endswith('frames.c') and data['findings'][0]['second']['line'] == ${up#*:}"
expect_data 1 "$weir" check --sarif found.sarif --text found.txt "$broken"
expect_contains "$(cat found.txt)" "write-after-read, 6 times"
output="$(cat found.sarif)"
as_json 'data["version"] == "2.1.0" and len(data["runs"]) == 1'
as_json 'data["runs"][0]["tool"]["driver"]["name"] == "weir check"'
as_json '[r["ruleId"] for r in data["runs"][0]["results"]] == ["write-after-read"]'
as_json "data['runs'][0]['results'][0]['locations'][0]['physicalLocation']['region']['startLine'] == ${up#*:}"
expect_data 0 "$weir" check --sarif clean.sarif "$mended"
output="$(cat clean.sarif)"
as_json 'data["runs"][0]["results"] == []'

# Suppressions; an unused one is told.
cat >known.json <<'JSON'
[
  {"kind": "write-after-read", "first": "frames.c", "buffer": "slo*", "reason": "It is known."},
  {"second": "other.c", "reason": "It was known."}
]
JSON
expect_message 0 "suppressed: It is known." "$weir" check --suppressions known.json "$broken"
expect_contains "$messages" "entry 2 suppresses nothing that was found: It was known."
expect_contains "$messages" "frames: 0 findings, 0 hints, 1 suppressed"
expect_quiet 0 "$weir" check --suppressions known.json --quiet --fail "$broken"
expect_message 2 "missing.json cannot be read: No such file or directory" "$weir" check --suppressions missing.json "$broken"

# --fail: the queue fails with the finding as its first cause, and the program with it.
expect_message 1 "of queue 'up', a copy, failed: write-after-read: the copy on 'up' at" "$weir" check --fail "$broken"
expect_contains "$messages" "write-after-read, 1 time"
expect_contains "$messages" "0 suppressed; the program had not closed its runtime"
expect_data 0 "$weir" check --fail "$mended"

# The program's own status; several processes; one that is killed; one that does not use Weir.
expect_message 7 "write-after-read, 6 times" "$weir" check sh -c '"$1"; exit 7' sh "$broken"
expect_message 1 "write-after-read, 12 times" "$weir" check sh -c '"$1"; "$2"; "$1"' sh "$broken" "$mended"
expect_message 1 "true was not checked: it opened no runtime of Weir's" "$weir" check true
expect_data 3 "$weir" check sh -c 'exit 3'
expect_message 127 "no-such-program cannot be run" "$weir" check no-such-program
expect_message 137 "write-after-read, 6 times" "$weir" check sh -c '"$1"; kill -9 $$' sh "$broken"
expect_contains "$messages" "weir: sh was ended by signal 9 (SIGKILL)"
expect_message 138 "weir: sh was ended by signal 10 (SIGUSR1)" "$weir" check sh -c 'kill -USR1 $$'
expect_message 143 "write-after-write, 1 time" "$weir" check "$small" killed
expect_contains "$messages" "the program had not closed its runtime"

# --demonstrate: the two in the other order, and what the program then prints, with a plugin perturb
# that the program's own list may have too.
for plugins in "" "perturb, check"; do
    expect_message 1 "$run and " env WEIR_PLUGINS="$plugins" "$weir" check --demonstrate "$broken"
    expect_contains "$messages" "$up reversed: the program prints '6291456 wrong bytes' in place of '0 wrong bytes'"
done
expect_data 0 "$weir" check --demonstrate "$mended"
expect_not_contains "$messages" "reversed"
expect_message 1 "$up reversed: what the program prints and its status stay the same" "$weir" check --demonstrate sh -c '"$1" >/dev/null' sh "$broken"
expect_data 1 "$weir" check --demonstrate sh -c '"$1" | grep -q "^0 wrong" || exit 3; exit 0' sh "$broken"
expect_contains "$messages" "$up reversed: the program ends with 3 in place of 0"
expect_data 0 "$weir" check --demonstrate --suppressions known.json "$broken"
expect_not_contains "$messages" "reversed"
expect_message 1 "host-read, " "$weir" check --demonstrate "$small" early
expect_contains "$messages" ", queues as late as possible: the program prints '1' in place of '7'"

mkdir some
cp -L "$here"/lib/weir/weir_{check,null}.so some
expect_data 1 env WEIR_MODULE_PATH="$PWD/some" "$weir" check --demonstrate "$broken"
expect_contains "$messages" "frames closed no runtime with the plugin perturb, so no order can be shown"
expect_message 143 "small closed no runtime with the plugin perturb" "$weir" check --demonstrate "$small" killed

# Reports that are not what the plugin wrote, and a folder that is gone.
expect_data 1 "$weir" check sh -c '"$1"; for file in "$TMPDIR"/weir-check-*/*; do echo {} >"$file"; done' sh "$mended"
expect_contains "$messages" "this is no report of the plugin check"
expect_message 1 "the findings cannot be read: No such file or directory" "$weir" check sh -c '"$1"; rm -r "$TMPDIR"/weir-check-*' sh "$mended"

# Marks in a page, with the plugin trace in the same run.
expect_data 1 env WEIR_PLUGINS=trace "$weir" check --json "$broken"
printf '%s\n' "$output" >check.json
expect_data 0 "$weir" trace html --findings check.json --output page.html trace.json
grep -q '"findings":' page.html || fail "the page has no findings"
grep '"kind":"write-after-read","hint":false,"count":6,' page.html >seen || fail "the page has not this finding"
# And the trace, for other viewers: each operation of the two lines, which reports read as before.
expect_output 0 "trace.marked.json: 16 operations marked" "$weir" trace mark --findings check.json trace.json
output="$(cat trace.marked.json)"
as_json 'sum("weir.remedy" in e["args"] for e in data["traceEvents"] if e["ph"] == "X") == 16'
as_json '[(e["name"], e["cat"], e["s"]) for e in data["traceEvents"] if e["ph"] == "i"] == [("write-after-read", "weir_check", "t")] * 16'
[ "$("$weir" trace report trace.json)" = "$("$weir" trace report trace.marked.json)" ] ||
    fail "the report of the marked trace differs"
gzip -k trace.json
expect_data 0 "$weir" trace mark --quiet --findings check.json trace.json.gz
[ -z "$output" ] || fail "$output"
gzip -dc trace.marked.json.gz | cmp - trace.marked.json || fail "the compressed trace differs"
expect_output 0 "trace.marked.json: 0 operations marked" "$weir" trace mark --findings check.json --output trace.marked.json trace.marked.json
expect_message 2 "weir trace mark needs --findings JSON" "$weir" trace mark trace.json
expect_message 1 "missing.json: there is no such file" "$weir" trace mark --findings missing.json trace.json
expect_data 1 "$weir" trace mark --findings trace.json trace.json
expect_message 1 "no trace" "$weir" trace mark --findings check.json check.json
expect_message 1 "nowhere/out.json" "$weir" trace mark --findings check.json --output nowhere/out.json trace.json
mkdir taken.json
expect_message 1 "taken.json: the trace cannot be put there" "$weir" trace mark --findings check.json --output taken.json trace.json
[ -z "$(ls ./*.part* 2>/dev/null)" ] || fail "something half-written is left"
expect_message 1 "trace.json: this is no report of the plugin check" "$weir" trace html --findings trace.json trace.json
expect_message 1 "missing.json: there is no such file" "$weir" trace html --findings missing.json trace.json

# Hints, which are no faults; threads of which nothing is assumed.
expect_message 0 "nothing was found" "$weir" check "$small" hints
expect_message 0 "implied-wait, 1 time" "$weir" check --hints "$small" hints
expect_contains "$messages" "to do: remove the wait of "
expect_contains "$messages" "small: 0 findings, 1 hint, 0 suppressed"
expect_quiet 0 "$weir" check --hints --quiet "$small" hints
expect_message 1 "weir_check_release() after " "$weir" check --strict "$small" hints

# What kernels do; on null they do nothing.
expect_message 0 "nothing was found" "$weir" check --verify "$mended"
expect_data 1 env WEIR_CHECK_VERIFY=2 "$weir" check sh -c '"$1" || exit 1' sh "$mended"
expect_contains "$messages" "WEIR_CHECK_VERIFY: 'verify' of [check] must be 0 or 1, not '2'"

# A chain that has it already, twice, is a chain with one.
WEIR_PLUGINS="check, check" expect_data 1 "$weir" check "$broken"
expect_contains "$messages" "frames: 1 finding"

# Bad command lines.
expect_message 1 "/nowhere/at/all.sarif" "$weir" check --sarif /nowhere/at/all.sarif "$broken"
TMPDIR=/nowhere expect_message 3 "no folder for temporary files can be created in /nowhere: No such file" "$weir" check "$broken"

# The folders are gone.
[ -z "$(ls -A "$TMPDIR")" ] || fail "left: $(ls -A "$TMPDIR")"
