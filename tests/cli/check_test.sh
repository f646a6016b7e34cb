#!/bin/bash
# weir check: a program with a missing wait, the same one mended, and what comes of either.
. tests/cli/cli.sh
export LC_ALL=C WEIR_BACKEND=null WEIR_MODULE_PATH="$here/lib/weir"
unset WEIR_CHECK_REPORT WEIR_CHECK_THREADS WEIR_CHECK_HINTS WEIR_CHECK_VERIFY WEIR_CHECK_SUPPRESSIONS WEIR_CHECK_TEXT WEIR_CHECK_JSON WEIR_CHECK_SARIF
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

# What was found is told, with both lines and the calls to add.
expect_data 1 "$weir" check "$broken"
[ "$output" = "0 wrong bytes" ] || fail "weir check wrote to standard output: $output"
expect_contains "$messages" "write-after-read, 6 times"
expect_contains "$messages" "$up writes bytes 0 to 1048575 of buffer 'slots', which the copy on 'run' at "
expect_contains "$messages" "to do: record on 'run' after "
expect_contains "$messages" "$run, wait on 'up' before "
expect_contains "$messages" "frames: 1 finding, 0 hints, 0 suppressed"
expect_data 1 "$weir" check --quiet "$broken"
expect_contains "$messages" "write-after-read, 6 times"

# Nothing is, for the mended one.
expect_data 0 "$weir" check "$mended"
[ "$messages" = "weir: frames_mended: nothing was found" ] || fail "$messages"
expect_data 0 "$weir" check --quiet "$mended"
[ -z "$messages" ] || fail "$messages"

# JSON, alone on standard output; text and SARIF in files.
expect_data 1 "$weir" check --json -- sh -c 'echo out; "$1"' sh "$broken"
expect_contains "$messages" "out"
as_json '(data["errors"], data["complete"], data["program"]) == (1, True, "frames")'
as_json 'data["findings"][0]["kind"] == "write-after-read" and data["findings"][0]["count"] == 6'
as_json "data['findings'][0]['second']['file'].endswith('frames.c') and data['findings'][0]['second']['line'] == ${up#*:}"
as_json "data['findings'][0]['first']['queue'] == 'run' and data['findings'][0]['first']['line'] == ${run#*:}"
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

# What SARIF 2.1.0 requires of each object that is written: the standard's schema, its required
# properties and its enumerations, as far as they concern what is written.
python3 - found.sarif clean.sarif <<'PYTHON' || fail "no SARIF"
import json
import sys

REQUIRED = {
    "log": {"version": str, "runs": list},
    "run": {"tool": dict},
    "tool": {"driver": dict},
    "driver": {"name": str},
    "rule": {"id": str},
    "result": {"message": dict},
    "message": {"text": str},
    "suppression": {"kind": str},
    "invocation": {"executionSuccessful": bool},
}
KNOWN = {
    "log": {"$schema", "version", "runs"},
    "run": {"tool", "invocations", "results"},
    "driver": {"name", "version", "rules"},
    "rule": {"id", "shortDescription", "fullDescription", "defaultConfiguration"},
    "result": {"ruleId", "ruleIndex", "level", "message", "locations", "relatedLocations",
               "occurrenceCount", "suppressions"},
    "location": {"physicalLocation", "message", "id"},
    "physicalLocation": {"artifactLocation", "region"},
}


def check(kind, value):
    for key, type_ in REQUIRED.get(kind, {}).items():
        assert isinstance(value.get(key), type_), (kind, key, value)
    assert set(value) <= KNOWN.get(kind, set(value)), (kind, value)


for path in sys.argv[1:]:
    log = json.load(open(path))
    check("log", log)
    for run in log["runs"]:
        check("run", run)
        check("tool", run["tool"])
        check("driver", run["tool"]["driver"])
        rules = run["tool"]["driver"]["rules"]
        for rule in rules:
            check("rule", rule)
            check("message", rule["shortDescription"])
        for invocation in run["invocations"]:
            check("invocation", invocation)
        for result in run["results"]:
            check("result", result)
            check("message", result["message"])
            assert result["level"] in ("none", "note", "warning", "error")
            assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
            assert result["occurrenceCount"] >= 1 and len(result["locations"]) == 1
            for location in result["locations"] + result.get("relatedLocations", []):
                check("location", location)
                check("physicalLocation", location["physicalLocation"])
                assert location["physicalLocation"]["region"]["startLine"] >= 1
                uri = location["physicalLocation"]["artifactLocation"]["uri"]
                assert uri and " " not in uri and "\\" not in uri
            for suppression in result["suppressions"]:
                check("suppression", suppression)
                assert suppression["kind"] in ("inSource", "external")
PYTHON

