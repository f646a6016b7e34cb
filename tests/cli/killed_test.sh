#!/bin/bash
# A SIGKILL during a run: every result file is whole, and the next run works in the same
# folder.
. tests/cli/cli.sh

count=24
for i in $(seq -w "$count"); do
    cp "$images/coffee.png" "photo$i.png"
done
expect_data 0 "$weir" run arr-coc --config small.ini --output warm --quiet photo01.png

# killed NUMBER: kills a run when the results of that image begin to appear.
killed()
{
    local directory="killed$1" pid file name status=0
    "$program" run arr-coc --config small.ini --output "$directory" photo*.png >table 2>messages &
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
    [ "$(find "$directory" -name '*.json' | wc -l)" -lt "$count" ] || fail "it was not in mid-run"
}

for number in 01 03 08; do
    killed "$number"
done

expect_data 0 "$weir" run arr-coc --config small.ini --output killed01 --quiet photo*.png
for i in $(seq -w "$count"); do
    expect_files killed01 "photo$i"
done
