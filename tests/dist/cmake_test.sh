#!/bin/bash
# Programs of a user, built with CMake against the unpacked archive: that of docs/install.md, and
# one in C++17, both also with the static library.
. tests/dist/dist.sh
need cmake cc g++ make
weir="$TEST_TMPDIR/elsewhere/weir"
unpack "$weir"
mkdir -p "$TEST_TMPDIR/outside" "$TEST_TMPDIR/both"
cd "$TEST_TMPDIR/outside"

block c 1 >first.c
block cmake 1 >CMakeLists.txt
output="$(eval "$(block sh 2)" 2>&1)" || fail "the commands of docs/install.md failed: $output"
[ "${output##*$'\n'}" = "Weir $version, backend null" ] || fail "it printed '$output'"

cd "$TEST_TMPDIR/both"
cp "$TEST_TMPDIR/outside/first.c" "$weir/share/weir/examples/overlap.cc" .
cat >CMakeLists.txt <<'TEXT'
cmake_minimum_required(VERSION 3.16)
project(both C CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(weir ${WANTED} REQUIRED)
foreach(kind "" _static)
  add_executable(first${kind} first.c)
  add_executable(overlap${kind} overlap.cc)
  target_link_libraries(first${kind} PRIVATE weir::weir${kind})
  target_link_libraries(overlap${kind} PRIVATE weir::weir${kind})
endforeach()
file(WRITE ${CMAKE_BINARY_DIR}/modules "${WEIR_MODULE_DIR}")
TEXT
expect_status 0 cmake -S . -B build -DCMAKE_PREFIX_PATH="$weir" -DWANTED="$version"
expect_status 0 cmake --build build
WEIR_MODULE_PATH="$(cat build/modules)"
export WEIR_MODULE_PATH
for kind in "" _static; do
    expect_prints "Weir $version, backend null" "build/first$kind"
    expect_says 0 "thrown: the program has no kernel" env WEIR_BACKEND=opencl "build/overlap$kind"
done

# Versions that do not suit are refused.
for wanted in 0.0 0.99 1.0; do
    expect_says 1 "$version" cmake -S . -B "other$wanted" -DCMAKE_PREFIX_PATH="$weir" -DWANTED="$wanted"
done
