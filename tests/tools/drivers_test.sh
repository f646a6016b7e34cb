#!/bin/bash
# tools/opencl/run.sh with a program in place of the suite on a driver, and no network: what is a
# failure, what is known, and what is only lacking.
. tests/support/shell.sh

tree="$TEST_TMPDIR/tree"
folder="$TEST_TMPDIR/drivers"
mkdir -p "$tree/tools/opencl" "$tree/bazel-bin/cli" "$tree/programs"
cp -L tools/opencl/run.sh "$tree/tools/opencl"
cat >"$tree/tools/opencl/failures.txt" <<'TEXT'
# A comment.
pocl Known.Always always a bug of the driver's
pocl Known.Sometimes sometimes it depends on the machine's load
TEXT
cat >"$tree/bazel-bin/cli/weir" <<'TEXT'
#!/bin/bash
# The suite: FAILS are the names of the tests that fail.
[ "$PLAY" != hangs ] || exec sleep 600
[ "$PLAY" != dies ] || { echo "no device" >&2 && exit 3; }
[ "$PLAY" != unknown ] || { echo "error: unknown target CPU 'generic'" && exit 2; }
printf '{"platform": "P", "driver": "1.0", "passed": 1, "failed": %d, "skipped": 0, "tests": [' "$(wc -w <<<"$FAILS")"
for name in $FAILS; do printf '{"name": "%s", "outcome": "failed"}, ' "$name"; done
printf '{"name": "Good.One", "outcome": "passed"}]}\n'
[ -z "$FAILS" ] || exit 2
TEXT
printf '#!/bin/bash\n' >"$tree/programs/bazel"
printf '#!/bin/bash\necho "no network" >&2\nexit 1\n' | tee "$tree/programs/pip" >"$tree/programs/apt-get"
chmod +x "$tree/bazel-bin/cli/weir" "$tree"/programs/*
export PATH="$tree/programs:$PATH" PLAY="" FAILS=""

# expect STATUS PART OPTION...: the exit status, and what stands in the table or beside it.
expect()
{
    local status=0 wanted="$1" part="$2"
    shift 2
    "$tree/tools/opencl/run.sh" "$@" >out 2>&1 || status=$?
    [ "$status" = "$wanted" ] || fail "status $status instead of $wanted of run.sh $*: $(cat out)"
    grep -qF -- "$part" out || fail "'$part' is not in: $(cat out)"
}

# Known failures are told with their reasons, and are none of --check.
FAILS="Known.Always" expect 0 "| pocl: P, 1.0 | 1 | 1 | 0 | Known.Always, known: a bug of the driver's |" --check "$folder" pocl
FAILS="Known.Always Known.Sometimes" expect 0 "Known.Sometimes, known: it depends" --check "$folder" pocl
# Any other is, and so is one that is known and passes.
FAILS="Known.Always Good.Two" expect 2 "Good.Two fails on pocl, and " --check "$folder" pocl
FAILS="Known.Always Good.Two" expect 0 "Good.Two" "$folder" pocl
expect 2 "Known.Always passes on pocl now: take it out" --check "$folder" pocl
FAILS="Known.Always" expect 2 "Known.Always fails on pocl-basic" --check "$folder" pocl-basic
# A suite that does not end, or tells nothing, is a failure, not a driver that is lacking.
PLAY=hangs expect 2 "| pocl | | | | not done within 1 s |" --check --within 1 "$folder" pocl
PLAY=dies expect 2 "| pocl | | | | not run: no device |" --check "$folder" pocl
# Packages that cannot be had are lacking, with the reason in a log.
expect 1 "| oclgrind | | | | not run: a package could not be had, as $folder/download.log says |" \
    --check "$folder" oclgrind
grep -q "no network" "$folder"/download.log || fail "no reason in the log: $(cat "$folder"/download.log)"
expect 1 "| pocl-wheel | | | | not run: a package" --check "$folder" pocl-wheel
# A driver that compiles nothing for this processor is lacking too.
mkdir -p "$folder"/pocl-wheel/unpacked
touch "$folder"/pocl-wheel/done "$folder"/pocl-wheel/unpacked/libpocl.so
PLAY=unknown expect 1 "its LLVM does not know this machine's processor" --check "$folder" pocl-wheel
expect 0 "| pocl-wheel: P, 1.0 | 1 | 0 | 0 |  |" --check "$folder" pocl-wheel
# Its failures are no excuse for another driver's.
FAILS="Known.Always Good.Two" expect 2 "Good.Two fails" --check "$folder" pocl oclgrind

# A line of the list without a reason is refused.
echo "pocl Good.Two always" >>"$tree/tools/opencl/failures.txt"
FAILS="Known.Always" expect 2 "no reason, or neither always nor sometimes: pocl Good.Two always" --check "$folder" pocl
expect 3 "--within a number of seconds from 1" --within soon "$folder"

echo PASS
