#!/bin/bash
# The README's commands for a user's own program work, and every example of the archive is built by
# such commands and runs.
. tests/dist/dist.sh
need pkg-config cc c++
cd "$TEST_TMPDIR"
export WEIR_BACKEND=opencl

# The archive was already built, by this test's rule.
sed -n '/^```sh$/,/^```$/{/^```/d;p}' "$root/README.md" >commands
grep -q '^bazel build //:dist$' commands || fail "README.md builds no archive"
sed -i "/^bazel build/d; s|bazel-bin/dist/weir-[^ ]*|$main_archive|" commands
expect_says 0 "frame 9: 230 after" bash -eu commands
expect_contains "$output" "held up by"

weir="$TEST_TMPDIR/out/$folder"
cd out/examples
export PKG_CONFIG_PATH="$weir/lib/pkgconfig"
count=0
for file in *.c; do
    count=$((count + 1))
    # shellcheck disable=SC2046
    expect_status 0 cc -std=c11 -Wall -Wextra -Werror "$file" -o "${file%.c}" \
        $(pkg-config --cflags --libs weir) -Wl,-rpath,"$(pkg-config --variable=libdir weir)"
    # The trace that trace.c reads is one of its own run, on a GPU that sim models.
    run=("./${file%.c}")
    if [ "$file" = trace.c ]; then
        printf '[kernel scale]\nfixed_ns = 150000\n' >kernels.ini
        run=("$weir/bin/weir" sim --gpu k20c --costs kernels.ini --output trace.json ./trace)
    fi
    expect_status 0 "${run[@]}"
    [ -n "$output" ] || fail "${file%.c} printed nothing"
done
# Those in C++, also with what later standards add to them.
for file in *.cc; do
    for standard in 17 2b; do
        # shellcheck disable=SC2046
        expect_status 0 c++ -std=c++$standard -Wall -Wextra -Wpedantic -Werror "$file" -o "${file%.cc}" \
            $(pkg-config --cflags --libs weir) -Wl,-rpath,"$(pkg-config --variable=libdir weir)"
        expect_says 0 "thrown: the program has no kernel" "./${file%.cc}"
    done
    expect_contains "$output" "returned: the program has no kernel"
    count=$((count + 1))
done
[ "$count" -ge 14 ] || fail "there are only $count examples"