# Suppressions; an unused one is told.
cat >known.json <<'JSON'
[
  {"kind": "write-after-read", "first": "frames.c", "buffer": "slo*", "reason": "It is known."},
  {"second": "other.c", "reason": "It was known."}
]
JSON
expect_data 0 "$weir" check --suppressions known.json "$broken"
expect_contains "$messages" "suppressed: It is known."
expect_contains "$messages" "entry 2 suppresses nothing that was found: It was known."
expect_contains "$messages" "frames: 0 findings, 0 hints, 1 suppressed"
expect_data 0 "$weir" check --suppressions known.json --quiet --fail "$broken"
[ -z "$messages" ] || fail "$messages"
expect_data 2 "$weir" check --suppressions missing.json "$broken"
expect_contains "$messages" "missing.json cannot be read: No such file or directory"
echo '[{"secnd": "other.c", "reason": "It was known."}]' >wrong.json
expect_data 1 "$weir" check --suppressions wrong.json "$broken"
expect_contains "$messages" "wrong.json: entry 1 has a key 'secnd', which does not exist; did you mean 'second'?"

# --fail: the queue fails with the finding as its first cause, and the program with it.
expect_data 1 "$weir" check --fail "$broken"
expect_contains "$messages" "of queue 'up', a copy, failed: write-after-read: the copy on 'up' at"
expect_contains "$messages" "write-after-read, 1 time"
expect_contains "$messages" "0 suppressed; the program had not closed its runtime"
expect_data 0 "$weir" check --fail "$mended"

# The program's own status; several processes; one that is killed; one that does not use Weir.
expect_data 7 "$weir" check sh -c '"$1"; exit 7' sh "$broken"
expect_contains "$messages" "write-after-read, 6 times"
expect_data 1 "$weir" check sh -c '"$1"; "$2"; "$1"' sh "$broken" "$mended"
expect_contains "$messages" "write-after-read, 12 times"
expect_data 1 "$weir" check true
expect_contains "$messages" "true was not checked: it opened no runtime of Weir's"
expect_data 3 "$weir" check sh -c 'exit 3'
expect_data 127 "$weir" check no-such-program
expect_contains "$messages" "no-such-program cannot be run"
expect_data 137 "$weir" check sh -c '"$1"; kill -9 $$' sh "$broken"
expect_contains "$messages" "write-after-read, 6 times"
expect_contains "$messages" "weir: sh was ended by signal 9 (SIGKILL)"
expect_data 138 "$weir" check sh -c 'kill -USR1 $$'
expect_contains "$messages" "weir: sh was ended by signal 10 (SIGUSR1)"
expect_data 143 "$weir" check "$here/tests/plugins/check/killed"
expect_contains "$messages" "write-after-write, 1 time"
expect_contains "$messages" "the program had not closed its runtime"

# --demonstrate: the two in the other order, and what the program then prints, with a plugin perturb
# that the program's own list may have too.
for plugins in "" "perturb, check"; do
    expect_data 1 env WEIR_PLUGINS="$plugins" "$weir" check --demonstrate "$broken"
    expect_contains "$messages" "$run and "
    expect_contains "$messages" "$up reversed: the program prints '6291456 wrong bytes' in place of '0 wrong bytes'"
done
expect_data 0 "$weir" check --demonstrate "$mended"
expect_not_contains "$messages" "reversed"
expect_data 1 "$weir" check --demonstrate sh -c '"$1" >/dev/null' sh "$broken"
expect_contains "$messages" "$up reversed: what the program prints and its status stay the same"
expect_data 1 "$weir" check --demonstrate sh -c '"$1" | grep -q "^0 wrong" || exit 3; exit 0' sh "$broken"
expect_contains "$messages" "$up reversed: the program ends with 3 in place of 0"
expect_data 0 "$weir" check --demonstrate --suppressions known.json "$broken"
expect_not_contains "$messages" "reversed"
expect_data 1 "$weir" check --demonstrate "$here/tests/plugins/check/early"
expect_contains "$messages" "host-read, "
expect_contains "$messages" ", queues as late as possible: the program prints '0' in place of '7'"

mkdir some
cp -L "$here"/lib/weir/weir_{check,null}.so some
expect_data 1 env WEIR_MODULE_PATH="$PWD/some" "$weir" check --demonstrate "$broken"
expect_contains "$messages" "frames closed no runtime with the plugin perturb, so no order can be shown"
expect_data 143 "$weir" check --demonstrate "$here/tests/plugins/check/killed"
expect_contains "$messages" "killed closed no runtime with the plugin perturb"

# Reports that are not what the plugin wrote, and a folder that is gone.
expect_data 1 "$weir" check sh -c '"$1"; for file in "$TMPDIR"/weir-check-*/*; do echo {} >"$file"; done' sh "$mended"
expect_contains "$messages" "this is no report of the plugin check"
expect_data 1 "$weir" check sh -c '"$1"; rm -r "$TMPDIR"/weir-check-*' sh "$mended"
expect_contains "$messages" "the findings cannot be read: No such file or directory"

