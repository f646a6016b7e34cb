#!/bin/bash
# weir perturb: programs with a missing wait, and mended, and what cannot be compared.
. tests/cli/cli.sh
export WEIR_MODULE_PATH="$here/lib/weir" WEIR_BACKEND=null
racy="$here/tests/plugins/racy/racy"
cp "$here/tests/plugins/racy/loader" "$here/tests/plugins/racy/loader_mended" .

# The page: its program, its commands, its figures.
sed -n '/^```c whole$/,/^```$/{/^```/d;p}' "$here/docs/perturb.md" >page.c
expect_status 0 diff page.c "$here/tests/plugins/racy/loader.c"
expect_quiet 1 "$weir" perturb --compare ./loader
changed="$(grep ' of 100 seeds changed' <<<"$output")"
expect_contains "$(cat "$here/docs/perturb.md")" "$changed"
again="$(tail -1 <<<"$output")"
expect_contains "$(cat "$here/docs/perturb.md")" "$again"
expect_contains "$output" "seed 2: standard output differs from line 1 on"
expect_contains "$output" "… and 57 more"
expect_not_contains "$output" "did not give the same"
export WEIR_PERTURB_REPORT="$PWD/order"
expect_data 0 sh -c "$again"
unset WEIR_PERTURB_REPORT
order="$(sed 's/.*"schedule":"\([0-9a-f]*\)".*/\1/' order)"
expect_contains "$(cat "$here/docs/perturb.md")" "choices, order $order"
expect_contains "$output" "batch 0: 700"
expect_output 0 "batch 0: 100" ./loader
expect_data 0 "$weir" perturb --compare ./loader_mended
expect_contains "$(cat "$here/docs/perturb.md")" "$(head -1 <<<"$output")"

# Exit statuses, files, one seed.
expect_output 1 "seed 2: ended with 1, and without perturb ended with 0" "$weir" perturb --seeds 4 "$racy" broken
expect_contains "$output" "2 of 4 seeds changed the result"
expect_output 1 "out.txt differs from line 1 on" "$weir" perturb --stop --output out.txt "$racy" broken out.txt
expect_contains "$output" "1 of 2 seeds changed the result"
expect_output 0 "0 of 1 seed changed the result" "$weir" perturb --seed 1 --seeds 1 "$racy" broken
expect_output 0 "Only exit statuses were compared; --compare adds what the program prints" "$weir" perturb --seed 3 --seeds 1 "$racy" broken
expect_output 0 "no two operations were without an order" "$weir" perturb --seeds 20 --compare "$racy" mended
expect_data 0 "$weir" perturb --seeds 4 "$racy" broken quiet
expect_output 1 "seed 2: standard output differs from line 1 on" "$weir" perturb --compare --seeds 4 "$racy" broken quiet
# The program reads nothing of what the command could read.
expect_data 0 "$weir" perturb --seeds 2 "$racy" mended wait <<<"a line"

# The other modes.
expect_output 1 "mode late: ended with 1" "$weir" perturb --mode late "$racy" broken
expect_contains "$output" "WEIR_PERTURB_MODE=late"
fill="$(grep -n 'weir_queue_fill(' "$here/tests/plugins/racy/racy.c" | cut -d: -f1)"
copy="$(grep -n 'weir_queue_copy(' "$here/tests/plugins/racy/racy.c" | head -1 | cut -d: -f1)"
expect_output 1 "The pair was reversed 1 time" "$weir" perturb --pair "racy.c:$fill,racy.c:$copy" "$racy" broken
expect_contains "$output" "The result changed."
expect_contains "$output" "WEIR_PERTURB_PAIR=racy.c:$fill,racy.c:$copy"
expect_output 0 "The pair was never reversed" "$weir" perturb --mode pair --pair "racy.c:$fill,racy.c:$copy" "$racy" mended

# JSON.
expect_json 1 'data["changed"] == 2 and data["seeds"] == 4 and data["reproduced"] is True' "$weir" perturb --json --seeds 4 --compare "$racy" broken
as_json '[c["seed"] for c in data["changes"]] == [2, 4] and data["changes"][0]["exit"] == 1'
as_json 'data["changes"][0]["output_line"] == 1 and data["unperturbed"]["exit"] == 0'
as_json '"WEIR_PERTURB_SEED=2" in data["changes"][0]["command"]'
expect_json 0 'data["changes"] == [] and data["reproduced"] is None and data["by_the_clock"] == 0' "$weir" perturb --json --seeds 2 "$racy" mended

# Programs that are killed, do not end, or end with an error as they are.
expect_output 1 "seed 2: ended by signal 9" "$weir" perturb --seeds 2 "$racy" broken kill
expect_data 1 "$weir" perturb --json --limit 1 --seeds 2 "$racy" broken hang
as_json 'data["changes"][0]["late"] is True and data["changes"][0]["exit"] is None'
expect_message 1 "sleep did not end within 1 seconds without the plugin" "$weir" perturb --limit 1 --seeds 2 sleep 10
expect_message 137 "sh ended by signal 9 (SIGKILL) without the plugin" "$weir" perturb sh -c 'kill -9 $$'
expect_message 127 "./no-such-program cannot be run" "$weir" perturb ./no-such-program
expect_message 1 "sh ends with 5 without the plugin" "$weir" perturb --seeds 2 sh -c 'echo why >&2; exit 5'
expect_contains "$messages" "why"
expect_contains "$messages" "sh opened no runtime of Weir's"
expect_message 1 "without the plugin gave different results" "$weir" perturb --compare "$racy" mended clock
expect_message 3 "no folder for temporary files can be created in /no/such" env TMPDIR=/no/such "$weir" perturb "$racy" mended
mkdir taken
expect_message 3 "taken cannot be removed before a run" "$weir" perturb --output taken "$racy" mended
expect_message 3 "what the program wrote is lost: folder: is a directory" "$weir" perturb --output folder mkdir folder

# An interrupt ends it, with what is known so far: within a run, and between two runs.
for delay in 0 0.003 0.006 0.009 0.012 0.015 0.018 0.021 0.024 0.027; do
    : >interrupted
    "$program" perturb --seeds 100000 "$racy" broken >interrupted 2>&1 &
    pid=$!
    expect_soon grep -q "^seed 4" interrupted
    sleep "$delay"
    kill -s TERM "$pid"
    expect_end 143 interrupted
    expect_contains "$(cat interrupted)" "seeds changed the result"
done

# Wrong command lines.
expect_message 2 "not 'lat'; did you mean late?" "$weir" perturb --mode lat "$racy"
expect_message 2 "mode pair needs two lines" "$weir" perturb --mode pair "$racy"
expect_message 2 "--pair takes two lines, as app.c:80,app.c:91, not 'a.c:1'" "$weir" perturb --pair a.c:1 "$racy"
expect_output 0 "The pair was never reversed" "$weir" perturb --pair a:b.c:80,app:1.c:91 "$racy" mended
expect_message 2 "--pair belongs to mode pair, and the mode is late" "$weir" perturb --mode late --pair a.c:1,a.c:2 "$racy"
printf '[weir]\nplugins = ,\n' >wrong.ini
expect_data 3 env WEIR_CONFIG=wrong.ini "$weir" perturb "$racy"

# Other plugins of the configuration stay, and see what the program submits.
printf '[weir]\nbackend = null\nplugins = trace\n[trace]\nfile = traced.json\n' >traced.ini
expect_output 1 "env 'WEIR_PLUGINS=trace, perturb'" env WEIR_CONFIG="$PWD/traced.ini" "$weir" perturb --seeds 2 "$racy" broken
[ -s traced.json ] || fail "there is no trace"
