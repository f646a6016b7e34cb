#!/bin/bash
# weir sim sweep: the best of many settings, of a program and of the model.
. tests/cli/cli.sh
export WEIR_BACKEND=null WEIR_MODULE_PATH="$here/lib/weir"

chunked="$here/tests/cli/chunked"

# One copied GB takes a second, and so does a kernel of all blocks: of 16 MiB in n chunks, H and K and D
# take 16.777216 ms / n each.
cat >unit.ini <<'TEXT'
[gpu]
name = unit
queues = stream
copy_engines = 2
kernels = 1
h2d_gb_per_s = 1
d2h_gb_per_s = 1

[kernel spin]
per_block_ns = 65536
TEXT

# sweep OPTION... -- COMMAND...
sweep()
{
    expect_data 0 "$weir" sim sweep --gpu ./unit.ini "$@"
}

# All combinations, the first key slowest; the best is the first of the best ones.
sweep --over chunks=1,2,4 --over order=depth,breadth --quiet --json \
    "$chunked" '{order}' --chunks 8 --queues=64
[ -z "$messages" ] || fail "quiet is not: $messages"
as_json '[tuple(run["settings"].values()) for run in data["runs"]] == [
    (chunks, order) for chunks in "124" for order in ("depth", "breadth")]'
as_json '[run["span_ns"] for run in data["runs"]] == [
    (int(run["settings"]["chunks"]) + 2) * 16777216 // int(run["settings"]["chunks"])
    for run in data["runs"]]'
as_json 'data["best"][0]["settings"] == {"chunks": "4", "order": "depth"}'
as_json 'data["best"][0]["trace"].endswith("/sim.json") and data["best"][0]["gpu"] == "./unit.ini"'
as_json 'data["best"][0]["within_1_percent"] == data["best"][0]["settings"]'
as_json 'abs(data["best"][0]["copies_hidden"] - 2 / 3) < 1e-6 and data["best"][0]["idle"] == 0'
as_json 'data["runs"][0]["copies_hidden"] == 0 and data["runs"][0]["bound_ns"] == 16777216'
expect_data 0 "$weir" trace check sim.json 'span<=25.2ms'
expect_data 1 "$weir" trace check sim.json 'span<=25.1ms'
[ "$(echo sim*)" = sim.json ] || fail "there are other traces: $(echo sim*)"

# Keys of the model beside those of the program, and ranges.
sweep --over copy_engines=1..2 --over 'chunks = 64, 1' --json --quiet "$chunked" depth --chunks 1
as_json '[run["settings"]["copy_engines"] for run in data["runs"]] == ["1", "1", "2", "2"]'
as_json '[run["span_ns"] for run in data["runs"]][1::2] == 2 * [3 * 16777216]'
as_json 'data["runs"][2]["span_ns"] == 66 * 16777216 // 64 < data["runs"][0]["span_ns"]'
as_json 'data["best"][0]["settings"] == {"copy_engines": "2", "chunks": "64"}'
sweep --over my-part.seed=9223372036854775806..9223372036854775807 --json --quiet "$chunked" depth --chunks 1
as_json '[int(run["settings"]["my-part.seed"]) for run in data["runs"]] == [2**63 - 2, 2**63 - 1]'

# Keys of the configuration reach the program through its environment.
# shellcheck disable=SC2016
sweep --over pipeline.slots=1,2 --over 'my-part.max-depth=7' --json --quiet sh -c \
    'exec "$1" depth --chunks "$WEIR_PIPELINE_SLOTS" --queues $((WEIR_MY_PART_MAX_DEPTH - 6))' sh "$chunked"
as_json '[run["span_ns"] for run in data["runs"]] == 2 * [3 * 16777216]'
as_json 'data["runs"][1]["settings"] == {"pipeline.slots": "2", "my-part.max-depth": "7"}'
# shellcheck disable=SC2016
expect_data 0 "$weir" sim --gpu ./unit.ini --what-if pipeline.slots=2 --json --quiet sh -c \
    'exec "$1" depth --chunks "${WEIR_PIPELINE_SLOTS-1}"' sh "$chunked"
as_json '[run["report"]["span_ns"] for run in data["runs"]] == [3 * 16777216, 2 * 16777216]'

# The table: a row for each, and the best; with the first that takes hardly more.
sweep --over h2d_gb_per_s=0.5,0.995,1 "$chunked" depth --chunks 1
expect_contains "$output" "gpu         h2d_gb_per_s     span  of the best  copies hidden   idle  bound"
grep -qE '^\./unit\.ini +0\.5 +67\.1 ms +1\.333 +0\.0 % +0\.0 % +33\.6 ms to_device$' <<<"$output" ||
    fail "no row of 0.5: $output"
expect_contains "$output" \
    "best on ./unit.ini: h2d_gb_per_s=1, 50.3 ms; h2d_gb_per_s=0.995 takes 0.2 % more"
expect_contains "$messages" "$PWD/sim.json: the trace of the best on ./unit.ini"
expect_not_contains "$messages$output" "1 chunks"