# Marks in a page, with the plugin trace in the same run.
expect_data 1 env WEIR_PLUGINS=trace "$weir" check --json "$broken"
printf '%s\n' "$output" >check.json
expect_data 0 "$weir" trace html --findings check.json --output page.html trace.json
grep -q '"findings":' page.html || fail "the page has no findings"
grep -q '"kind":"write-after-read","count":6' page.html || fail "the page has not this finding"
# And the trace, for other viewers: each operation of the two lines, which reports read as before.
expect_data 0 "$weir" trace mark --findings check.json trace.json
expect_contains "$output" "trace.marked.json: 16 operations marked"
output="$(cat trace.marked.json)"
as_json 'sum("weir.remedy" in e["args"] for e in data["traceEvents"] if e["ph"] == "X") == 16'
as_json '[(e["name"], e["cat"], e["s"]) for e in data["traceEvents"] if e["ph"] == "i"] == [("write-after-read", "weir_check", "t")] * 16'
[ "$("$weir" trace report trace.json)" = "$("$weir" trace report trace.marked.json)" ] ||
    fail "the report of the marked trace differs"
gzip -k trace.json
expect_data 0 "$weir" trace mark --quiet --findings check.json trace.json.gz
[ -z "$output" ] || fail "$output"
gzip -dc trace.marked.json.gz | cmp - trace.marked.json || fail "the compressed trace differs"
expect_data 0 "$weir" trace mark --findings check.json --output trace.marked.json trace.marked.json
expect_contains "$output" "trace.marked.json: 0 operations marked"
expect_data 2 "$weir" trace mark trace.json
expect_contains "$messages" "weir trace mark needs --findings JSON"
expect_data 1 "$weir" trace mark --findings missing.json trace.json
expect_contains "$messages" "missing.json: there is no such file"
expect_data 1 "$weir" trace mark --findings trace.json trace.json
expect_data 1 "$weir" trace mark --findings check.json check.json
expect_contains "$messages" "no trace"
expect_data 1 "$weir" trace mark --findings check.json --output nowhere/out.json trace.json
expect_contains "$messages" "nowhere/out.json"
mkdir taken.json
expect_data 1 "$weir" trace mark --findings check.json --output taken.json trace.json
expect_contains "$messages" "taken.json: the trace cannot be put there"
[ -z "$(ls ./*.part* 2>/dev/null)" ] || fail "something half-written is left"
expect_data 1 "$weir" trace html --findings trace.json trace.json
expect_contains "$messages" "trace.json: this is no report of the plugin check"
expect_data 1 "$weir" trace html --findings missing.json trace.json
expect_contains "$messages" "missing.json: there is no such file"

# Hints, which are no faults; threads of which nothing is assumed.
expect_data 0 "$weir" check "$here/tests/plugins/check/hints"
expect_contains "$messages" "nothing was found"
expect_data 0 "$weir" check --hints "$here/tests/plugins/check/hints"
expect_contains "$messages" "implied-wait, 1 time"
expect_contains "$messages" "to do: remove the wait of "
expect_contains "$messages" "hints: 0 findings, 1 hint, 0 suppressed"
expect_data 0 "$weir" check --hints --quiet "$here/tests/plugins/check/hints"
[ -z "$messages" ] || fail "$messages"
expect_data 1 "$weir" check --strict "$here/tests/plugins/check/hints"
expect_contains "$messages" "weir_check_release() after "

# What kernels do; on null they do nothing.
expect_data 0 "$weir" check --verify "$mended"
expect_contains "$messages" "nothing was found"
expect_data 1 env WEIR_CHECK_VERIFY=2 "$weir" check sh -c '"$1" || exit 1' sh "$mended"
expect_contains "$messages" "WEIR_CHECK_VERIFY: 'verify' of [check] must be 0 or 1, not '2'"

# A chain that has it already, twice, is a chain with one.
WEIR_PLUGINS="check, check" expect_data 1 "$weir" check "$broken"
expect_contains "$messages" "frames: 1 finding"

# Bad command lines.
expect_data 2 "$weir" check
expect_contains "$messages" "weir check needs a command"
expect_data 2 "$weir" check --jsn "$broken"
expect_contains "$messages" "did you mean --json?"
expect_data 1 "$weir" check --sarif /nowhere/at/all.sarif "$broken"
expect_contains "$messages" "/nowhere/at/all.sarif"
TMPDIR=/nowhere expect_data 1 "$weir" check "$broken"
expect_contains "$messages" "no folder for temporary files can be created in /nowhere: No such file"

# The folder of a command that is killed goes with the next one; that of one that runs stays, and a stranger's.
"$program" check sleep 600 &
killed=$!
"$program" check sleep 600 &
running=$!
for _ in $(seq 600); do
    [ "$(find "$TMPDIR" -name .weir-running | wc -l)" -lt 2 ] || break
    sleep 0.1
done
children="$(pgrep -P "$killed")"
kill -s KILL "$killed"
wait "$killed" || true
kill $children
mkdir "$TMPDIR/weir-check-mine00"
touch -d '1 minute ago' "$TMPDIR"/weir-check-*
expect_data 0 "$weir" check "$mended"
[ "$(find "$TMPDIR" -name .weir-running | wc -l)" -eq 1 ] || fail "not one is left: $(ls -A "$TMPDIR")"
rmdir "$TMPDIR/weir-check-mine00" || fail "a folder of another program's is gone"
kill -s TERM "$running"
wait "$running" || true

# The folders are gone.
[ -z "$(ls -A "$TMPDIR")" ] || fail "left: $(ls -A "$TMPDIR")"
