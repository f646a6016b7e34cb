#!/bin/bash
# weir run arr-coc --devices, on the two devices of PoCL: the results are those of one.
. tests/cli/cli.sh
export POCL_DEVICES="pthread basic"
copy_photos

expect_data 0 "$weir" run arr-coc --config small.ini --output one --quiet "${photos[@]/%/.png}"
for list in 1,0 all; do
    expect_data 0 "$weir" run arr-coc --config small.ini --devices "$list" --output "$list" --json "${photos[@]/%/.png}"
    as_json 'data["frames"] == 4 and len(data["devices"]) == 2 and data["first_frames"] == 2'
    as_json 'all(d["frames"] > 0 and d["covered_ns"] > 0 and d["device"] for d in data["devices"])'
    as_json 'sum(d["frames"] for d in data["devices"]) == 4'
    as_json 'all(d["wall_ns"] <= data["wall_ns"] for d in data["devices"])'
    as_json 'data["warm"]["frames"] == 2 and 0 < data["warm"]["wall_ns"] < data["wall_ns"]'
    as_json '[i["name"] for i in data["images"]] == [n + str(i) for i in range(1, 3) for n in ("coffee", "chelsea")]'
    expect_same "$list" one "${photos[@]}"
done
# The files name the device that ran their image, and both ran some.
names="$(python3 -c 'import glob, json
print(len({json.load(open(p))["device"]["name"] for p in glob.glob("1,0/*.json")}))')"
[ "$names" = 2 ] || fail "the images' files name $names devices"

# One image many times: every device gives the same bits, or the run fails.
expect_data 0 "$weir" run arr-coc --config small.ini --devices 0,1 --output again --repeat 9 coffee1.png
grep -q '^first  *2 frames in ' <<<"$output" || fail "it does not count the first frames: $output"
grep -q '^warm  *7 frames in ' <<<"$output" || fail "it does not count the warm frames: $output"
[ "$(grep -c '^device  ' <<<"$output")" -ge 3 ] || fail "it does not list the devices: $output"
grep -qE '^0: .* [0-9]+ .*%$' <<<"$output" || fail "it does not tell what device 0 did: $output"
grep -qE '^1: .* [0-9]+ .*%$' <<<"$output" || fail "it does not tell what device 1 did: $output"
cmp one/coffee1.tokens.npy again/coffee1.tokens.npy || fail "--repeat on two devices differs"

# One frame, on one of two devices; and devices without times.
expect_data 0 "$weir" run arr-coc --config small.ini --devices 0,1 --output few coffee1.png
grep -q '^first  *1 frame in ' <<<"$output" || fail "it does not count one frame: $output"
{ cat small.ini && printf '\n[pipeline]\ntiming = 0\n'; } >untimed.ini
expect_data 0 "$weir" run arr-coc --config untimed.ini --devices all --output few "${photos[@]/%/.png}"
grep -qE '^1: .* [0-9]+ *$' <<<"$output" || fail "it does not tell what device 1 did: $output"

# An image that cannot be read in the middle; the others are run.
head -c 3000 coffee1.png >coffee2.png
expect_message 1 "coffee2.png" "$weir" run arr-coc --config small.ini --devices 0,1 --output torn "${photos[@]/%/.png}"
expect_contains "$messages" "1 of 4 images failed"
expect_files torn chelsea2

# Bad lists.
refused 2 "--devices takes indices from \`weir devices\`, such as 0,1, or all; not ''" "$weir" run arr-coc --config small.ini coffee1.png --devices 0,
refused 2 "not 'cpu'" "$weir" run arr-coc --config small.ini coffee1.png --devices cpu
refused 2 "not '-1'" "$weir" run arr-coc --config small.ini coffee1.png --devices 0,-1
refused 2 "not '1x'" "$weir" run arr-coc --config small.ini coffee1.png --devices 1x
refused 2 "--devices names device 1 twice" "$weir" run arr-coc --config small.ini coffee1.png --devices 1,0,01
refused 2 "--devices takes at most 64 devices" "$weir" run arr-coc --config small.ini coffee1.png --devices "$(seq -s, 0 64)"
refused 3 "7" "$weir" run arr-coc --config small.ini coffee1.png --devices 0,7
