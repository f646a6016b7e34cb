#!/bin/bash
# Kernels that PoCL has not compiled yet: processes that compile them side by side before the first
# frame, and --compile. What they leave in PoCL's cache is what a run needs, file by file.
. tests/cli/cli.sh

cp "$images/coffee.png" photo.png
readonly told="the driver has not compiled these kernels yet"

# cold NAME: an empty cache.
cold()
{
    export POCL_CACHE_DIR="$TEST_TMPDIR/cache-$1"
    mkdir "$POCL_CACHE_DIR"
}

# stale NAME KERNEL...: the cache of the run without help, less the program and these kernels: the driver builds
# the program again, and compiles no more than these.
stale()
{
    local kernel
    export POCL_CACHE_DIR="$TEST_TMPDIR/cache-$1"
    cp -r "$TEST_TMPDIR/cache-alone" "$POCL_CACHE_DIR"
    find "$POCL_CACHE_DIR" -name program.bc -delete
    for kernel in "${@:2}"; do
        rm -r "$POCL_CACHE_DIR"/*/*/"$kernel"
    done
    [ "$(compiled | wc -l)" -eq $((8 - $#)) ] || fail "left in the cache: $(compiled)"
}

# compiled: the kernels in the cache, with what each was compiled for.
compiled()
{
    (cd "$POCL_CACHE_DIR" && find . -path '*goffs*' -name '*.so' | sort)
}

# expect_results FOLDER: those of the run without help.
expect_results()
{
    local file
    for file in tokens patches relevance scores; do
        cmp "$1/photo.$file.npy" "alone/photo.$file.npy" || fail "$1: other results"
    done
}

# On one processor the first frame compiles, and no other process.
cold alone
processor="$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')"
expect_data 0 taskset -c "$processor" "$weir" run arr-coc --config small.ini --output alone photo.png
expect_not_contains "$messages" "$told"
wanted="$(compiled)"
[ "$(wc -l <<<"$wanted")" -eq 7 ] || fail "compiled: $wanted"
if [ "$(nproc)" -lt 2 ]; then
    echo "skipped: one processor, on which the first frame compiles"
    exit 0
fi

# With several, they compile exactly what the run launches; what is compiled is not told again.
cold helped
expect_message 0 "weir: $told: " "$weir" run arr-coc --config small.ini --output helped photo.png
expect_contains "$messages" " processes do so now, side by side"
expect_not_contains "$messages" "warning"
[ "$(compiled)" = "$wanted" ] || fail "compiled: $(compiled)"
expect_results helped
expect_data 0 "$weir" run arr-coc --config small.ini --output warm photo.png
expect_not_contains "$messages" "$told"
stale quiet position_means compress_tokens
expect_data 0 "$weir" run arr-coc --config small.ini --quiet --output quiet photo.png
[ -z "$messages" ] || fail "--quiet told: $messages"
[ "$(compiled)" = "$wanted" ] || fail "compiled: $(compiled)"
expect_results quiet

# Without images, for two devices; then also of the usual sizes.
cold ahead
two=(env POCL_DEVICES="pthread basic" "$weir" run arr-coc --config small.ini --devices all)
expect_message 0 "$told" "${two[@]}" --compile all
expect_contains "$messages" "weir: kernels compiled for "
both="$(compiled)" # PoCL 6 compiles once for both
[ "$(wc -l <<<"$both")" -eq 14 ] || [ "$both" = "$wanted" ] || fail "two devices: $both"
[ "$(comm -12 - <(printf '%s\n' "$wanted") <<<"$both")" = "$wanted" ] || fail "of the first device: $both"
expect_data 0 "$weir" run arr-coc --config small.ini --output ahead photo.png
expect_not_contains "$messages" "$told"
expect_results ahead
expect_data 0 "${two[@]}" --output both photo.png
[ "$(compiled)" = "$both" ] || fail "the runs compiled more: $(compiled)"
sed 's/\(side\|grid\) .*//' small.ini >usual.ini
expect_data 0 "$weir" run arr-coc --config usual.ini --compile all
usual="$(compiled)"
expect_data 0 "$weir" run arr-coc --config usual.ini --output usual photo.png
[ "$(compiled)" = "$usual" ] || fail "the run compiled more: $(compiled)"

# Single kernels, which start no process.
cold single
expect_message 0 "weir: kernels compiled for " "$weir" run arr-coc --config small.ini --compile relevance,patch_scores,relevance
[[ "$messages" == *": 2" ]] || fail "not two: $messages"
expect_not_contains "$messages" "$told"
[ "$(compiled | cut -d/ -f4 | tr '\n' ' ')" = "patch_scores relevance " ] ||
    fail "compiled: $(compiled)"

# The processes are not in the run's trace, and leave it its standard input.
stale traced position_means compress_tokens
cat >make.py <<'TEXT'
with open("film.y4m", "wb") as f:
    f.write(b"YUV4MPEG2 W48 H40 F10:1 C444\n")
    for k in range(4):
        f.write(b"FRAME\n" + bytes((k * 40 + i) % 256 for i in range(3 * 48 * 40)))
TEXT
python3 make.py
expect_message 0 "$told" env WEIR_PLUGINS=trace WEIR_TRACE_FILE=run.trace "$weir" run arr-coc --config small.ini --output traced - < <(cat film.y4m)
expect_contains "$output" "4 frames run, 0 dropped, 0 failed"
for wanted_count in "texture_image 4" "compress_tokens 4" "position_means 1" "weir_end 1"; do
    count="$(grep -o "\"name\":\"${wanted_count% *}\"" run.trace | wc -l)"
    [ "$count" -eq "${wanted_count#* }" ] || fail "$count of ${wanted_count% *} in the trace"
done
[ "$(compiled)" = "$wanted" ] || fail "compiled: $(compiled)"

# Where PoCL keeps nothing, no process can help another.
cold kept
expect_data 0 env POCL_KERNEL_CACHE=0 "$weir" run arr-coc --config small.ini --output kept photo.png
expect_not_contains "$messages" "$told"
[ -z "$(compiled)" ] || fail "compiled: $(compiled)"
expect_results kept

# Started by a program that ignores the ends of its children.
stale ignoring position_means compress_tokens
expect_data 0 python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])' "$weir" run arr-coc --config small.ini --output ignoring photo.png
expect_contains "$messages" "$told"
expect_not_contains "$messages" "failed"
[ "$(compiled)" = "$wanted" ] || fail "compiled: $(compiled)"
expect_results ignoring

