#!/bin/bash
# What tests/corpus/corpus.py counts, with compilers that are scripts, and what accept.py says of sources on PoCL.
. tests/support/shell.sh

tool="$PWD/tests/corpus/corpus.py"
accept=(python3 "$PWD/tests/corpus/accept.py")
export PYTHONPATH="$PWD/python/package" PYTHONDONTWRITEBYTECODE=1
export POCL_DEVICES=basic
cd "$TEST_TMPDIR"

mkdir -p checkouts/someone/thing/deep checkouts/else/other
printf '#include "a.h"\n__kernel void a(__global int *p) { *p = VALUE + MORE; }\n' \
    >checkouts/someone/thing/deep/a.cl
printf '#pragma once\n#include "a.h"\n#include "../other.h"\n' >checkouts/someone/thing/deep/a.h
printf '#define MORE 1\n' >checkouts/someone/thing/other.h
printf '__kernel void b(read_only image2d_t p) {}\n' >checkouts/someone/thing/b.cl
printf 'int three(void) { return 3; }\n' >checkouts/else/other/first.cl
printf '__kernel void c(__global int *p) { *p = three(); }\n' >checkouts/else/other/c.cl
printf '%b\n' '# a comment' 'repository https://example.com/someone/thing 0123' \
    'options -DSHARED=1 "-DTEXT=(a,b)"' 'deep/a.cl\tCL1.2\t-DVALUE=3 -cl-fast-relaxed-math' \
    'b.cl\tCL2.0' '' 'repository https://example.com/else/other 4567' \
    'first.cl + c.cl\tCL1.2' >list.txt

# A compiler that takes what holds no image, and writes down how it was called.
cat >compiler.sh <<'TEXT'
printf '%s|' "$@" >>"$CALLS"
echo >>"$CALLS"
for file; do :; done
! grep -q image "$file" || { echo "k.cl:1:2: error: no image2d_t here" >&2; exit 1; }
TEXT

count()
{
    CALLS="$TEST_TMPDIR/calls" python3 "$tool" --list list.txt --from checkouts --opencl "" "$@"
}

# The table, the options and the joined sources.
expect_status 0 count --cuda "bash $PWD/compiler.sh {std} {fast} {defines} {file}" --messages \
    --json out.json
expect_contains "$output" "files  cuda accepted  cuda refused  cuda failed"
expect_contains "$(tr -s ' ' <<<"$output")" "all 3 2 1 0"
expect_contains "$output" "someone/thing/b.cl: cuda refused: k.cl:1:2: error: no image2d_t here"
expect_contains "$(cat calls)" "CL1.2|--fast|-Ideep|-DSHARED=1|-DTEXT=(a,b)|-DVALUE=3|"
expect_contains "$(cat calls)" "CL2.0|-I.|-DSHARED=1|-DTEXT=(a,b)|"
[ "$(python3 -c 'import json; print(len(json.load(open("out.json"))))')" = 3 ] || fail "out.json"

# What clang alone does not take counts for no compiler.
printf '__kernel void b(read_only image2d_t p) { absent(); }\n' >checkouts/someone/thing/b.cl
expect_status 0 count --cuda "bash $PWD/compiler.sh {std} {fast} {defines} {file}"
expect_contains "$(tr -s ' ' <<<"$output")" "all 3 2 0 0 1"
printf '__kernel void b(read_only image2d_t p) {}\n' >checkouts/someone/thing/b.cl

# A crash, a signal, an unresolved function and a compiler that does not end are failures.
expect_status 0 count --cuda "sh -c 'exit 3'"
expect_contains "$(tr -s ' ' <<<"$output")" "all 3 0 0 3"
expect_status 0 count --cuda "sh -c 'kill -SEGV \$\$'"
expect_contains "$(tr -s ' ' <<<"$output")" "all 3 0 0 3"
expect_status 0 count --cuda "sh -c 'echo error: Unresolved extern function x; exit 1'"
expect_contains "$(tr -s ' ' <<<"$output")" "all 3 0 0 3"
expect_says 0 "a.cl: cuda failed: more than 1 s" count --only a.cl --limit 1 --messages --cuda "sleep 20"

# Both columns; the second is the OpenCL backend.
expect_status 0 count --cuda "true" --opencl "${accept[*]} opencl {text} '-cl-std={std} {others}'" \
    --only 'a.cl|c.cl'
expect_contains "$(tr -s ' ' <<<"$output")" "all 2 2 0 0 2 0 0 0"

# Without --from the commits are fetched, once, and again where that was broken off.
git init -q upstream
(
    cd upstream
    cp ../checkouts/else/other/*.cl .
    git add .
    git -c user.name=t -c user.email=t@example.com commit -q -m t
)
commit="$(git -C upstream rev-parse HEAD)"
mkdir -p else && mv upstream else/other
printf '%b\n' "repository $PWD/else/other $commit" 'first.cl + c.cl\tCL1.2' >list.txt
git init -q cache/else/other
for again in "fetching else/other" ""; do
    expect_says 0 "$again" python3 "$tool" --list list.txt --fetch cache --opencl "" --cuda true
    expect_contains "$(tr -s ' ' <<<"$output")" "all 1 1 0 0"
done
expect_not_contains "$output" "fetching"

# accept: what it refuses and why, and what it cannot do.
printf '__kernel void broken(__global int *p) { *p = nothing; }\n' >broken.cl
expect_says 1 "nothing" "${accept[@]}" opencl broken.cl ""
expect_says 2 "absent.cl" "${accept[@]}" opencl absent.cl ""
expect_says 2 "no_such_backend" "${accept[@]}" no_such_backend broken.cl ""
expect_says 2 "usage: accept.py" "${accept[@]}"
