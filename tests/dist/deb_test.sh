#!/bin/bash
# The Debian packages by themselves: what they contain and need, the same bytes twice, and how the
# script that makes them fails.
. tests/dist/deb.sh
need dpkg-deb dpkg-shlibdeps

[ "${packages[*]}" = "libweir-dev libweir0 weir weir-cuda weir-doc weir-opencl" ] ||
    fail "control has ${packages[*]}"
field()
{
    dpkg-deb --field "$(package "$1")" "$2"
}
for name in "${packages[@]}"; do
    [ "$(field "$name" Version)" = "$version" ] || fail "$name has the version $(field "$name" Version)"
    mkdir -p "$TEST_TMPDIR/files/$name" "$TEST_TMPDIR/control"
    dpkg-deb -x "$(package "$name")" "$TEST_TMPDIR/files/$name"
    dpkg-deb -e "$(package "$name")" "$TEST_TMPDIR/control/$name"
    (cd "$TEST_TMPDIR/files/$name" && md5sum --quiet -c "$TEST_TMPDIR/control/$name/md5sums")
    odd="$(dpkg-deb -c "$(package "$name")" | grep -v ' root/root ' || true)"
    [ -z "$odd" ] || fail "$name has files of another owner: $odd"
    [ -s "$TEST_TMPDIR/files/$name/usr/share/doc/$name/copyright" ] || fail "$name has no copyright"
done

# What each needs. The libraries of others come from their packages, and are not linked in.
for library in libinih1 libjansson4 libjpeg62-turbo libpng16-16 zlib1g; do
    expect_contains "$(field weir Depends)" "$library"
done
for library in libinih1 libjansson4 zlib1g; do
    expect_contains "$(field libweir0 Depends)" "$library"
done
for name in weir libweir-dev weir-cuda weir-opencl; do
    expect_contains "$(field "$name" Depends)" "libweir0 (= $version)"
done
for name in weir weir-cuda weir-opencl libweir0; do
    expect_contains "$(field "$name" Depends)" "libc6 (>="
done
expect_contains "$(field weir-opencl Depends)" "ocl-icd-libopencl1 | libopencl1"
expect_contains "$(field weir-opencl Recommends)" "pocl-opencl-icd"
expect_contains "$(field weir-cuda Recommends)" "libcuda1"
expect_contains "$(field weir Recommends)" "weir-opencl"
[ -z "$(field weir-doc Depends)" ] || fail "weir-doc needs $(field weir-doc Depends)"
expect_contains "$(cat "$TEST_TMPDIR/control/libweir0/symbols")" "weir_version@WEIR_0 0.1.0"
expect_contains "$(cat "$TEST_TMPDIR/control/libweir0/triggers")" "ldconfig"

# No file is in two packages, and each of the archive's modules is in one.
cd "$TEST_TMPDIR/files"
twice="$(find . ! -type d | sed 's|^\./[^/]*||' | sort | uniq -d)"
[ -z "$twice" ] || fail "in two packages: $twice"
for module in libweir0/check libweir0/fault libweir0/local libweir0/null libweir0/perturb libweir0/trace \
    weir-cuda/cuda weir-opencl/opencl; do
    [ -s "${module%/*}/usr/lib/x86_64-linux-gnu/weir/weir_${module#*/}.so" ] || fail "no $module"
done
for file in weir/reference weir-cuda/cuda weir-opencl/opencl; do
    [ -s "${file%/*}/usr/share/weir/conf/${file#*/}.ini" ] || fail "no $file.ini"