# What the system refuses is told, and the run goes on without.
stale refused position_means compress_tokens
expect_message 0 "weir: warning: a process that compiles kernels cannot be started: Resource temporarily unavailable" \
    env LD_PRELOAD="$here/tests/cli/librefusing.so" "$weir" run arr-coc --config small.ini --output refused photo.png
[ "$(compiled)" = "$wanted" ] || fail "compiled: $(compiled)"
expect_results refused

# Processes that are killed: the run compiles what they left.
stale killed relevance texture_image
status=0
"$program" run arr-coc --config small.ini --output killed photo.png >table 2>messages &
pid=$!
for _ in $(seq 3000); do
    read -ra children < <(cat "/proc/$pid/task/$pid/children" 2>/dev/null) || true
    [ "${#children[@]}" -lt 2 ] || break
    sleep 0.01
done
kill -s KILL "${children[@]}"
wait "$pid" || status=$?
[ "$status" -eq 0 ] || fail "ended with $status: $(cat messages)"
expect_contains "$(cat messages)" "processes that compile kernels failed; the first frame waits for"
expect_results killed

# An interrupt meanwhile: the run ends at once, and the processes soon after.
cold interrupted
set -m # or children would ignore SIGINT
status=0
"$program" run arr-coc --config small.ini --output interrupted photo.png >table 2>messages &
pid=$!
for _ in $(seq 3000); do
    ! grep -q "$told" messages || break
    sleep 0.01
done
kill -s INT "$pid"
wait "$pid" || status=$?
[ "$status" -eq 130 ] || fail "ended with $status: $(cat messages)"
expect_contains "$(cat messages)" "weir: interrupted"
for _ in $(seq 600); do
    kill -0 -- "-$pid" 2>/dev/null || break
    sleep 0.1
done
! kill -0 -- "-$pid" 2>/dev/null || fail "processes are left"
[ -z "$(find interrupted -type f)" ] || fail "files are left: $(find interrupted -type f)"

# What it cannot take.
refuse()
{
    local part="$1"
    shift
    expect_message 2 "$part" "$weir" run arr-coc --config small.ini "$@"
    expect_not_contains "$messages" "still"
    [ -z "$output" ] || fail "it printed: $output"
}
refuse "--compile runs no image; leave 'photo.png' out, or --compile" --compile all photo.png
refuse "--compile runs no image; leave --json out" --compile all --json
refuse "--compile runs no image; leave --ranks out" --compile all --ranks
refuse "--compile runs no image; leave --output out" --compile all --output out
refuse "--compile runs no image; leave --repeat out" --compile all --repeat 2
refuse "or kernels of ARR-COC (texture_position, position_means, " --compile blur
refuse "not 'all'" --compile relevance,all
refuse "not ''" --compile relevance,
refuse "weir run arr-coc needs an image: weir run arr-coc IMAGE..."
