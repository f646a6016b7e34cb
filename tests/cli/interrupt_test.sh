#!/bin/bash
# Signals during a run. An interrupt: finished results are kept, no file is written in part, and the exit code has the
# signal's number. SIGKILL: every result file is whole, and the next run works in the same folder.
. tests/cli/cli.sh
set -m # or children would ignore SIGINT

count=60
for i in $(seq -w "$count"); do
    cp "$images/coffee.png" "photo$i.png"
done
expect_data 0 "$weir" run arr-coc --config small.ini --output warm --quiet photo01.png

# interrupted SIGNAL CODE DIRECTORY ARGUMENT...
interrupted()
{
    local signal="$1" code="$2" directory="$3" status=0 first finished
    shift 3
    "$program" run arr-coc --config small.ini --output "$directory" "$@" >table 2>messages &
    local pid=$!
    expect_soon test -e "$directory/photo01.json"
    kill -s "$signal" "$pid"
    wait "$pid" || status=$?
    if grep -q "$tool_crash" messages; then
        rm -rf "$directory"
        interrupted "$signal" "$code" "$directory" "$@"
        return
    fi
    [ "$status" -eq "$code" ] || fail "$signal: ended with $status: $(cat messages)"
    expect_contains "$(cat messages)" "finishing work in progress"
    finished="$(find "$directory" -name '*.json' | wc -l)"
    [ "$finished" -ge 1 ] && [ "$finished" -lt "$count" ] || fail "$finished images are finished"
    expect_contains "$(cat messages)" "$finished of $count images are finished and kept"
    for first in "$directory"/*.json; do
        expect_files "$directory" "$(basename "$first" .json)"
    done
    [ "$(find "$directory" -type f | wc -l)" -eq $((6 * finished)) ] ||
        fail "there is more: $(ls -A "$directory")"
    [ -z "$(find "$directory" -name '.weir*')" ] || fail "temporary files are left"
}

interrupted INT 130 first photo*.png
interrupted TERM 143 second photo*.png

# While one image is run again and again: its first results are kept.
WEIR_PLUGINS=trace WEIR_TRACE_FILE=again.trace "$program" run arr-coc --config small.ini \
    --output again --repeat 1000000000 photo01.png >table 2>messages &
pid=$!
expect_work again.trace 100
kill -s INT "$pid"
expect_end 130 messages
expect_files again photo01
cmp again/photo01.tokens.npy warm/photo01.tokens.npy || fail "other results than of a whole run"
expect_contains "$(cat table)" "frames/s"

few=(photo0*.png photo1*.png)

# killed NUMBER: kills a run when the results of that image begin to appear.
killed()
{
    local directory="killed$1" pid file name status=0
    "$program" run arr-coc --config small.ini --output "$directory" "${few[@]}" >table 2>messages &
    pid=$!
    for _ in $(seq 6000); do
        [ -z "$(find "$directory" -name "*photo$1*" -o -name '.weir*' 2>/dev/null)" ] || break
        sleep 0.01
    done
    kill -s KILL "$pid"
    wait "$pid" 2>/dev/null || status=$?
    [ "$status" -eq 137 ] || fail "ended with $status: $(cat messages)"
    for file in "$directory"/photo*; do
        [ -e "$file" ] || continue
        name="$(basename "$file")"
        case "$name" in
        *.json) [ "$(tail -c 2 "$file")" = "}" ] || fail "$name is half-written" ;;
        *) cmp "$file" "warm/photo01.${name#photo*.}" || fail "$name is half-written" ;;
        esac
    done
    [ "$(find "$directory" -name '*.json' | wc -l)" -lt ${#few[@]} ] || fail "it was not in mid-run"
}

for number in 01 03 08; do
    killed "$number"
done

expect_data 0 "$weir" run arr-coc --config small.ini --output killed01 --quiet "${few[@]}"
for photo in "${few[@]%.png}"; do
    expect_files killed01 "$photo"
done