done
for page in "$root"/docs/man/*.1; do
    [ -s "weir/usr/share/man/man1/$(basename "$page").gz" ] || fail "no $(basename "$page")"
done
for shell in bash-completion/completions/weir zsh/vendor-completions/_weir \
    fish/vendor_completions.d/weir.fish; do
    [ -s "weir/usr/share/$shell" ] || fail "no $shell"
done

# Made again, elsewhere, they have the same bytes.
cd "$root"
build()
{
    local system="$root/dist/system"
    "$debian/build.sh" "$1" "$debian/control" "$root/dist/third-party.txt" "$main_archive" "${@:2}" \
        "$cuda_archive" -- "$system/libweir.so.0=lib/libweir.so.0" "$system/weir=bin/weir" \
        "$system/weir-config.cmake=lib/cmake/weir/weir-config.cmake" \
        "$system/weir.pc=lib/pkgconfig/weir.pc" "$system/weir_check.so=lib/weir/weir_check.so" \
        "$system/weir_trace.so=lib/weir/weir_trace.so" \
        "$system/libweir_opencl_layer.so=lib/weir/libweir_opencl_layer.so"
}
mkdir "$TEST_TMPDIR/again" "$TEST_TMPDIR/other"
(umask 077 && TZ=Asia/Tokyo LANG=C.UTF-8 TMPDIR="$TEST_TMPDIR/other" build "$TEST_TMPDIR/again")
for name in "${packages[@]}"; do
    cmp "$(package "$name")" "$TEST_TMPDIR/again/$(basename "$(package "$name")")"
done

# A file of the archives that no package takes, and one to be replaced that is not there.
mkdir -p "$TEST_TMPDIR/more/$folder/share/weir"
echo new >"$TEST_TMPDIR/more/$folder/share/weir/new.txt"
tar -czf "$TEST_TMPDIR/more.tar.gz" -C "$TEST_TMPDIR/more" "$folder"
expect_says 1 "no package has these files" build "$TEST_TMPDIR/other" "$TEST_TMPDIR/more.tar.gz"
expect_contains "$output" "share/weir/new.txt"
expect_status 1 "$debian/build.sh" "$TEST_TMPDIR/other" "$debian/control" "$root/dist/third-party.txt" \
    "$TEST_TMPDIR/more.tar.gz" -- "$root/dist/system/weir=bin/weir"
expect_contains "$output" "no archive has bin/weir"
expect_status 1 "$debian/build.sh" "$TEST_TMPDIR/other" "$debian/control" "$root/dist/third-party.txt" \
    "$TEST_TMPDIR/more.tar.gz" --
expect_contains "$output" "weir.install names bin/weir, and there is none"
[ -z "$(find "$TEST_TMPDIR/other" -name '*.deb')" ] || fail "packages were made all the same"

# docs/install.md has the table of sizes. They vary by a third with compilers, and may be half as
# large without the images that a CUDA toolkit makes.
# row FILE: its row of that table.
row()
{
    awk -v name="$(dpkg-deb --field "$1" Package)" -v bytes="$(stat -Lc %s "$1")" \
        -v kib="$(dpkg-deb --field "$1" Installed-Size)" \
        'BEGIN { printf "| `%s` | %.2f | %.2f |\n", name, bytes / 1e6, kib * 1024 / 1e6 }'
}
rows="$(for file in "$debian"/*.deb; do row "$file"; done)"
while read -r _ name _ file _ installed _; do
    row="$(grep -F "| $name | " <<<"$rows")" || fail "docs/install.md has sizes of $name, which is none"
    awk -v now="$row" -v file="$file" -v installed="$installed" 'BEGIN {
        split(now, field, " *[|] *")
        exit field[3] > file * 4 / 3 + 0.02 || field[3] < file * 0.4 - 0.02 ||
            field[4] > installed * 4 / 3 + 0.02 || field[4] < installed * 0.4 - 0.02 }' ||
        fail "docs/install.md says of $name $file and $installed MB; all are now:"$'\n'"$rows"
    count=$((${count:-0} + 1))
done < <(grep -E '^\| `[a-z0-9-]+` \| [0-9.]+ \| [0-9.]+ \|$' "$root/docs/install.md")
[ "${count-}" = "${#packages[@]}" ] || fail "docs/install.md has the sizes of ${count-0} packages"
