#!/bin/bash
# Every case of compiler_cases.txt, through the tool that the build uses: no GPU and no CUDA toolkit is
# needed. A case is a file; "file NAME:" begins another, and "flags:" adds options.
. tests/support/shell.sh

cases="$PWD/tests/kernels/compiler_cases.txt"
tool="$PWD/kernels/compiler/weir_kernels"
no=("$tool" --symbol s --label l --out no) # makes no.c
export CUDA_HOME=none

# Turns the table into a folder for each case.
split_cases()
{
    awk '/^=== /{ n++; folder = sprintf("case%03d", n); system("mkdir -p " folder)
                  print substr($0, 5) > (folder "/name"); file = folder "/k.cl"; next }
         n && /^flags: /{ print substr($0, 8) > (folder "/flags"); next }
         n && /^says: /{ print substr($0, 7) > (folder "/says"); next }
         n && /^has: /{ print substr($0, 6) > (folder "/has"); next }
         n && /^says nothing$/{ print > (folder "/silent"); next }
         n && /^builds$/{ print > (folder "/builds"); next }
         n && /^file /{ name = $2; sub(/:$/, "", name); file = folder "/" name
                        sub(/[^\/]*$/, "", name); system("mkdir -p " folder "/" name); next }
         n { print > file }' "$cases"
}

run_case()
{
    local folder="$1" wanted=1 flags=()
    [ -f "$folder/builds" ] && wanted=0
    [ -f "$folder/flags" ] && read -ra flags <"$folder/flags"
    cd "$folder"
    expect_status "$wanted" "$tool" --symbol s --label l --out out "${flags[@]}" k.cl
    cd ..
    [ "$wanted" -eq 0 ] || [ ! -e "$folder/out.c" ] || fail "something was written"
    [ "$wanted" -eq 1 ] || [ -s "$folder/out.c" ] || fail "nothing was written"
}

cd "$TEST_TMPDIR"
export TMPDIR="$TEST_TMPDIR/way"
mkdir -p "$TMPDIR"
split_cases
count=0
for folder in case*; do
    printf '%s\n' "$(cat "$folder/name")"
    count=$((count + 1))
    run_case "$folder"
    [ ! -e "$folder/silent" ] || [ -z "$output" ] || fail "something was said: $output"
    while IFS= read -r part; do
        expect_contains "$output" "$part"
    done < <(cat "$folder/says" 2>/dev/null)
    while IFS= read -r part; do
        grep -qF "$part" "$folder/out.c" || fail "'$part' is not in the bundle"
    done < <(cat "$folder/has" 2>/dev/null)
done
[ "$count" -eq "$(grep -c '^=== ' "$cases")" ] || fail "$count cases were run, and the table has more"
[ -z "$(ls -A "$TMPDIR")" ] || fail "files on the way stay: $(ls -A "$TMPDIR")"

# The output depends on the source alone, not on place or time.
mkdir -p elsewhere
cp case001/k.cl elsewhere/
(cd elsewhere && "$tool" --symbol s --label l --out out k.cl)
cmp case001/out.c elsewhere/out.c || fail "the bundle differs between two runs"

# What the machine lacks is named.
cd case001
expect_says 1 "libdevice.10.bc is not found, and CUDA images need it" "${no[@]}" --ptx 75 k.cl
expect_says 1 "clang is not installed" env PATH=/nonexistent "${no[@]}" k.cl
expect_says 1 "no folder for temporary files" env TMPDIR=/nonexistent "${no[@]}" k.cl
expect_says 1 "absent.cl: error: there is no such file; check the path" "${no[@]}" absent.cl
expect_says 1 "/nonexistent/out.c" "$tool" --symbol s --label l --out /nonexistent/out k.cl
expect_says 2 "usage: weir_kernels" "$tool" k.cl
expect_status 2 "$tool" --colour k.cl
expect_says 1 "CL9" "${no[@]}" --std CL9 k.cl
for limit in abc 0 -4 3x 99999999999999999999; do
    expect_says 1 "WEIR_KERNELS_LIMIT_S takes a whole number of seconds" env WEIR_KERNELS_LIMIT_S="$limit" "${no[@]}" k.cl
done

# What is no source, and what is no place for a bundle.
printf '__kernel void k(__global int *p) { p[0] = 1; }\0\n' >nul.cl
mkfifo pipe.cl
mkdir folder.cl folder.c
for file in nul.cl:"a NUL byte" pipe.cl:"a pipe or a device" folder.cl:"is a directory"; do
    expect_says 1 "${file%%:*}: error: " timeout 60 "${no[@]}" "${file%%:*}"
    expect_contains "$output" "${file#*:}"
done
expect_says 1 "folder.c: cannot be written: it is a directory" "$tool" --symbol s --label l --out folder k.cl
cp k.cl other.cl
expect_says 1 "other.cl:1:15: error: redefinition of 'k'" "${no[@]}" k.cl other.cl
if [ "$(id -u)" -ne 0 ]; then
    chmod 0 other.cl
    expect_says 1 "other.cl: error: " "${no[@]}" other.cl
fi

# A full disk, and a compiler that is killed.
expect_says 1 "error: " bash -c 'ulimit -f 1; exec "$@"' - "${no[@]}" k.cl
mkdir killed
# shellcheck disable=SC2016
printf '#!/bin/bash\nkill -KILL $$\n' >killed/clang-24
chmod +x killed/clang-24
expect_says 1 "was ended by signal 9" env PATH="$PWD/killed:$PATH" "${no[@]}" k.cl
[ -z "$(ls -A "$TMPDIR")" ] || fail "files on the way stay: $(ls -A "$TMPDIR")"
[ ! -e no.c ] || fail "something was written"

# An interrupt removes the files on the way, and ends the tool as it ends others.
mkdir interrupt
# shellcheck disable=SC2016
printf '#!/bin/bash\nkill -s "$SIGNAL" "$PPID"\n' >interrupt/clang-24
chmod +x interrupt/clang-24
for signal in INT TERM HUP; do
    expect_status $((128 + $(kill -l "$signal"))) env SIGNAL="$signal" PATH="$PWD/interrupt:$PATH" \
        "${no[@]}" k.cl
    [ -z "$(ls -A "$TMPDIR")" ] || fail "files on the way stay after $signal: $(ls -A "$TMPDIR")"
done

expect_status 1 env SIGNAL=INT PATH="$PWD/interrupt:$PATH" bash -c 'trap "" INT; exec "$@"' - \
    "${no[@]}" k.cl
[ ! -e no.c ] || fail "something was written"
