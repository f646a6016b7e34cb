#!/bin/bash
# weir sim --gpu: programs on modelled GPUs.
. tests/cli/cli.sh
export WEIR_BACKEND=null WEIR_MODULE_PATH="$here/lib/weir"

chunked="$here/tests/cli/chunked"
pipeline="$here/tests/patterns/pipeline_example"
migration="$here/tests/api/migration_example"

printf '[kernel spin]\nfixed_ns = 311400\n' >costs.ini

# One GPU: the report, and the trace; what the program prints is no part of it.
expect_output 0 "chunked on null" "$weir" sim --gpu c1060 --costs costs.ini "$chunked" depth
expect_contains "$output" "to_device / to_host"
expect_contains "$messages" "4 chunks"
expect_contains "$messages" "$PWD/sim.json: the trace of c1060"
[ -s sim.json ] || fail "there is no sim.json"
expect_data 0 "$weir" trace check sim.json 'span<=20ms'

# same_file TIMES ARGUMENT...: that many runs write the same trace, to the byte; it stays as same.json.
same_file()
{
    local times="$1"
    shift
    expect_data 0 "$weir" sim --quiet --output same.json "$@"
    for _ in $(seq 2 "$times"); do
        expect_data 0 "$weir" sim --quiet --output other.json "$@"
        cmp same.json other.json || fail "two runs of weir sim $* differ: $(diff same.json other.json | head -c 2000)"
    done
}
same_file 2 --gpu c1060 --costs costs.ini "$chunked" depth
cmp same.json sim.json || fail "a run without --quiet differs"
same_file 2 --gpu h200 --costs costs.ini "$chunked" waits --chunks 64
# (with more operations than are kept until they are written, and other costs of the host)
same_file 3 --gpu h200 --costs costs.ini "$chunked" breadth --chunks 64 --queues 4 --turns 64
[ "$(grep -c '"weir.sequence"' same.json)" -eq 12288 ] || fail "operations are missing"
# Several threads.
same_file 5 --gpu h200 "$pipeline"
same_file 5 --gpu h200 --host none "$pipeline"
same_file 5 --gpu k20c "$pipeline"
grep -q '"weir.region":"frame 9/download"' same.json || fail "the trace has no frames"

# The page and the report of a run, and the legacy queue in them.
export WEIR_TRACE_HTML=page.html WEIR_TRACE_REPORT=page.txt
expect_data 0 "$weir" sim --quiet --gpu k20c --output page.json "$migration"
unset WEIR_TRACE_HTML WEIR_TRACE_REPORT
grep -q 'legacy' page.html || fail "the page has no legacy queue"
grep -q '^  legacy ' page.txt || fail "the report has no legacy queue: $(cat page.txt)"
expect_data 0 "$weir" trace html --output later.html page.json
cmp page.html later.html || fail "weir trace html makes another page"

# Several: a row for each, and one for what would be otherwise.
expect_data 0 "$weir" sim --gpu c2050,k20c --what-if copy_engines=1 --costs costs.ini \
    --output out.json "$chunked" breadth
expect_contains "$output" "gpu       span  of the first  copies hidden   idle  bound              what if"
[ "$(wc -l <<<"$output")" -eq 5 ] || fail "there are other rows: $output"
grep -q '^c2050 .* 1\.000 .* -$' <<<"$output" || fail "the first row is not c2050's: $output"
grep -q '^k20c .* copy_engines=1$' <<<"$output" || fail "k20c has no second row: $output"
for name in out.1.c2050.json out.2.c2050.json out.3.k20c.json out.4.k20c.json; do
    [ -s "$name" ] || fail "there is no $name"
