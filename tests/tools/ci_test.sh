#!/bin/bash
# .ci/run with programs in place of what it runs: what becomes of each exit status.
# shellcheck disable=SC2016 # the programs expand it
. tests/support/shell.sh

tree="$TEST_TMPDIR/tree"
mkdir -p "$tree/.ci" "$tree/tools/opencl" "$tree/tools/hta" "$tree/programs"
cp -L .ci/run "$tree/.ci"
printf '#!/bin/bash\n' | tee "$tree/tools/setup.sh" >"$tree/tools/hta/run.sh"
# Of a driver and of the simulator: DRIVER and RACES are the statuses.
cat >"$tree/tools/opencl/run.sh" <<'TEXT'
#!/bin/bash
echo "why $5 is not here" >"$4/download.log" # --check --within SECONDS FOLDER DRIVER
[ "${*: -1}" = "$WHICH" ] || exit 0
[ "$DRIVER" != hangs ] || exec sleep 600
exit "$DRIVER"
TEXT
# A bare system is this one; BARE is whether it can be made.
cat >"$tree/tools/debian_root.sh" <<'TEXT'
#!/bin/bash
[ "$1" != --check ] || exit "$BARE"
[ "$MADE" = yes ] || exit 75
mkdir -p "$2/tree" "$2/cache" && exec "${@:3}"
TEXT
printf '#!/bin/bash\ntouch "$1/download.log"\nexit "$RACES"\n' >"$tree/tools/opencl/races.sh"
# Two tests that pass, in a report as bazel's.
cat >"$tree/programs/bazel" <<'TEXT'
#!/bin/bash
for option; do
    case "$option" in --build_event_json_file=*) events="${option#*=}" ;; esac
done
mkdir -p logs && echo '<testcase name="a"></testcase> <testcase name="b"></testcase>' >logs/test.xml
echo "\"file://$PWD/logs/test.xml\"" >"$events"
TEXT
# A time limit that is over soon.
printf '#!/bin/bash\nexec %s 1 "${@:2}"\n' "$(command -v timeout)" >"$tree/programs/timeout"
chmod +x "$tree"/programs/* "$tree"/tools/*.sh "$tree"/*/*/*.sh
export PATH="$tree/programs:$PATH" CUDA_HOME=none WHICH=pocl-sid DRIVER=0 RACES=0 BARE=0 MADE=yes

# expect STATUS PART...: the exit status, and what stands in the output.
expect()
{
    local status=0 wanted="$1" part
    shift
    "$tree/.ci/run" >out 2>&1 || status=$?
    [ "$status" = "$wanted" ] || fail "status $status instead of $wanted: $(cat out)"
    for part; do
        grep -qF -- "$part" out || fail "'$part' is not in: $(cat out)"
    done
}

expect 0 " passed, 0 failed"
drivers="$(grep -c '^== drivers: ' out)"
all="$(sed -n 's/^\([0-9]*\) passed, 0 failed$/\1/p' out)"
if [ "$drivers" -lt 4 ] || [ "$all" != $((drivers + 10)) ]; then
    fail "$drivers drivers, $all passed: $(cat out)"
fi
DRIVER=1 expect 0 "drivers: pocl-sid: skipped: " "is not here" "$((all - 1)) passed, 0 failed, 1 skipped"
DRIVER=2 expect 1 "-- drivers pocl-sid: FAILED" "$((all - 1)) passed, 1 failed"
DRIVER=hangs expect 1 "-- drivers pocl-sid: FAILED" "$((all - 1)) passed, 1 failed"
DRIVER=124 expect 1 "-- drivers pocl-sid: FAILED" "not done within" "$((all - 1)) passed, 1 failed"
BARE=1 expect 0 "trixie: skipped: " "== plain: " "$((all - 4)) passed, 0 failed, 2 skipped"
MADE=no expect 0 "trixie: skipped: " "== plain: " "$((all - 4)) passed, 0 failed, 2 skipped"
RACES=1 expect 0 "races: skipped" "$((all - 1)) passed, 0 failed, 1 skipped"
RACES=2 expect 1 "-- races: FAILED" "$((all - 1)) passed, 1 failed"
# Without time for what may be left out.
WEIR_CI_LAST_BEGIN=0 expect 0 "run_races: skipped: " "run_drivers pocl-sid: skipped: " \
    "8 passed, 0 failed, $((drivers + 2)) skipped"

echo PASS
