#!/bin/bash
# weir run arr-coc --ranks: several processes share the images, and rank 0 writes what one would have.
# The ranks are the program itself: what starts them tries again where a sanitizer crashed in one.
. tests/cli/cli.sh
export POCL_DEVICES="pthread basic"
copy_photos

expect_data 0 "$weir" run arr-coc --config small.ini --output one --quiet "${photos[@]/%/.png}"

# Three ranks: the last round has one frame. Each has a device of its own in turn.
expect_data 0 "$weir" launch -n 3 --no-prefix "$program" run arr-coc --config small.ini --ranks --output three --json \
    "${photos[@]/%/.png}"
expect_same three one "${photos[@]}"
as_json 'data["frames"] == 4 and data["first_frames"] == 3 and data["warm"]["frames"] == 1'
as_json '[d["frames"] for d in data["devices"]] == [2, 1, 1] and len({d["device"] for d in data["devices"]}) == 2'
as_json 'all(i["written"] and i["runs"] == 1 for i in data["images"]) and data["frames_failed"] == 0'
as_json '0 < data["latency_ns"]["p50"] <= data["latency_ns"]["max"] <= data["wall_ns"]'
as_json 'all(s["busy_ns"] > 0 for s in data["stages"]) and data["warm"]["stages"] == []'
messages="$(grep -v "the first frame takes long" <<<"$messages" || true)"
[ -z "$messages" ] || fail "the ranks said: $messages"

# Repeated: results of different ranks are compared; the table has a row for each rank.
expect_data 0 "$weir" launch -n 2 --no-prefix "$program" run arr-coc --config small.ini --ranks --repeat 5 --output two coffee1.png
expect_same two one coffee1
[ "$(python3 -c 'import json; print(json.load(open("two/coffee1.json"))["times"]["runs"])')" = 5 ] ||
    fail "the JSON does not count the runs"
grep -qE '^0: .* 3 .*%$' <<<"$output" || fail "it does not tell what rank 0 did: $output"
grep -qE '^1: .* 2 .*%$' <<<"$output" || fail "it does not tell what rank 1 did: $output"
[ "$(grep -c '^images ' <<<"$output")" = 1 ] || fail "more than one rank printed: $output"

# One rank, without a launcher; and more ranks than frames.
expect_data 0 "$weir" run arr-coc --config small.ini --ranks --output alone --quiet chelsea1.png
expect_same alone one chelsea1
expect_data 0 "$weir" launch -n 2 "$program" run arr-coc --config small.ini --ranks --output few --quiet chelsea1.png
expect_same few one chelsea1
[ -z "$output$messages" ] || fail "--quiet printed: $output$messages"

# An image that one rank cannot read fails; the others are run. Nothing but bad images.
head -c 3000 coffee1.png >torn.png
echo text >text.png
expect_data 1 "$weir" launch -n 2 --no-prefix "$program" run arr-coc --config small.ini --ranks --output torn coffee1.png \
    torn.png text.png chelsea1.png
expect_same torn one coffee1 chelsea1
expect_contains "$messages" "rank 1: torn.png"
expect_contains "$messages" "rank 0: text.png"
expect_contains "$messages" "2 of 4 images failed"
expect_data 1 "$weir" launch -n 2 --no-prefix "$program" run arr-coc --config small.ini --ranks --output none text.png
expect_nothing none

# Ranks that do not agree, one that ends in the middle, an output that cannot be written, a wrong command line.
cat >differ.sh <<'TEXT'
exec "$@" --config "$([ "$RANK" = 0 ] && echo small.ini || echo other.ini)" coffee1.png
TEXT
sed 's/grid = 16/grid = 8/' small.ini >other.ini
expect_message 1 "gather" "$weir" launch -n 2 --no-prefix sh differ.sh "$program" run arr-coc --ranks --output differ
expect_contains "$messages" " u8, and rank"
expect_nothing differ
# Ranks with different images, in the same count of rounds and in another: each fails by itself.
cat >share.sh <<'TEXT'
trap '' TERM # of the launch, after the first rank that fails
few=$1
all=$2
shift 2
[ "$RANK" = "$few" ] && all=coffee1.png
"$@" $all
echo $? >"code.$RANK"
exit 1
TEXT
for all in "coffee1.png chelsea1.png" "${photos[*]/%/.png}"; do
    for few in 0 1; do
        expect_message 1 "; give all ranks the same images and the same --repeat" "$weir" launch -n 2 --grace 100 --no-prefix \
            sh share.sh $few "$all" "$program" run arr-coc --config small.ini --ranks --output share
        counts=("$(wc -w <<<"$all")" "$(wc -w <<<"$all")")
        counts[few]=1
        expect_contains "$messages" "rank 1 has ${counts[1]} frames to run, and rank 0 has ${counts[0]};"
        [ "$(cat code.0 code.1)" = $'1\n1' ] || fail "the ranks ended with $(cat code.0 code.1)"
        rm code.0 code.1
    done
done

# A setting that does not fit is told by rank 0.
{ cat small.ini && printf '\n[pipeline]\nfull = drop-oldest\n'; } >drop.ini
expect_message 0 "full = drop-oldest is not for this command" "$weir" launch -n 2 --no-prefix "$program" run arr-coc \
    --config drop.ini --ranks --output drop coffee1.png chelsea1.png
[ "$(grep -c "drop-oldest" <<<"$messages")" = 1 ] || fail "more than one rank warned: $messages"

cat >leaves.sh <<'TEXT'
[ "$RANK" = 0 ] || set -- "$@" --weights missing.safetensors
exec "$@" coffee1.png
TEXT
expect_message 1 "missing.safetensors" "$weir" launch -n 2 --no-prefix sh leaves.sh "$program" run arr-coc --config small.ini --ranks --output left
echo text >file
expect_message 1 "file/below" "$weir" launch -n 2 --no-prefix "$program" run arr-coc --config small.ini --ranks --output file/below coffee1.png
expect_message 2 "--ranks and --devices cannot be combined" "$weir" run arr-coc --ranks --devices 0,1 coffee1.png

# A rank that is interrupted ends all: the others say which.
cat >marked.sh <<'TEXT'
echo $$ >"pid.$RANK"
# Rank 0 ends by what rank 1 tells it, not by the launch's signal. Rank 1 puts its number into the name of its trace.
if [ "$RANK" = 0 ]; then trap '' TERM; else export WEIR_PLUGINS=trace WEIR_TRACE_FILE=rank.trace; fi
exec "$@"
TEXT
set -m # or the ranks would ignore SIGINT
"$program" launch -n 2 --grace 100 --no-prefix sh marked.sh "$program" run arr-coc --config small.ini --ranks --repeat 1000000 \
    --output ended --json coffee1.png >out 2>err &
pid=$!
expect_work rank.rank1.trace 300
kill -s INT "$(cat pid.1)"
! wait "$pid" || fail "with a rank that was interrupted it ended with 0"
expect_contains "$(cat err)" "rank 1 was interrupted by signal 2"
output="$(cat out)"
as_json 'data["frames"] == sum(d["frames"] for d in data["devices"]) and len(data["devices"]) == 2'
as_json '0 < data["images"][0]["runs"] <= data["frames"]'
