#!/bin/bash
# compare.py on small tables: figures without a partner, rows that look alike, and medians with and without
# the parts that run alone. In place of `weir bench` a script gives the predictions.
. tests/support/shell.sh

here=tests/bench/sim
out="$TEST_TMPDIR/out"
mkdir -p "$out"
cat >"$TEST_TMPDIR/weir" <<'TEXT'
#!/bin/bash
# bench NAME --turns 1 --quiet --output FILE
cp "$PREDICTED/$2.json" "${@: -1}"
TEXT
chmod +x "$TEST_TMPDIR/weir"
export PREDICTED="$TEST_TMPDIR"
printf 'jobs 60 1 overlap --size 1M\n' >"$TEST_TMPDIR/cases.txt"

# tables FILE ALONE WAY...: a part that runs alone, and ways with 1, 2, ... queues.
tables()
{
    local file="$1" rows="" queues=0 ms
    printf '{"tables": {"alone": [{"what": "bare copy up", "ms": {"median": %s, "min": 1, "max": 9}}], "ways": [' \
        "$2" >"$file"
    for ms in "${@:3}"; do
        queues=$((queues + 1))
        rows+="${rows:+, }{\"order\": \"depth\", \"queues\": $queues, \"ms\": {\"median\": $ms, \"min\": $ms, \"max\": $ms}}"
    done
    printf '%s]}}\n' "$rows" >>"$file"
}
compare=(python3 "$here/compare.py" "$out" --weir "$TEST_TMPDIR/weir" --cases "$TEST_TMPDIR/cases.txt")

# The part alone is told exactly; of the others one is 10 % too low and one 20 % too high.
tables "$out/jobs.json" 4 10 10
tables "$TEST_TMPDIR/overlap.json" 4 9 12
expect_status 0 "${compare[@]}"
expect_contains "$output" "jobs: 3 figures; error: median 10.0 %"
expect_contains "$output" "without parts that run alone: 2 figures; error: median 20.0 %, worst 20.0 %"
expect_contains "$output" "all: 3 figures; error: median 10.0 %, worst 20.0 %"
expect_not_contains "$output" "partner"

# Measured but not predicted, and the other way round.
tables "$out/jobs.json" 4 10 10 10
expect_status 1 "${compare[@]}"
expect_contains "$output" "  not predicted: ms of ways: depth 3"
expect_contains "$output" "compare: 1 figures have no partner"
expect_contains "$output" "all: 3 figures;"
expect_status 0 "${compare[@]}" --partial
expect_contains "$output" "  not predicted: ms of ways: depth 3"
tables "$out/jobs.json" 4 10
expect_status 1 "${compare[@]}"
expect_contains "$output" "  not measured: ms of ways: depth 2"
tables "$out/jobs.json" 4 10 0
expect_status 1 "${compare[@]}"
expect_contains "$output" "  measured as 0: ms of ways: depth 2"

# Bytes that backends align in their own ways.
tables "$out/jobs.json" 4 10 10
sed -i 's/"queues": 2/"queues": 2, "bytes_out": 230176/' "$out/jobs.json"
sed 's/230176/230272/; s/"median": 10/"median": 9/' "$out/jobs.json" >"$TEST_TMPDIR/overlap.json"
expect_status 0 "${compare[@]}"
expect_not_contains "$output" "partner"
tables "$TEST_TMPDIR/overlap.json" 4 9 12

# What calls the driver itself is listed, and needs no partner.
tables "$out/jobs.json" 4 10 10
sed -i 's/"ways": \[/"ways": [{"order": "raw CUDA, graph", "ms": {"median": 3, "min": 3, "max": 3}}, /' "$out/jobs.json"
expect_status 0 "${compare[@]}"
expect_contains "$output" "  not predicted (of the driver): ms of ways: raw CUDA, graph"

# Two rows that look alike are two figures.
for file in "$out/jobs.json" "$TEST_TMPDIR/overlap.json"; do
    tables "$file" 4 10 10
    sed -i 's/"queues": 2/"queues": 1/' "$file"
done
expect_status 0 "${compare[@]}"
expect_contains "$output" "all: 3 figures;"
expect_contains "$output" "ms of ways: depth 1 number 2"
