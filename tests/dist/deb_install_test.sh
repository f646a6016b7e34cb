#!/bin/bash
# The Debian packages installed, used and purged: by apt, from a folder of tools/deb/repository.sh, with all that they
# depend on, in a layer over the machine's own system.
. tests/dist/deb.sh
need dpkg-deb dpkg-scanpackages pkg-config cc
new="$TEST_TMPDIR/root"
layer="$TEST_TMPDIR/layer"
mkdir -p "$new" "$layer"

mount_layer()
{
    mount -t tmpfs none "$layer" && mkdir "$layer/up" "$layer/work" &&
        mount -t overlay none "$new" \
            -o "lowerdir=/,upperdir=$layer/up,workdir=$layer/work"
}
export -f mount_layer
export new layer

# In a mount namespace of its own, which ends with it.
if [ "${1-}" != mounted ]; then
    unshare -m bash -c mount_layer 2>/dev/null || skip mount "a layer over the system needs root and overlay mounts"
    cd "$root"
    exec unshare -m "$0" mounted
fi
mount_layer
for folder in dev proc sys; do
    mount --rbind "/$folder" "$new/$folder"
done
home=/tmp/weir-packages
work="$new$home"
mkdir -p "$work"
"$root/tools/deb/repository.sh" "$work/packages" "$debian"/*.deb
echo "deb [trusted=yes] file:$home/packages ./" >"$work/weir.list"

# in_new COMMAND...: runs it where the packages are, in the folder for files.
in_new()
{
    # shellcheck disable=SC2016
    chroot "$new" env -u TMPDIR HOME="$home" POCL_CACHE_DIR="$home/pocl" \
        sh -c 'cd "$HOME" && exec "$@"' sh "$@"
}
apt()
{
    in_new env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
        -o Dir::Etc::SourceList="$home/weir.list" -o Dir::Etc::SourceParts=/dev/null \
        -o DPkg::Options::=--path-include='/usr/share/*' "$@"
}

expect_status 0 apt update
expect_status 0 apt install "${packages[@]}"

# The command finds its modules, weights and suite.
expect_prints "weir $version" in_new weir --version
expect_says 0 "all is well" in_new env WEIR_BACKEND=opencl weir doctor --all
for module in check cuda fault null opencl perturb trace; do
    expect_contains "$output" "weir_$module.so"
done
printf '[weir]\nbackend = opencl\n[arr_coc]\nside = 256\ngrid = 16\n' >"$work/small.ini"
cp "$root/tests/data/images/coffee.png" "$work/photo.png"
expect_says 0 "arr_coc_weights.safetensors, which comes with Weir" in_new weir run arr-coc --config small.ini photo.png
[ -s "$work/out/photo.tokens.npy" ] || fail "weir run wrote no tokens"

# A user's program, as the pages say; in a system it needs no rpath, and no variable.
cp "$new/usr/share/doc/libweir-dev/examples/pipeline.c" "$work/"
# shellcheck disable=SC2016
expect_status 0 in_new sh -c 'cc pipeline.c -o pipeline $(pkg-config --cflags --libs weir)'
expect_says 0 "frame 9: 230" in_new env WEIR_BACKEND=opencl ./pipeline
expect_says 0 "held up by" in_new env WEIR_BACKEND=opencl weir trace --report ./pipeline
expect_status 0 in_new env WEIR_BACKEND=opencl weir check ./pipeline

expect_status 0 in_new pkg-config --cflags --libs weir
[ "${output% }" = "-lweir" ] || fail "in a system pkg-config says '$output'"
# shellcheck disable=SC2016
expect_status 0 in_new sh -c '[ -s "$(pkg-config --variable=datadir weir)/conf/opencl.ini" ]'
expect_contains "$(in_new /sbin/ldconfig -p)" "libweir.so.0 (libc6,x86-64)"
for page in weir weir-trace weir-completion; do
    ! command -v man >/dev/null || expect_status 0 in_new man -w "$page"
done
# Each shell that is there finds its script by itself.
expect_contains "$(in_new bash -c '. /usr/share/bash-completion/completions/weir
    complete -p weir')" "-F _weir weir"
! command -v fish >/dev/null ||
    expect_contains "$(in_new fish --private -c 'complete -C "weir doc"')" "doctor"
! command -v zsh >/dev/null ||
    expect_status 0 in_new zsh -f -c 'autoload -U +X _weir && [[ $functions[_weir] = *weir* ]]'
if command -v cmake >/dev/null && command -v make >/dev/null; then
    block c 1 >"$work/first.c"
    block cmake 1 >"$work/CMakeLists.txt"
    expect_status 0 in_new sh -c 'cmake -S . -B build && cmake --build build && build/first'
    [ "${output##*$'\n'}" = "Weir $version, backend null" ] || fail "it printed '$output'"
else
    echo "SKIPPED: cmake is not installed; tools/setup.sh --tests installs it"
fi

# Nothing of them stays: nothing differs from the system but the loader's cache.
expect_status 0 apt purge "${packages[@]}"
expect_status 1 dpkg-query --admindir="$new/var/lib/dpkg" -W "${packages[@]}"
left="$(find "$layer/up/usr" "$layer/up/etc" ! -type d ! -name ld.so.cache 2>/dev/null || true)"
[ -z "$left" ] || fail "after the purge there is $left"
