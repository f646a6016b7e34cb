#!/bin/bash
# The program in docs/trace.md is the one that is built, and it does what the page says.
. tests/support/shell.sh

sed -n '/^```c whole$/,/^```$/{/^```/d;p}' docs/trace.md >"$TEST_TMPDIR/page.c"
expect_status 0 diff "$TEST_TMPDIR/page.c" tests/report/example.c
page="$(cat docs/trace.md)"

export WEIR_MODULE_PATH="$PWD/lib/weir" LC_ALL=C.UTF-8
example="$PWD/tests/report/example"
weir="$PWD/cli/weir"
cd "$TEST_TMPDIR"

# The page's commands, whose figures are the same on every machine and backend.
mapfile -t commands < <(sed -n 's/^    \(printf .*kernels.ini\|weir sim .*trace.json\) *\(.*\)$/\1 \2/p' <<<"$page")
[ "${#commands[@]}" -eq 2 ] || fail "the page has other commands: ${commands[*]}"
PATH="${weir%/*}:$PATH"
cp "$example" example
for backend in opencl null; do
    export WEIR_BACKEND="$backend"
    rm -f trace.json kernels.ini
    eval "${commands[0]}"
    expect_status 0 eval "${commands[1]}"
    [ "$(grep -c '^holds: ' <<<"$output")" -eq 3 ] || fail "other conditions hold: $output"
    report="$output"
    expect_status 0 weir trace timeline --width 80 trace.json
    while read -r line; do
        grep -qF -e "$line" <<<"$report$output" || fail "the page has a line that is not printed: $line"
    done < <(grep -E '^    holds: |^  (span|effective|bound|held up|copy / compute|to_device|kernels) |^(to_device|kernels) ' <<<"$page")
done

# On this machine's own device, whose overlap is not known beforehand; nothing copies on null.
for backend in opencl null; do
    rm -f trace.json
    output="$(WEIR_BACKEND="$backend" WEIR_PLUGINS=trace ./example 2>&1)" || [ $? -eq 1 ] ||
        fail "the example on $backend printed: $output"
    expect_contains "$output" "holds: the number of dropped operations is 0"
    expect_contains "$output" "holds: the share of the span with queue:run is"
    expect_contains "$output" "the overlap of copy/compute is"
    [ "$backend" = opencl ] || expect_contains "$output" "fails: the overlap of copy/compute is n/a"
done
