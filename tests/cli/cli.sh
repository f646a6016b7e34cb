# shellcheck shell=bash
# Sourced by the tests of the command, from the root of the runfiles.
. tests/support/shell.sh

weir="$PWD/cli/weir"
images="$PWD/tests/data/images"
weights="$PWD/pipelines/arr_coc/weights/arr_coc_weights.safetensors"
man="$PWD/docs/man"
# Nothing of this machine's own settings, and of a job that has started the test.
unset "${!WEIR_@}" "${!SLURM@}" "${!OMPI@}" POCL_DEVICES OCL_ICD_VENDORS TMPDIR COLUMNS
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
export LC_ALL=C
here="$PWD"
export PYTHONPATH="$here/tests/cli" PYTHONDONTWRITEBYTECODE=1 # files.py
cd "$TEST_TMPDIR"

# gcc's LeakSanitizer sometimes crashes itself ("Tracer caught signal 11") when a
# process ends that has PoCL's threads in it, whatever the process did. Such a run
# is done again; what the sanitizer does report is a failure as always.
program="$weir"
readonly tool_crash="LeakSanitizer has encountered a fatal error"
if [ -n "${ASAN_OPTIONS-}" ]; then
    weir="$TEST_TMPDIR/weir"
    cat >"$weir" <<TEXT
#!/bin/bash
for attempt in 1 2 3; do
    status=0
    "$program" "\$@" 2>"$TEST_TMPDIR/weir.messages" >"$TEST_TMPDIR/weir.output" || status=\$?
    grep -q "$tool_crash" "$TEST_TMPDIR/weir.messages" || break
done
cat "$TEST_TMPDIR/weir.messages" >&2
cat "$TEST_TMPDIR/weir.output"
exit "\$status"
TEXT
    chmod +x "$weir"
fi

# sizes BACKEND SIDE GRID: a configuration of ARR-COC with sizes that take little time; the kernels are the same.
sizes()
{
    printf '[weir]\nbackend = %s\n\n[arr_coc]\nside = %s\ngrid = %s\n' "$@"
}
sizes opencl 256 16 >small.ini

# expect_data WANTED COMMAND...: as expect_status, but $output is standard output
# alone, and $messages standard error.
expect_data()
{
    local wanted="$1" status=0
    shift
    output="$("$@" 2>"$TEST_TMPDIR/messages")" || status=$?
    messages="$(cat "$TEST_TMPDIR/messages")"
    [ "$status" -eq "$wanted" ] && return 0
    printf '%s ended with %s, expected %s. It printed:\n%s\n%s\n' "$*" "$status" "$wanted" \
        "$output" "$messages" >&2
    exit 1
}

# expect_quiet WANTED COMMAND...: as expect_data, and there are no messages.
expect_quiet()
{
    expect_data "$@"
    [ -z "$messages" ] || fail "${*:2} wrote to standard error: $messages"
}

# expect_silence WANTED COMMAND...: as expect_quiet, and there is no output.
expect_silence()
{
    expect_quiet "$@"
    [ -z "$output" ] || fail "${*:2} wrote to standard output: $output"
}

# expect_full COMMAND...: on a full disk standard output cannot be written, and the command says so.
expect_full()
{
    local status=0
    "$@" >/dev/full 2>messages || status=$?
    [ "$status" -eq 1 ] || fail "with a full standard output $* ended with $status"
    expect_contains "$(cat messages)" "standard output cannot be written"
}

# expect_end WANTED FILE...: the program $pid ends so, unless a sanitizer crashed in it; what it printed is in the files.
expect_end()
{
    local status=0
    wait "$pid" || status=$?
    [ "$status" -eq "$1" ] || grep -q "$tool_crash" "${@:2}" || fail "it ended with $status: $(cat "${@:2}")"
}

# expect_message WANTED WORDS COMMAND...: as expect_data, and the words are among the messages.
expect_message()
{
    local words="$2"
    expect_data "$1" "${@:3}"
    expect_contains "$messages" "$words"
}

# expect_output WANTED WORDS COMMAND...: the same of standard output.
expect_output()
{
    local words="$2"
    expect_data "$1" "${@:3}"
    expect_contains "$output" "$words"
}

# refused WANTED WORDS COMMAND...: as expect_message, and the command writes no file in ./out.
refused()
{
    rm -rf out
    expect_message "$@"
    expect_not_contains "$messages" "(null)"
    expect_nothing out
}

# expect_same DIRECTORY OTHER NAME...: both have the same results of these images.
expect_same()
{
    local directory="$1" other="$2" name suffix
    shift 2
    for name in "$@"; do
        expect_files "$directory" "$name"
        for suffix in tokens.npy patches.npy relevance.npy scores.npy overlay.png; do
            cmp "$other/$name.$suffix" "$directory/$name.$suffix" || fail "$directory differs in $suffix"
        done
    done
}

# copy_photos: coffee1.png, chelsea1.png, coffee2.png and chelsea2.png, whose names are in $photos.
copy_photos()
{
    local i name
    photos=()
    for i in 1 2; do
        for name in coffee chelsea; do
            cp "$images/$name.png" "$name$i.png"
            photos+=("$name$i")
        done
    done
}

# expect_files DIRECTORY NAME: all files of an image.
expect_files()
{
    local suffix
    for suffix in tokens.npy patches.npy relevance.npy scores.npy overlay.png json; do
        [ -s "$1/$2.$suffix" ] || fail "there is no $1/$2.$suffix"
    done
}

# expect_nothing DIRECTORY: no file in it, hidden ones included.
expect_nothing()
{
    [ -z "$(find "$1" -type f 2>/dev/null)" ] || fail "there is: $(find "$1" -type f)"
}

# expect_soon COMMAND...: waits until it succeeds.
expect_soon()
{
    for _ in $(seq 2400); do
        ! "$@" 2>/dev/null || return 0
        sleep 0.05
    done
    fail "it never came to: $*"
}

# has FILE COUNT PATTERN: at least so many of its lines match.
has()
{
    [ "$(grep -c "$3" "$1")" -ge "$2" ]
}

# expect_work TRACE COUNT: waits until a program that is traced has done that many operations.
expect_work()
{
    expect_soon has "$1" "$2" '"weir.sequence"'
}

# expect_problem WORDS REMEDY COMMAND...: `weir doctor` ends with a problem and what to do.
expect_problem()
{
    expect_output 3 "$1" "${@:3}"
    expect_contains "$output" "problem"
    expect_contains "$output" "what to do:"
    expect_contains "$output" "$2"
}

# as_json CONDITION: one on $output, which is JSON, as `data`.
as_json()
{
    printf '%s' "$output" | python3 -c "import json, sys; data = json.load(sys.stdin); assert $1, data"
}

# expect_json WANTED CONDITION COMMAND...: as expect_data, and the condition holds.
expect_json()
{
    expect_data "$1" "${@:3}"
    as_json "$2"
}
