#!/bin/bash
# Without a module path, modules are found relative to the program's folder, however it was started.
. tests/support/shell.sh

root="$TEST_TMPDIR/prefix"
mkdir -p "$root/bin" "$root/lib/weir" "$TEST_TMPDIR/elsewhere"
cp -L tests/loader/open_and_copy "$root/bin/weir-open"
unset WEIR_MODULE_PATH WEIR_CONFIG WEIR_BACKEND WEIR_PLUGINS

expect_says 1 "there is no backend 'null'" "$root/bin/weir-open"
expect_contains "$output" "$root/bin/../lib/weir:$root/bin/lib/weir"
expect_contains "$output" "WEIR_MODULE_PATH"

cp -L backends/null/weir_null.so "$root/lib/weir/"
expect_says 0 "null: used, $root/bin/../lib/weir/weir_null.so" "$root/bin/weir-open"

# Through PATH, so that the program's first argument is not a path.
expect_says 0 "null: used, $root/bin/../lib/weir/weir_null.so" env PATH="$root/bin:$PATH" bash -c 'cd / && exec weir-open'

# Through a link in another directory.
ln -s "$root/bin/weir-open" "$TEST_TMPDIR/elsewhere/weir-open"
expect_says 0 "null: used, $root/bin/../lib/weir/weir_null.so" "$TEST_TMPDIR/elsewhere/weir-open"

# The folder below the program's, as in a build tree.
mv "$root/lib" "$root/bin/lib"
expect_says 0 "null: used, $root/bin/lib/weir/weir_null.so" "$root/bin/weir-open"

# The environment takes precedence over both.
expect_says 1 "/nonexistent" env WEIR_MODULE_PATH=/nonexistent "$root/bin/weir-open"
