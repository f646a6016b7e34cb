#!/bin/bash
# <weir/weir.hpp> stays small, and compiles alone, and in programs, without a warning: in the oldest
# and the newest standard, C++17 and C++23, by each compiler that is there.
. tests/support/shell.sh
lines="$(wc -l <api/weir/weir.hpp)"
[ "$lines" -lt 580 ] || fail "weir.hpp has $lines lines, and its limit is 579: move what few use to the C API's pages"

# A program with names that the header has in its namespace.
cat >"$TEST_TMPDIR/names.cc" <<'TEXT'
#include <vector>
#include <weir/weir.hpp>

void check(weir_status status);
void elapsed_ns(weir_event begin, weir_event end);

void use(weir::queue &queue, weir::array<float> &buffer, const weir::kernel &kernel, std::vector<float> &numbers)
{
    queue.upload(buffer, numbers);
    queue.launch(kernel, numbers.size(), buffer.inout(), 2.0f);
    queue.fill(buffer, 1.0f);
    queue.download(numbers, buffer);
    check(weir_queue_sync(queue, WEIR_FOREVER));
    elapsed_ns(queue.record(), queue.record());
    for (float &number : buffer.host(WEIR_ACCESS_WRITE))
        number = 1;
}
TEXT
echo '#include <weir/weir.hpp>' >"$TEST_TMPDIR/alone.cc"

compile()
{
    "$1" "-std=c++$2" -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -Iapi -fsyntax-only "$3"
}
command -v g++ >/dev/null || fail "install g++"
for compiler in g++ clang++; do
    if ! command -v "$compiler" >/dev/null; then
        echo "SKIPPED: $compiler is not installed"
        continue
    fi
    for standard in 17 2b; do
        for file in "$TEST_TMPDIR"/{alone,names}.cc docs/programs/overlap.cc; do
            expect_status 0 compile "$compiler" "$standard" "$file"
            [ -z "$output" ] || fail "$compiler says in C++$standard: $output"
        done
    done
done

# It would say so.
echo 'int unused(int a) { return 0; }' >"$TEST_TMPDIR/wrong.cc"
expect_status 1 compile g++ 17 "$TEST_TMPDIR/wrong.cc"