# Several GPUs: the best of each, with its trace; curves.
printf '[kernel spin]\nper_block_ns = 4200\n' >costs.ini
expect_data 0 "$weir" sim sweep --gpu c1060,k20c --costs costs.ini --output two.json --plot lines.svg \
    --over chunks=1,2,4 --over order=depth,breadth "$chunked" '{order}' --chunks 1
expect_contains "$output" "best on c1060: chunks=2, order=breadth, 8.85 ms"
expect_contains "$output" "best on k20c: chunks=4, order=depth"
[ "$(echo two*)" = "two.1.c1060.json two.2.k20c.json" ] || fail "the traces are $(echo two*)"
expect_data 0 "$weir" trace check two.1.c1060.json 'span<=8.9ms'
for text in '>chunked on modelled GPUs<' '>c1060, order=breadth<' '>k20c, order=depth<' '>span, ms<'; do
    grep -qF "$text" lines.svg || fail "the plot lacks $text"
done
[ "$(grep -c '<polyline' lines.svg)" -eq 4 ] || fail "the plot has other lines"
sweep --over order=depth,waits --over chunks=2,4 --plot bars.svg --quiet \
    "$chunked" '{order}' --chunks 1
grep -qF '>waits<' bars.svg || fail "the plot lacks the name of a bar"
[ "$(grep -c 'fill-opacity' bars.svg)" -eq 4 ] || fail "the plot has other bars"

# Wrong command lines, and models, before anything runs.
# refused CODE SENTENCE OPTION...
refused()
{
    local code="$1" sentence="$2"
    shift 2
    expect_data "$code" "$weir" sim sweep "$@"
    expect_contains "$messages" "$sentence"
    expect_not_contains "$messages" "chunks"
}
refused 2 "weir sim sweep needs a GPU, such as --gpu h200" --over a=1 "$chunked"
refused 2 "weir sim sweep needs values, such as --over slots=1,2,3" --gpu k20c "$chunked"
refused 2 "--gpu names no GPU" --gpu , --over a=1 "$chunked"
for over in slots slots= =1 "slots=,"; do
    refused 2 "--over is KEY=VALUE,..., such as slots=1,2,3 or slots=1..3, not '$over'" \
        --gpu k20c --over "$over" "$chunked"
done
refused 2 "--over slots is given twice; list all its values once" \
    --gpu k20c --over slots=1 --over slots=2 "$chunked"
refused 2 "--over is given 8 times at most" --gpu k20c --over={a,b,c,d,e,f,g,h,i}=1 "$chunked"
refused 2 "--over has 64 items at most" --gpu k20c --over slots=0..100 "$chunked"
refused 2 "--gpu has 64 items at most" --gpu "$(printf 'k20c,%.0s' {1..65})" --over a=1 "$chunked"
refused 2 "these are more than 4096 runs; name fewer values" \
    --gpu k20c --over a=1..64 --over b=1..64 --over c=1,2 "$chunked"
refused 2 "a plot has room for 12 lines of 64 values, and these are 13 of 1" \
    --gpu k20c --over a=1 --over b=1..13 --plot p.svg "$chunked"
refused 2 "a plot has room for 12 lines of 24 values, and these are 1 of 25" \
    --gpu k20c --over "a=x,$(echo {1..24} | tr ' ' ,)" --plot p.svg "$chunked"
refused 1 "absent/p.svg" --gpu k20c --over copy_engines=1 --plot absent/p.svg "$chunked"
refused 3 "hh200: no GPU of that name is known; did you mean 'h200'?" \
    --gpu hh200 --over copy_engines=1 "$chunked"
refused 3 "copy_engines=9223372036854775808..9223372036854775809" \
    --gpu k20c --over copy_engines=9223372036854775808..9223372036854775809 "$chunked"
refused 3 "copy_engines=4" --gpu k20c --over copy_engines=1..4 "$chunked"
refused 3 "[gpu] has no key 'slots'" --gpu k20c --over slots=1 "$chunked"
expect_contains "$messages" "slots=1: taken for keys of the model, since COMMAND has neither an option --KEY"
refused 2 "/ is not a regular file" --gpu k20c --over copy_engines=1 --output / "$chunked"

# Programs that fail end the sweep, and leave nothing.
rm -f sim*
expect_message 7 "chunked ended with 7 on ./unit.ini with order=fail" "$weir" sim sweep --gpu ./unit.ini --over order=fail,depth "$chunked" '{order}'
expect_message 5 "sh ended with 5 on ./unit.ini with code=5, and wrote no trace" "$weir" sim sweep --gpu ./unit.ini --over code=5 sh -c 'exit {code}'
expect_message 1 "true wrote no trace" "$weir" sim sweep --gpu ./unit.ini --over name=true,false '{name}'
[ "$(echo sim*)" = 'sim*' ] || fail "there are traces: $(echo sim*)"
# shellcheck disable=SC2016
expect_data 130 "$weir" sim sweep --gpu ./unit.ini --over order=depth,breadth \
    sh -c 'kill -INT $PPID; exec "$@"' sh "$chunked" '{order}'
rm -f sim*
expect_data 1 "$weir" sim sweep --gpu ./unit.ini --over order=depth \
    sh -c 'mkdir sim.json; exec "$@"' sh "$chunked" '{order}'
expect_contains "$messages" "cannot become $PWD/sim.json: Is a directory"
