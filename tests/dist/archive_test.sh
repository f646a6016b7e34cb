#!/bin/bash
# The contents of the archives, which need only glibc.
. tests/dist/dist.sh

# An archive contains nothing that depends on the build machine or the time.
for archive in "$main_archive" "$cuda_archive"; do
    [ "$(od -An -tx1 -N10 "$archive" | tr -d ' ')" = 1f8b0800000000000203 ] ||
        fail "$archive: the gzip header has a name or a date"
    list="$(tar --full-time --numeric-owner -tvzf "$archive")"
    odd="$(printf '%s\n' "$list" | grep -v ' 0/0 .* 2000-01-01 00:00:00 ' || true)"
    [ -z "$odd" ] || fail "$archive: another owner or date: $odd"
    names="$(tar -tzf "$archive" | sed 's|/$||')"
    [ "$names" = "$(printf '%s\n' "$names" | LC_ALL=C sort)" ] || fail "$archive is not sorted"
    [ -z "$(printf '%s\n' "$names" | grep -v "^$folder")" ] || fail "$archive unpacks elsewhere"
done
[ "$(tar -tzf "$cuda_archive" | grep -v '/$' | sed "s|^$folder/||" | tr '\n' ' ')" = \
    "lib/weir/weir_cuda.so share/weir/conf/cuda.ini " ] || fail "what is in $cuda_archive?"

there="$TEST_TMPDIR/weir"
unpack "$there"
[ ! -e "$there/lib/weir/weir_cuda.so" ] || fail "the CUDA module is in both archives"
tar -xzf "$cuda_archive" -C "$TEST_TMPDIR/unpacked"
cp -r "$TEST_TMPDIR/unpacked/$folder/." "$there"
for file in bin/weir lib/libweir.a lib/libweir.so lib/weir/libweir_locks.so lib/weir/weir_null.so lib/weir/weir_opencl.so \
    lib/weir/weir_cuda.so lib/weir/libweir_opencl_layer.so lib/weir/weir-opencl-trial include/weir/weir.h include/weir/module/module.h \
    include/weir/patterns/pipeline.h lib/pkgconfig/weir.pc lib/cmake/weir/weir-config.cmake \
    share/weir/conf/reference.ini share/weir/arr_coc_weights.safetensors \
    share/bash-completion/completions/weir share/fish/vendor_completions.d/weir.fish \
    share/zsh/site-functions/_weir share/man/man1/weir-conform.1 share/doc/weir/README.md share/doc/weir/docs/install.md \
    share/doc/weir/docs/decisions/0001-one-submit-slot.md share/doc/weir/docs/images/trace.png \
    share/doc/weir/third-party.txt share/weir/examples/pipeline.c share/weir/examples/kernels/scale.cl \
    include/weir/kit/records.h lib/libweir_kit.a share/weir/backends/null/null.h \
    libexec/weir/conformance libexec/weir/compare; do
    [ -s "$there/$file" ] || fail "there is no $file"
done

# Every program and library needs no newer libc than Debian 12's, or than that of a newer machine which built it.
own="$(getconf GNU_LIBC_VERSION)"
newest_allowed="$(printf '%s\n' GLIBC_2.36 "GLIBC_${own#glibc }" | sort -V | tail -n 1)"
count=0
while IFS= read -r file; do
    [ "$(head -c 4 "$file" | od -An -tx1 | tr -d ' ')" = 7f454c46 ] || continue
    count=$((count + 1))
    head="$(objdump -p "$file")"
    others="$(printf '%s\n' "$head" | awk '$1 == "NEEDED" { print $2 }' |
        grep -v -x 'libc\.so\.6\|libm\.so\.6\|ld-linux-x86-64\.so\.2' || true)"
    [ -z "$others" ] || fail "$file needs $others"
    expect_not_contains "$head" RPATH
    expect_not_contains "$head" RUNPATH
    newest="$(printf '%s\n' "$newest_allowed" "$(objdump -T "$file" | grep -o 'GLIBC_[0-9.]*')" |
        sort -V | tail -n 1)"
    [ "$newest" = "$newest_allowed" ] || fail "$file needs $newest"
    ! grep -q '/execroot/' "$file" || fail "$file has paths of the machine that built it"
done < <(find "$there" -type f)
[ "$count" -ge 7 ] || fail "only $count programs and libraries were found"
for module in "$there"/lib/weir/weir_*.so; do
    expect_prints weir_module_query exports "$module"
done
expect_prints "clGetLayerInfo clInitLayer clInitLayerWithProperties" exports "$there/lib/weir/libweir_opencl_layer.so"

# The libraries export what the headers declare, and nothing else.
for header in "$there"/include/weir/*.h "$there"/include/weir/patterns/*.h; do
    printf '#include <%s>\n' "${header#"$there/include/"}"
done >all.c
cc -std=c11 -I"$there/include" -E -P all.c | tr '\n' ' ' |
    grep -o '__attribute__((visibility("default")))[^;{]*' |
    sed 's/__attribute__((warn_unused_result))//g; s/__attribute__(([^)]*([^)]*)))//g; s/(.*//; s/.*[ *]//' | sort -u >declared
nm -D --defined-only "$there/lib/libweir.so.0" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
    sort -u >exported
nm -g --defined-only "$there/lib/libweir.a" | awk 'NF == 3 { print $3 }' | sort -u >archived
[ "$(wc -l <declared)" -ge 60 ] || fail "the headers declare only $(wc -l <declared) functions"
diff declared exported || fail "libweir.so does not export what the headers declare"
diff declared archived || fail "libweir.a does not have what the headers declare"

# So does the kit, whose functions no module exports.
for header in "$there"/include/weir/kit/*.h; do
    printf '#include <%s>\n' "${header#"$there/include/"}"
done >kit.c
cc -std=c11 -I"$there/include" -E -P kit.c | tr '\n' ' ' | sed 's/{[^}]*}/{}/g' |
    grep -o 'weir_kit_[a-z_]*(' | tr -d '(' | sort -u >declared
nm -g --defined-only "$there/lib/libweir_kit.a" | awk 'NF == 3 { print $3 }' | sort -u >archived
[ "$(wc -l <declared)" -ge 30 ] || fail "the kit declares only $(wc -l <declared) functions"
diff declared archived || fail "libweir_kit.a does not have what the headers declare"
expect_contains "$(objdump -p "$there/lib/libweir.so.0")" "SONAME               libweir.so.0"

# Each header compiles alone, in both languages.
while IFS= read -r header; do
    for language in c11 c++17; do
        printf '#include <%s>\n' "${header#"$there/include/"}" >"one.${language:0:3}.c"
        cc -x "$([ $language = c11 ] && echo c || echo c++)" -std=$language -Wall -Wextra -Wpedantic \
            -Werror -I"$there/include" -fsyntax-only "one.${language:0:3}.c" ||
            fail "$header does not compile as $language"
    done
done < <(find "$there/include" -name '*.h')
