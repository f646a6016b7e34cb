#!/bin/bash
# The two scripts on a modelled GPU in place of a real one: what is measured there is predicted from the
# model and the costs that were found there.
. tests/support/shell.sh
unset WEIR_CONFIG WEIR_SIM_CHANGES WEIR_SIM_HOST
export LC_ALL=C WEIR_MODULE_PATH="$PWD/lib/weir" WEIR_BACKEND=null WEIR_PLUGINS=sim
export WEIR_SIM_GPU="$TEST_TMPDIR/card.ini" WEIR_NULL_DEVICES=2

here=tests/bench/sim
out="$TEST_TMPDIR/out"
# Smaller ones, for a machine that copies them too.
sed 's/64K,2M,32M,512M/64K,1M/; s/--frames 20/--frames 4/; s/256, 512, 896/8, 16/' "$here/measure.py" >"$TEST_TMPDIR/measure.py"
export PYTHONPATH="$PWD/$here" PYTHONDONTWRITEBYTECODE=1
cp conf/gpus/h100.ini "$TEST_TMPDIR/card.ini"
for kernel in increment texture_position texture_image position_means patch_scores relevance \
    allocate_tokens compress_tokens matmul scale; do
    printf '[kernel %s]\nfixed_ns = 9000\n' "$kernel" >>"$TEST_TMPDIR/card.ini"
done
cat >>"$TEST_TMPDIR/card.ini" <<'TEXT'
[kernel advance]
fixed_ns = 1000
per_argument_1_ns = 5
per_item_ns = 0.003
TEXT
cat >"$TEST_TMPDIR/cases.txt" <<'TEXT'
# some small ones
jobs 60 1 overlap --size 1M --kernel 1,300 --orders depth,breadth --queues 1,4 --chunks 1,8,32
graphs 60 1 jobs graph --launches 20
devices 60 2 jobs graph --launches 5 --nodes 7
TEXT

expect_status 0 python3 "$TEST_TMPDIR/measure.py" --weir cli/weir --jobs tests/bench/jobs/jobs --out "$out" --turns 1 \
    --cases "$TEST_TMPDIR/cases.txt"
expect_contains "$output" "measured jobs"
expect_not_contains "$output" "left out"
for file in card.ini kernels.ini jobs.json graphs.json devices.json; do
    [ -s "$out/$file" ] || fail "there is no $file"
done

compare=(python3 "$here/compare.py" "$out" --weir cli/weir --jobs tests/bench/jobs/jobs --cases "$TEST_TMPDIR/cases.txt")
unset WEIR_SIM_GPU WEIR_PLUGINS WEIR_NULL_DEVICES
expect_says 0 "jobs: " "${compare[@]}"
expect_contains "$output" "graphs: "
expect_contains "$output" "devices: "
printf '%s\n' "$output"
# (the median of all, and the worst)
python3 - "$(printf '%s\n' "$output" | tail -n 1)" <<'TEXT' || fail "that is far off"
import re, sys
median, worst = map(float, re.search(r"median ([\d.]+) %, worst ([\d.]+) %", sys.argv[1]).groups())
assert median <= 0.5 and worst <= 2, sys.argv[1]
TEXT
# What is far off is told, with the turns' least and most; here there is none, as the last line but one says.
expect_contains "$output" "more than 10 % off: 0, of which between the least and the most of the turns: 0"
# Another GPU is not predicted: a model without signals tells other times.
sed '/signal_ns/d; s/copy_channels = 3/copy_channels = 0/' "$out/card.ini" >"$TEST_TMPDIR/other.ini"
expect_status 0 "${compare[@]}" --gpu "$TEST_TMPDIR/other.ini" --only jobs
expect_contains "$output" "*  ms of ways: " # (one turn: no prediction is between its least and most)
expect_not_contains "$output" "graphs: "
[[ "$output" =~ all:.*worst\ ([0-9]+)\.[0-9]\ % ]] && [ "${BASH_REMATCH[1]}" -ge 10 ] ||
    fail "without signals it predicts the same: $output"

# What is missing or wrong.
expect_says 1 "there are no figures of these cases" "${compare[@]}" --only none
expect_says 1 "absent.ini" "${compare[@]}" --costs "$TEST_TMPDIR/absent.ini"
# A case that cannot be predicted, as a kernel has no cost, ends none of the others.
sed '/kernel advance/,$d' "$out/kernels.ini" >"$TEST_TMPDIR/few.ini"
printf '[kernel increment]\nfixed_ns = 9000\n' >>"$TEST_TMPDIR/few.ini"
expect_says 1 "the kernel 'advance' has no cost" "${compare[@]}" --costs "$TEST_TMPDIR/few.ini" --only jobs,graphs
expect_contains "$output" "not predicted: jobs"
expect_contains "$output" "graphs: "
expect_status 2 python3 "$here/measure.py" --out "$out"
expect_says 2 "unrecognized arguments: --speed" python3 "$here/measure.py" --weir w --jobs j --out "$out" --speed 3
expect_status 2 python3 "$here/measure.py" --weir
expect_status 1 python3 "$TEST_TMPDIR/measure.py" --weir cli/weir --jobs tests/bench/jobs/jobs --out "$TEST_TMPDIR/plain" --turns 1 \
    --cases <(grep devices "$TEST_TMPDIR/cases.txt")
expect_contains "$output" "measure: devices is left out: it needs 2 devices, and there is 1"
expect_contains "$output" "measure: calibrate ended with 3"