done
expect_data 0 "$weir" sim --gpu k20c,k20c --costs costs.ini --json --quiet "$chunked" depth
[ "$messages" = "4 chunks
4 chunks" ] || fail "quiet is not: $messages"
as_json '[run["gpu"] for run in data["runs"]] == ["k20c", "k20c"]'
as_json 'data["runs"][0]["report"]["span_ns"] == data["runs"][1]["report"]["span_ns"]'

# What would be otherwise in the program too: where it has {KEY=VALUE}, or an option.
expect_data 0 "$weir" sim --gpu k20c --what-if 'copy_engines = 1, order=breadth,chunks=2' \
    --costs costs.ini --json --quiet "$chunked" '{order=depth}' --chunks=4
as_json '[run["what_if"] for run in data["runs"]] == ["", "copy_engines=1, order=breadth, chunks=2"]'
[ "$messages" = "4 chunks
2 chunks" ] || fail "the program has other chunks: $messages"
expect_data 2 "$weir" sim --gpu k20c --what-if order=breadth --costs costs.ini "$chunked" '{order}'
expect_contains "$messages" "{order} has no value without --what-if; write one, such as {order=1}"
expect_message 3 "[gpu] has no key 'slots'" "$weir" sim --gpu k20c --what-if slots=2 "$chunked" depth
expect_contains "$messages" "slots=2: taken for keys of the model, since COMMAND has neither an option --KEY"
for change in copy_engines =1 copy_engines=; do
    expect_message 2 "--what-if is KEY=VALUE,..., such as copy_engines=1,slots=2" "$weir" sim --gpu k20c --what-if "$change" "$chunked" depth
done
expect_message 2 "--what-if changes 16 keys at most" "$weir" sim --gpu k20c --what-if "$(printf 'x=1,%.0s' {1..17})" "$chunked" depth

# A picture: a bar for each operation, with the kernels that run at once in parts of their row.
expect_data 0 "$weir" sim --gpu k20c,h200 --costs costs.ini --quiet --picture gpus.svg \
    "$chunked" depth
for text in '>k20c: ' '>h200: ' '>to_device<' '>kernels<' '>to_host<' '>ms<'; do
    grep -qF "$text" gpus.svg || fail "the picture lacks $text"
done
[ "$(grep -c '<rect' gpus.svg)" -eq 24 ] || fail "the picture has other bars"
[ "$(grep -c '<rect.* height="16.0"' gpus.svg)" -eq 20 ] || fail "no kernel runs beside another"
[ "$(grep -c '<rect.* height="8.0"' gpus.svg)" -eq 4 ] || fail "no kernel runs beside another"
python3 -c 'import sys, xml.dom.minidom as dom; dom.parse(sys.argv[1])' gpus.svg
# That of the README is what its command makes.
printf '[kernel spin]\nfixed_ns = 300000\n' >kernels.ini
picture="$(grep -o 'weir sim --gpu .* --picture sim.svg ./program depth$' "$here/docs/sim.md")"
read -ra words <<<"${picture/.\/program/$chunked}"
expect_data 0 "$weir" "${words[@]:1}"
cmp sim.svg "$here/docs/images/sim.svg" || fail "docs/images/sim.svg is another picture now"
expect_message 1 "absent/gpus.svg" "$weir" sim --gpu k20c --picture absent/gpus.svg "$chunked" depth
expect_not_contains "$messages" "chunks"
expect_data 1 "$weir" sim --gpu "$(printf 'k20c,%.0s' {1..22})" --costs costs.ini --quiet \
    --picture many.svg "$chunked" depth --chunks 64
expect_contains "$messages" "--picture draws 4000 operations at most, and these are 4224"

# A model of one's own; the program may be in another directory.
cat >mine.ini <<'TEXT'
[gpu]
name = mine
queues = stream
copy_engines = 2
kernels = 1
h2d_gb_per_s = 4.194304
d2h_gb_per_s = 4.194304

[kernel spin]
fixed_ns = 1000000
TEXT
expect_json 0 'data["runs"][0]["report"]["span_ns"] == 6000000' "$weir" sim --gpu mine.ini --quiet --json sh -c "cd / && exec '$chunked' depth"

# Costs that were learned from a trace.
expect_data 0 "$weir" sim learn sim.json --output learned.ini
expect_contains "$(cat learned.ini)" "fixed_ns = 1000000"
expect_data 0 "$weir" sim --gpu k20c --costs learned.ini --quiet --json "$chunked" depth
as_json 'abs(data["runs"][0]["report"]["span_ns"] / 5.464e6 - 1) < 0.001'

# Those of a processor are none of a GPU's, unless told what part of them.
first="$here/docs/first/first"
expect_data 0 env WEIR_BACKEND=opencl "$weir" trace --quiet --output here.json "$first"
expect_data 0 "$weir" sim learn here.json --output here.ini
expect_contains "$(cat here.ini)" "kind = cpu"
expect_message 3 "these costs were learnt on a processor, " "$weir" sim --gpu k20c --costs here.ini "$first"
expect_contains "$messages" "weir sim --scale 0.05"
expect_data 0 "$weir" sim --gpu k20c --costs here.ini --scale 0.25 --quiet --json "$first"
as_json '[e["count"] for e in data["runs"][0]["report"]["engines"] if e["name"] == "kernels"] == [4]'
expect_data 0 env WEIR_BACKEND=opencl "$weir" sim --gpu k20c --scale 0.25 --quiet --json "$first"
as_json '[e["count"] for e in data["runs"][0]["report"]["engines"] if e["name"] == "kernels"] == [4]'
expect_message 3 "is a number from 1e-06 to 1e+06, not 'much'" "$weir" sim --gpu k20c --scale much "$first"

# In CI: a needless wait loses the overlap on the GPU, and the job fails.
expect_data 0 "$weir" sim --gpu k20c --costs costs.ini --quiet "$chunked" depth
expect_data 0 "$weir" trace check sim.json --overlap 'copy/compute>=0.3'
expect_data 0 "$weir" sim --gpu k20c --costs costs.ini --quiet "$chunked" waits
expect_output 1 "0.0 %" "$weir" trace check sim.json --overlap 'copy/compute>=0.3'

# What is wrong with a model is said before anything runs.
expect_message 3 "hh200: no GPU of that name is known; did you mean 'h200'?" "$weir" sim --gpu k20c,hh200 "$chunked" depth
case "$messages" in *chunks*) fail "the program ran" ;; esac
expect_message 3 "did you mean 'copy_engines'?" "$weir" sim --gpu k20c --what-if copy_engine=1 "$chunked" depth
expect_message 3 "mine.ini:1: a file of costs has [kernel NAME] sections alone" "$weir" sim --gpu k20c --costs mine.ini "$chunked" depth
expect_message 3 "choose one of fixed, none" "$weir" sim --gpu k20c --host fast "$chunked" depth

# Programs that fail, and those that trace nothing.
expect_message 1 "spin" "$weir" sim --gpu k20c "$chunked" depth
expect_message 7 "chunked ended with 7 on k20c" "$weir" sim --gpu k20c --costs costs.ini "$chunked" fail
expect_message 1 "true wrote no trace to $PWD/sim.json: it opened no runtime of Weir's" "$weir" sim --gpu k20c true
expect_message 5 "sh ended with 5 on k20c, and wrote no trace" "$weir" sim --gpu k20c sh -c 'exit 5'
expect_message 127 "./absent cannot be run" "$weir" sim --gpu k20c ./absent
# shellcheck disable=SC2016
expect_message 1 "sim.json" "$weir" sim --gpu k20c sh -c 'echo x >"$WEIR_TRACE_FILE"'

# Wrong command lines.
expect_message 2 "weir sim needs a GPU, such as --gpu h200" "$weir" sim "$chunked"
expect_message 2 "weir sim runs a program 32 times at most; name fewer GPUs" "$weir" sim --gpu "$(printf 'k20c,%.0s' {1..33})" "$chunked"
expect_message 2 "/ is not a regular file" "$weir" sim --gpu k20c --output / "$chunked"
expect_message 1 "absent" "$weir" sim --gpu k20c --output absent/sim.json "$chunked"
expect_data 2 "$weir" sim --gpu k20c,c1060 --output "$(printf '%05000d' 0)" "$chunked"

