#!/bin/bash
# Kernels of a user, compiled by the unpacked archive without Bazel and without a CUDA toolkit: the
# commands, the Makefile and the CMake project of docs/install.md, and what CMake's function takes and
# refuses. The programs run on PoCL.
. tests/dist/dist.sh
need cmake cc g++ make pkg-config
export WEIR_BACKEND=opencl CUDA_HOME=none
weir="$TEST_TMPDIR/elsewhere/weir"
unpack "$weir"
export weir PKG_CONFIG_PATH="$weir/lib/pkgconfig"
mkdir "$TEST_TMPDIR/outside"
cd "$TEST_TMPDIR/outside"

# By hand.
output="$(eval "$(block sh 3)" 2>&1)" || fail "the commands of docs/install.md failed: $output"
[ "${output##*$'\n'}" = "1000 * 2 = 2000" ] || fail "it printed '$output'"
expect_contains "$output" "the bundle has no CUDA images"

# In C++, as docs/cpp.md says.
output="$(eval "rm -r kernels; $(block sh 1 cpp.md)" 2>&1 && ./first)" || fail "the commands of docs/cpp.md failed: $output"
[ "${output##*$'\n'}" = "1000 * 2 = 2000" ] || fail "it printed '$output'"

# With make: nothing is built twice, and a changed kernel is built again.
start()
{
    cp -r "$weir/share/weir/examples/kernels" "$1"
    cd "$1"
}
start made
block make 1 >Makefile
expect_status 0 make
expect_prints "1000 * 2 = 2000" ./first
expect_says 0 "up to date" make
# All files have one old time, so that what is changed then is newer than all others.
change()
{
    find . -type f -exec touch -d "1 hour ago" {} +
    sed -i "$2" "$1"
}
change scale.cl 's/\* factor/* factor + 1/'
expect_status 0 make
expect_prints "1000 * 2 = 2001" ./first
echo 'float more() { return 2; }' >more.h
change scale.cl '1i #include "more.h"
s/factor + 1/factor + more()/'
expect_status 0 make
change more.h 's/2/3/'
expect_status 0 make
expect_prints "1000 * 2 = 2003" ./first
change scale.cl '1d; s/factor + more()/factr/'
expect_says 2 "scale.cl:4:22: error: use of undeclared identifier 'factr'" make
cd ..

# With CMake.
start configured
block cmake 2 >CMakeLists.txt
expect_status 0 cmake -S . -B build -DCMAKE_PREFIX_PATH="$weir"
expect_status 0 cmake --build build
expect_prints "1000 * 2 = 2000" build/first
sed -i 's/\* factor/* factr/' scale.cl
touch -d "+10 seconds" scale.cl
expect_says 2 "scale.cl:4:22: error: use of undeclared identifier 'factr'" cmake --build build
cd ..

# All arguments, in a folder of the project, and a header that the kernels depend on.
mkdir -p full/part/include
cp "$weir"/share/weir/examples/kernels/* full/part/
cd full
cat >CMakeLists.txt <<'TEXT'
cmake_minimum_required(VERSION 3.16)
project(full C CXX)
find_package(weir REQUIRED)
add_subdirectory(part)
TEXT
cat >part/CMakeLists.txt <<'TEXT'
add_executable(first first.c)
target_link_libraries(first weir::weir_static)
weir_add_kernels(first scale.cl more.cl NAME two SYMBOL both STD CL2.0 FAST
  DEFINES "ONE=(1 + 0)" USED INCLUDES include CUBIN none PTX none)
weir_add_kernels(first more.cl INCLUDES include DEFINES ONE USED)
TEXT
cat >part/more.cl <<'TEXT'
#include "add.h"
#ifndef USED
#error the definition is missing
#endif
__kernel void more(__global int *out)
{
    out[0] = ONE + ADD;
}
TEXT
echo '#define ADD 5' >part/include/add.h
sed -i 's|"scale.h".*|"two.h"\n#include "more.h"|; s|&scale_kernels|more_kernels.kernel_count == 1 ? \&both : NULL|' \
    part/first.c
expect_status 0 cmake -S . -B build -DCMAKE_PREFIX_PATH="$weir"
expect_status 0 cmake --build build
expect_prints "1000 * 2 = 2000" env WEIR_MODULE_PATH="$weir/lib/weir" build/part/first
two=build/part/weir_kernels/first/two.c
expect_contains "$(cat $two)" 'const struct weir_bundle both = {'
expect_contains "$(cat $two)" '"more", parameters_more'
strings -n 3 build/part/first | grep -qF '#define ONE (1 + 0)' || fail "DEFINES is not in the bundle"
before="$(cksum <$two)"
echo '#define ADD 6' >part/include/add.h
touch -d "+10 seconds" part/include/add.h
expect_status 0 cmake --build build
[ "$(cksum <$two)" != "$before" ] || fail "a changed header did not make the bundle again"
cd ..

# An image that is there, and CUDA C++, which takes no toolkit to be left out.
start twin
cat >CMakeLists.txt <<'TEXT'
cmake_minimum_required(VERSION 3.16)
project(twin C)
find_package(weir REQUIRED)
add_executable(first first.c)
target_link_libraries(first PRIVATE weir::weir)
weir_add_kernels(first scale.cl CUDA_IMAGES scale.ptx)
weir_add_kernels(first scale.cl NAME other CUDA scale.cu NVCC_OPTIONS -O1 -lineinfo)
TEXT
printf '.target sm_80\n.entry scale(.param .u64 a, .param .u64 b, .param .f32 c)\n' >scale.ptx
touch scale.cu
expect_status 0 cmake -S . -B build -DCMAKE_PREFIX_PATH="$weir"
expect_says 0 "scale.cu is not compiled, and CUDA devices will refuse the bundle" cmake --build build
expect_prints "1000 * 2 = 2000" build/first
expect_contains "$(cat build/weir_kernels/first/scale.c)" 'WEIR_IMAGE_PTX, "sm_80"'
sed -i 's/.f32 c/.f64 c/' scale.ptx
touch -d "+10 seconds" scale.ptx
expect_says 2 "parameter 3, 'factor': float has 4 bytes in scale.cl, and 8 in scale.ptx" cmake --build build
cd ..

# What CMake's function refuses.
refused()
{
    local part="$1"
    rm -rf refused
    mkdir refused
    printf 'int main() { return 0; }\n' >refused/main.cc
    printf 'cmake_minimum_required(VERSION 3.16)\nproject(refused %s)\nfind_package(weir REQUIRED)\n%s\n' \
        "$2" "$3" >refused/CMakeLists.txt
    expect_status 1 cmake -S refused -B refused/build -DCMAKE_PREFIX_PATH="$weir"
    expect_contains "$(tr -s ' \n' ' ' <<<"$output")" "$part"
}
refused "there is no target 'main'; add it before" "C CXX" "weir_add_kernels(main a.cl)"
refused "so the project needs that language: project(refused C CXX)" CXX "add_executable(main main.cc)
weir_add_kernels(main a.cl)"
refused "weir_add_kernels(main): no .cl file is named" "C CXX" "add_executable(main main.cc)
weir_add_kernels(main a.c NAME a)"
