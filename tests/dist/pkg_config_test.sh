#!/bin/bash
# The program of docs/install.md, built with pkg-config against the unpacked archive; examples_test.sh has others, and
# C++.
. tests/dist/dist.sh
need pkg-config cc
weir="$TEST_TMPDIR/elsewhere/weir"
unpack "$weir"
mkdir "$TEST_TMPDIR/outside"
cd "$TEST_TMPDIR/outside"

block c 1 >first.c
output="$(eval "$(block sh 1)")" || fail "the commands of docs/install.md failed: $output"
[ "$output" = "Weir $version, backend null" ] || fail "it printed '$output'"

export PKG_CONFIG_PATH="$weir/lib/pkgconfig"
[ "$(pkg-config --modversion weir)" = "$version" ] || fail "weir.pc has another version"
modules="$(pkg-config --variable=moduledir weir)"
[ -e "$modules/weir_null.so" ] || fail "moduledir of weir.pc is $modules"

# Statically: it needs no shared library of Weir, and gets the folder of the modules.
# shellcheck disable=SC2046
cc first.c -o static $(pkg-config --cflags weir) "$weir/lib/libweir.a" \
    $(pkg-config --libs --static weir | sed 's/-lweir//')
expect_not_contains "$(objdump -p static)" libweir
expect_says 1 "WEIR_MODULE_PATH" ./static
expect_prints "Weir $version, backend null" env WEIR_MODULE_PATH="$modules" ./static

# The library and its modules are moved after the program was built.
mv "$weir" "$TEST_TMPDIR/moved"
expect_prints "Weir $version, backend null" env LD_LIBRARY_PATH="$TEST_TMPDIR/moved/lib" ./first

# The folder of the library may have any name: the modules are in `weir` beside it.
mkdir "$TEST_TMPDIR/other"
mv "$TEST_TMPDIR/moved/lib" "$TEST_TMPDIR/other/x86_64-linux-gnu"
expect_prints "Weir $version, backend null" env LD_LIBRARY_PATH="$TEST_TMPDIR/other/x86_64-linux-gnu" ./first
