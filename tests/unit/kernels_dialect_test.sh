#!/bin/bash
# Every case of kernels_dialect_cases.txt, through the tool that the build uses.
# None of it needs a GPU or a CUDA toolkit.
. tests/support/shell.sh

cases="$PWD/tests/unit/kernels_dialect_cases.txt"
tool="$PWD/kernels/build/weir_kernels.py"
dialect="$PWD/kernels/dialect"

cd "$TEST_TMPDIR"
awk '/^=== /{ n++; file = sprintf("case%03d", n); print substr($0, 5) > (file ".name"); next }
     n && /^says: /{ print substr($0, 7) > (file ".says"); next }
     n && /^builds$/{ print > (file ".builds"); next }
     n { print > (file ".cl") }' "$cases"

count=0
for source in case*.cl; do
    case="${source%.cl}"
    name="$(cat "$case.name")"
    printf '%s\n' "$name"
    count=$((count + 1))
    wanted=1
    [ -f "$case.builds" ] && wanted=0
    expect_status "$wanted" python3 "$tool" check --dialect "$dialect" --out "$case.out" "$source"
    if [ "$wanted" -eq 0 ]; then
        [ -s "$case.out.cu" ] || fail "$name: nothing was written"
        continue
    fi
    [ -f "$case.says" ] || fail "$name: the table does not tell what is said"
    [ -f "$case.out.cu" ] && fail "$name: something was written"
    while IFS= read -r part; do
        expect_contains "$output" "$part"
    done < "$case.says"
done
[ "$count" -eq "$(grep -c '^=== ' "$cases")" ] || fail "$count cases were run, and the table has more"

# The output depends only on the source, not on place or time.
mkdir -p elsewhere
python3 "$tool" check --dialect "$dialect" --out elsewhere/again case001.cl
for suffix in opencl.cl cu ll; do
    cmp "case001.out.$suffix" "elsewhere/again.$suffix" || fail "$suffix differs between two runs"
    # A #line directive would name the folder.
    grep -q "$TEST_TMPDIR" "case001.out.$suffix" && fail "$suffix holds a path of this machine"
done
exit 0
