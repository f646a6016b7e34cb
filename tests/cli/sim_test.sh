#!/bin/bash
# weir sim learn: what kernels cost, from traces.
. tests/cli/cli.sh

# launch NAME BLOCKS START DURATION [ARGUMENTS]: a row for a launch of blocks of 64 work-items.
sequence=0
launch()
{
    printf '{"ph":"X","name":"x","pid":0,"tid":1,"cat":"kernel","ts":%s,"dur":%s,"args":{' "$3" "$4"
    printf '"weir.sequence":%s,"weir.kind":"launch","weir.engine":"kernels",' "$((sequence += 1))"
    printf '"weir.name":"%s","grid":[%s,1,1],"block":[64,1,1]%s}},\n' "$1" "$2" "${5-}"
}

# made FILE [DEVICE [FIELDS]]: a trace with the rows that come from standard input.
made()
{
    {
        cat <<'TEXT'
{
"schemaVersion": 1,
"weir": {"format":1,"version":"0.1.0","program":"made","backend":"null","process":4711},
"traceEvents": [
{"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"0","weir.name":"DEVICE"FIELDS}},
{"ph":"M","name":"thread_name","pid":0,"tid":1,"args":{"name":"run","weir.label":"run"}},
TEXT
        cat
        cat <<'TEXT'
{"ph":"M","name":"weir_end","pid":4711,"tid":0,"args":{"name":"end","weir.end":100000000}}
]
}
TEXT
    } | sed "s/DEVICE/${2-a device}/; s/FIELDS/${3-}/" >"$1"
}

# 3 us, and 2 ns for each work-item; `sum` has one size.
for i in 1 2 3 4 5; do
    launch scale $((i * 1000)) $((i * 10000)) $((3 + i * 128))
done >rows
{
    cat rows
    launch sum 10 90000 7.000
    launch sum 10 90100 7.500
    launch sum 10 90200 7.000
} | made a.json

expect_quiet 0 "$weir" sim learn a.json
expect_contains "$output" "[kernel scale]
; 5 launches of 5 sizes; error: median 0.00 %, worst 0.00 %
fixed_ns = 3000
per_item_ns = 2"
expect_contains "$output" "[kernel sum]
; 3 launches of 1 size, so nothing is known of others; error: median 0.00 %, worst 6.67 %
fixed_ns = 7000"

expect_contains "$output" "[learnt]
device = a device
"
expect_not_contains "$output" "kind =" # another program's trace does not tell

# The device and its kind, of which there is one.
cpu=',"weir.device_kind":1'
gpu=',"weir.device_kind":2'
made here.json "some CPU" "$cpu" <rows
made there.json "some GPU" "$gpu" <rows
made other.json "other GPU" "$gpu" <rows
expect_data 0 "$weir" sim learn here.json
expect_contains "$output" "[learnt]
device = some CPU
kind = cpu
"
sed 's/"pid":0/"pid":3/g' here.json >third.json
expect_output 0 "device = some CPU" "$weir" sim learn third.json
expect_output 0 "kind = gpu" "$weir" sim learn there.json other.json
expect_contains "$messages" "other.json has kernels of 'other GPU', and those before ran on 'some GPU'"
expect_message 1 "here.json has kernels of 'some CPU', a cpu, and those before ran on 'some GPU', a gpu" "$weir" sim learn there.json here.json

# Into a file, with a table of how well it fits.
expect_output 0 "kernel  launches  sizes  median error   worst  nanoseconds" "$weir" sim learn a.json --output costs.ini
expect_contains "$output" "scale          5      5        0.00 %  0.00 %  3000 + 2 * items"
expect_contains "$(cat costs.ini)" "[kernel scale]"
expect_message 1 "missing" "$weir" sim learn a.json --output missing/costs.ini

# Bytes of buffers and scalar arguments.
for i in 1 2 3 4 5 6; do
    launch product 100 $((i * 10000)) $((10 + i * i * 3 % 7 * 64)) \
        ",\"weir.argument_bytes\":$((i * 4096)),\"weir.scalars\":[[2,$((i * i * 3 % 7 * 10))],[5,-0.5]]"
done | made product.json
expect_data 0 "$weir" sim learn product.json
expect_contains "$output" "[kernel product]
; 6 launches of 6 sizes; error: median 0.00 %, worst 0.00 %
fixed_ns = 10000
per_argument_2_ns = 6400"
expect_output 0 "10000 + 6400 * argument 2" "$weir" sim learn product.json --output product.ini

# Several traces are one set of launches; those beside another kernel, and those without a start,
# are left out.
{
    launch sum 20 100 14
    launch sum 20 105 1000
    launch late 1 9000 7 ',"weir.start_is_earliest":true'
} | made b.json
expect_output 0 "; left out: 2 beside another kernel" "$weir" sim learn a.json b.json
expect_contains "$messages" "the kernel 'late' is left out: the traces have no start of its launches"
expect_message 1 "the kernel 'sum' is left out: all of its launches ran beside another kernel; trace a run on one queue" "$weir" sim learn b.json
expect_contains "$messages" "no kernel's cost can be found in these traces"

# Names that no section can have.
{
    launch 'at[3]' 1 100 5
    launch ' x' 1 200 5
    launch '' 1 300 5
    launch "$(printf '%0200d' 0)" 1 400 5
    launch 'void f<float, 4>(float*)' 1 500 5
} | made c.json
expect_output 0 "[kernel void f<float, 4>(float*)]" "$weir" sim learn c.json
expect_contains "$messages" "the kernel 'at[3]' is left out: its name cannot be that of a section"
expect_contains "$messages" "the kernel ' x' is left out: its name cannot be that of a section"
expect_contains "$messages" "the kernel '' is left out: it has no name"
[ "$(grep -c '^\[kernel' <<<"$output")" -eq 1 ] || fail "other names have sections: $output"

# What holds no kernels, or is no trace.
made none.json </dev/null
expect_data 1 "$weir" sim learn none.json
[ -z "$output" ] || fail "a trace without kernels gave: $output"
expect_contains "$messages" "none.json holds no kernel with times; trace a program that launches kernels"
echo '[]' >bad.json
expect_message 1 "bad.json" "$weir" sim learn a.json bad.json
expect_message 1 "absent.json" "$weir" sim learn absent.json
expect_message 2 "weir sim learn needs a trace" "$weir" sim learn
expect_message 2 "did you mean 'learn'?" "$weir" sim lern a.json
