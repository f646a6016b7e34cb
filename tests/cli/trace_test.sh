#!/bin/bash
# weir trace: a program traced, and traces read, drawn, checked and compared.
. tests/cli/cli.sh

# made FILE MICROSECONDS: a trace of a copy of 1000 us on one queue, and after a wait a kernel
# of that long on another; then, submitted late, a copy of 500 us.
made()
{
    local end=$((1000 + $2)) late=$((3000 + $2))
    cat >"$1" <<TEXT
{
"schemaVersion": 1,
"distributedInfo": {"backend": "none", "rank": 0, "world_size": 1},
"weir": {"format":1,"version":"0.1.0","program":"made","backend":"null","process":4711},
"deviceProperties": [{"id": 0, "name": "a device", "totalGlobalMem": 0, "numSms": 1}],
"traceEvents": [
{"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"0","weir.name":"a device","weir.copy_engines_to_device":1,"weir.copy_engines_to_host":1,"weir.concurrent_kernels":4}},
{"ph":"M","name":"thread_name","pid":0,"tid":1,"args":{"name":"up","weir.label":"up","weir.priority":0}},
{"ph":"M","name":"thread_name","pid":0,"tid":2,"args":{"name":"run","weir.label":"run","weir.priority":0}},
{"ph":"X","name":"x","pid":0,"tid":1,"cat":"gpu_memcpy","ts":0.000,"dur":1000.000,"args":{"weir.sequence":1,"weir.kind":"copy","weir.engine":"to_device","bytes":4096,"weir.dst_memory":"Device","weir.src_memory":"Pinned","weir.submit":0}},
{"ph":"X","name":"x","pid":0,"tid":2,"cat":"kernel","ts":1000.000,"dur":$2.000,"args":{"weir.sequence":2,"weir.kind":"launch","weir.engine":"kernels","weir.name":"scale","weir.region":"frame 1/scale","weir.submit":0,"weir.waits":[[1,2,"main.c",12]]}},
{"ph":"X","name":"x","pid":0,"tid":1,"cat":"gpu_memcpy","ts":$late.000,"dur":500.000,"args":{"weir.sequence":3,"weir.kind":"copy","weir.engine":"to_host","bytes":4096,"weir.dst_memory":"Pinned","weir.src_memory":"Device","weir.file":"main.c","weir.line":20,"weir.submit":$((late - 100))000,"weir.submit_end":$((late - 50))000}},
{"ph":"M","name":"weir_end","pid":4711,"tid":0,"args":{"name":"end","weir.end":$((late + 500))000,"weir.dropped":0}}
]
}
TEXT
    [ "$end" -lt "$late" ]
}
made a.json 2000
made b.json 4000

# The report.
expect_output 0 "made on null, a device: 3 operations, 2 queues" "$weir" trace report a.json
expect_contains "$output" "on queue 'up' was submitted 1.90 ms after the last work had ended (main.c:20)"
[ -z "$messages" ] || fail "report wrote to standard error: $messages"
expect_output 0 "1.00 ms: idle 0.0 %, compute 100.0 %" "$weir" trace report a.json --from 1ms --to 2ms
expect_json 0 'data["span_ns"] == 5500000 and data["truncated"] is False and data["notes"] == []' "$weir" trace report a.json --json --bubbles 1
as_json '[b["cause"] for b in data["bubbles"]] == ["submit"] and data["bubbles"][0]["line"] == 20'
as_json '{q["name"]: q["count"] for q in data["queues"]} == {"up": 2, "run": 1}'
expect_message 2 "no operation ran in the window" "$weir" trace report a.json --from 9s
expect_message 2 "--to is not later than --from" "$weir" trace report a.json --from 1ms --to 1ms
expect_message 2 "--from takes a time such as 1.5ms, in ns, us, ms or s, not '1'" "$weir" trace report a.json --from 1

# A program's trace that lacks times says so.
sed '/"cat":"kernel"/s/"ph":"X"/"ph":"i"/' a.json >untimed.json
for file in a untimed; do
    expect_data 0 "$weir" trace --output given.json sh -c "cat $file.json >\"\$WEIR_TRACE_FILE\""
    [[ "$messages" == *"1 of them without times"* ]] && told=untimed || told=a
    [ "$told" = "$file" ] || fail "$file.json: $messages"
done

# The timeline, with and without UTF-8.
expect_output 0 "'run'                    |        @@@@@@@@@@@@@@@@" "$weir" trace timeline a.json --width 80
expect_contains "$output" "5.50 ms"
expect_contains "$output" " 36.4 %"
LC_ALL=C.UTF-8 expect_data 0 "$weir" trace timeline a.json --width 80
expect_contains "$output" "████████"
LC_ALL=C.UTF-8 expect_data 0 "$weir" trace timeline a.json --width 80 --ascii
expect_not_contains "$output" "█"
expect_json 0 '(data["begin_ns"], data["end_ns"]) == (1000000, 3000000)' "$weir" trace timeline a.json --from 1ms --to 3ms --json
as_json '{r["label"]: sum(r["busy_ns"]) for r in data["rows"]}["kernels"] == 2000000'
COLUMNS=100 expect_data 0 "$weir" trace timeline a.json
[ "$(printf '%s\n' "$output" | sed -n 3p | wc -c)" -eq 100 ] || fail "not as wide as the terminal: $output"

# The page, and what to do with it.
expect_data 0 "$weir" trace html a.json
[ "$output" = "a.html: the timeline and the report; open it in a browser" ] || fail "it said '$output'"
grep -qi '<html' a.html || fail "a.html is no page"

# Checks.
expect_output 0 "holds: the longest bubble is 2.00 ms, <= 3.00 ms" "$weir" trace check a.json '--bubbles<=3ms' --busy 'compute>=36%' 'span<6ms'
expect_data 1 "$weir" trace check a.json --overlap 'copy/compute>=0.6' '--bubbles<=3ms'
expect_contains "$output" "fails: the overlap of copy/compute is 0.0 %, and not >= 60.0 %"
expect_data 1 "$weir" trace check a.json --json '--overlap copy/compute>=0.6'
as_json '[(c["condition"], c["holds"]) for c in data] == [("overlap copy/compute>=0.6", False)]'
as_json '"and not >= 60.0 %" in data[0]["sentence"]'
expect_data 1 "$weir" trace check a.json '--bubbles<=1ms' --from 0 --to 5.2ms
expect_message 2 "needs a condition, such as '--bubbles<=1ms'" "$weir" trace check a.json
expect_message 2 "did you mean 'bubbles'?" "$weir" trace check a.json '--bubles<=1ms'
expect_message 2 "has no option '--overlap'" "$weir" trace check a.json --overlap

# Comparing.
expect_output 1 "5.50 ms  7.50 ms" "$weir" trace diff a.json b.json
expect_contains "$output" "+36.4 %"
expect_contains "$output" "+2.00 ms  +100.0 %"
expect_contains "$messages" "the span grew by 36.4 %, and 10 % are allowed"
expect_json 0 'data["span_ns"] == {"before": 5500000, "after": 7500000}' "$weir" trace diff a.json b.json --limit 40 --json
as_json 'data["names"][0]["name"] == "scale" and data["names"][0]["ns"]["after"] == 4000000'
expect_output 0 "-50.0 %" "$weir" trace diff b.json a.json
expect_message 2 "weir trace diff needs two traces" "$weir" trace diff a.json

# Files that are no traces, or not whole.
for command in report timeline "check '--span<1s'" "diff a.json"; do
    : >empty.json
    eval "expect_data 1 \"\$weir\" trace $command empty.json"
    expect_contains "$messages" "empty.json: the file is empty"
    eval "expect_data 1 \"\$weir\" trace $command missing.json"
    expect_contains "$messages" "missing.json: there is no such file"
done
expect_message 1 "coffee.png: this is no trace" "$weir" trace report "$images/coffee.png"
head -n 11 a.json >cut.json
expect_output 0 "note: the trace has no end" "$weir" trace report cut.json
expect_message 0 "cut.json: the trace has no end" "$weir" trace timeline cut.json
gzip -c a.json >a.json.gz
expect_output 0 "3 operations" "$weir" trace report a.json.gz

# Labels are untrusted text: escapes of a terminal stay escaped.
sed 's/"weir.label":"up"/"weir.label":"u\\u001b[2J\\n\\u202e"/' a.json >escapes.json
for command in report timeline; do
    expect_output 0 'u\x1b[2J\n\u202e' "$weir" trace $command escapes.json
    expect_not_contains "$output" "$(printf '\033')"
    expect_not_contains "$output" "$(printf '\342\200\256')"
done

# A program, with what it is told and what it says left alone.
expect_data 0 "$weir" trace --output run.json --report \
    "$weir" run arr-coc --config "$PWD/small.ini" --quiet --weights "$weights" --output out \
    "$images/coffee.png"
expect_contains "$output" "critical path"
expect_contains "$output" "texture_image"
expect_contains "$output" "frame/texture"
expect_not_contains "$output" "weir on opencl, a device" # it has its name
expect_contains "$(cat run.json)" '"weir.concurrent_kernels":1'
expect_contains "$messages" "operations in "
[ -s run.json ] || fail "there is no trace"
[ -s out/coffee.json ] || fail "the program did not do its work"
expect_data 0 "$weir" trace check run.json '--dropped<=0' '--busy all>0'
expect_quiet 0 "$weir" trace --output run.json.gz --quiet \
    "$weir" run arr-coc --config "$PWD/small.ini" --quiet --weights "$weights" --output out \
    "$images/coffee.png"
[ "$(head -c 2 run.json.gz | od -An -tx1 | tr -d ' ')" = 1f8b ] || fail "run.json.gz is not compressed"
expect_data 0 "$weir" trace diff run.json run.json.gz --limit 1000000

# Other plugins stay, inside of it; a configuration that cannot be read is reported before.
expect_data 1 env WEIR_PLUGINS=trace "$weir" trace sh -c 'echo "$WEIR_PLUGINS" >plugins; touch trace.json'
[ "$(cat plugins)" = trace ] || fail "the plugins are $(cat plugins)"
expect_contains "$messages" "trace.json: the file is empty"
expect_data 0 env WEIR_PLUGINS="check, trace" "$weir" trace sh -c 'echo "$WEIR_PLUGINS" >plugins; cp a.json trace.json'
[ "$(cat plugins)" = "trace, check" ] || fail "the plugins are $(cat plugins)"
printf '[weir]\nplugins = one, two\n' >plugins.ini
expect_data 0 env WEIR_CONFIG=plugins.ini "$weir" trace sh -c 'echo "$WEIR_PLUGINS" >plugins; cp a.json trace.json'
[ "$(cat plugins)" = "trace, one, two" ] || fail "the plugins are $(cat plugins)"

# It ends as the program did.
expect_data 7 "$weir" trace sh -c 'cp a.json trace.json; exit 7'
expect_data 137 "$weir" trace sh -c 'kill -9 $$'
[ "$messages" = "weir: sh was ended by signal 9 (SIGKILL)" ] || fail "the signal is not named: $messages"
expect_message 127 "./no-such-program cannot be run" "$weir" trace ./no-such-program
expect_not_contains "$messages" "did you mean"
expect_message 127 "weir trace has no 'reprot' either; did you mean 'report'?" "$weir" trace reprot trace.json
expect_status 127 "$weir" trace --report no_such_program
expect_not_contains "$output" "either"
expect_message 1 "nowhere/trace.json: cannot be written" "$weir" trace --output nowhere/trace.json true
expect_not_contains "$messages" "wrote no trace"
# With the process's number in its name.
WEIR_BACKEND=null expect_data 0 "$weir" trace --report --output 'of.%p.json' "$program" devices
expect_contains "$output" "0 operations"
name="$(find . -maxdepth 1 -name 'of.*.json')"
[[ "$name" =~ ^\./of\.[0-9]+\.json$ ]] || fail "the trace is named '$name'"
expect_contains "$messages" "${name#./}; \`weir trace report"
WEIR_BACKEND=null expect_data 0 "$weir" trace --report --output 'in.%p.json' \
    sh -c '"$0" devices; exit 0' "$program"
expect_contains "$output" "0 operations"
[ "$(find . -maxdepth 1 -name 'in.*.json' | wc -l)" -eq 1 ] || fail "there are $(echo in.*.json)"
WEIR_BACKEND=null expect_message 0 "so no report" "$weir" trace --report --output 'no.%p.json' true
# Each rank of a job has a file; the report is of all, and of no older one.
cp a.json two.rank2.json
touch -d "1 hour ago" two.rank2.json
WEIR_BACKEND=null expect_data 0 "$weir" trace --report --output two.json "$program" launch -n 2 "$program" devices
expect_contains "$output" "/two.json
"
expect_contains "$output" "/two.rank1.json
"
expect_not_contains "$output" "rank2"
for file in two.json two.rank1.json; do
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$file" || fail "$file is no JSON"
done
# It does not end well where the trace is not whole, though the program took no notice.
status=0
messages="$(WEIR_BACKEND=null prlimit --fsize=600 "$program" trace --output small.json \
    sh -c '"$0" devices || exit 0' "$program" 2>&1 >/dev/null)" || status=$?
[ "$status" -eq 1 ] || fail "an incomplete trace ends with $status: $messages"
expect_contains "$messages" "small.json: the trace is incomplete: File too large"
expect_contains "$messages" "small.json is incomplete: sh did not close its runtime, or could"
expect_message 1 "true wrote no trace to $PWD/trace.json" "$weir" trace true
expect_data 0 "$weir" trace -- sh -c 'cp a.json trace.json'
expect_message 2 "weir trace needs a command to run" "$weir" trace
expect_message 2 "/tmp is not a regular file" "$weir" trace --output /tmp true
