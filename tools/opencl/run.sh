#!/bin/bash
# Runs the conformance suite on OpenCL drivers that are unpacked beside the system's, and prints a table.
# shellcheck disable=SC2317 # functions are called by the names of drivers
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root="$PWD"

if [ "${1-}" = --help ] || [ $# -lt 1 ]; then
    cat <<'TEXT'
usage: tools/opencl/run.sh [--check] FOLDER [DRIVER]...

DRIVER is pocl, pocl-basic, pocl-wheel, loader, rusticl, oclgrind or intel; without any, all of them.
pocl is the system's; loader is the same through Khronos' loader, as Intel ships it; pocl-wheel is
the PoCL of PyPI. The others are downloaded with apt-get and pip and unpacked into FOLDER, which may be
used again; nothing is installed, and /etc/OpenCL/vendors is not read for them. rusticl needs a
mount namespace of its own, as Mesa finds libclc by a fixed path.

One row a driver; the reports are FOLDER/DRIVER.json, the messages FOLDER/DRIVER.log. Exit
status 0: every driver ran, whatever failed on it; with --check, 2 if a test failed, or if a driver
that could be had did not run; else 1: a driver could not be had or did not run, as said.
TEXT
    exit 0
fi

check=0
if [ "$1" = --check ]; then
    check=1
    shift
fi
mkdir -p "$1"
folder="$(cd "$1" && pwd)"
shift
[ $# -gt 0 ] || set -- pocl pocl-basic pocl-wheel loader rusticl oclgrind intel
libraries="$folder/debian/usr/lib/$(uname -m)-linux-gnu"

# debian PACKAGE...: unpacks them; what is there already is kept.
debian() {
    local package
    mkdir -p "$folder/debian" "$folder/packages"
    for package in "$@"; do
        [ -e "$folder/packages/$package" ] && continue
        (cd "$folder/packages" && rm -f "${package}"_*.deb && apt-get download "$package") \
            >>"$folder/download.log" 2>&1 || return 1
        dpkg-deb -x "$folder/packages/${package}"_*.deb "$folder/debian" || return 1
        touch "$folder/packages/$package"
    done
}

# vendor NAME LIBRARY: a folder that registers one driver.
vendor() {
    mkdir -p "$folder/vendors/$1"
    echo "$2" >"$folder/vendors/$1/$1.icd"
}

have_pocl() { :; }
have_rusticl() {
    debian mesa-opencl-icd libllvmspirvlib15 libclc-15 libsensors5 libdrm-amdgpu1 libdrm-nouveau2 \
        libdrm-radeon1 && vendor rusticl "$libraries/libRusticlOpenCL.so.1"
}
have_oclgrind() {
    debian oclgrind liboclgrind-21.10 &&
        vendor oclgrind "$folder/debian/usr/lib/oclgrind/liboclgrind-rt-icd.so"
}
# wheels FOLDER PACKAGE...: unpacks them there; what is there already is kept.
wheels() {
    local into="$folder/$1" wheel
    shift
    [ ! -e "$into/done" ] || return 0
    mkdir -p "$into/wheels"
    pip download --quiet --no-deps -d "$into/wheels" "$@" >>"$folder/download.log" 2>&1 || return 1
    for wheel in "$into"/wheels/*.whl; do
        python3 -m zipfile -e "$wheel" "$into/unpacked" || return 1
    done
    touch "$into/done"
}
have_intel() {
    wheels intel intel-opencl-rt intel-cmplr-lib-rt tbb tcmlib umf || return 1
    mkdir -p "$folder/intel/lib" "$folder/loader"
    cp -r "$folder"/intel/unpacked/*.data/data/lib/. "$folder/intel/lib"
    # Intel's own loader must not come before the system's.
    mv "$folder"/intel/lib/libOpenCL.so* "$folder/loader"
    vendor intel "$folder/intel/lib/libintelocl.so"
}
have_loader() { have_intel; }
have_pocl_wheel() {
    wheels pocl-wheel pocl-binary-distribution || return 1
    vendor pocl-wheel "$(find "$folder/pocl-wheel/unpacked" -name 'libpocl*.so*' -print -quit)"
}

suite=("$root/bazel-bin/cli/weir" conform --backend opencl --json --limit 120)

run_pocl() { POCL_DEVICES=pthread "${suite[@]}"; }
run_pocl_basic() { POCL_DEVICES=basic "${suite[@]}"; }
run_pocl_wheel() { OCL_ICD_VENDORS="$folder/vendors/pocl-wheel" run_pocl; }
run_loader() {
    LD_LIBRARY_PATH="$folder/intel/lib" WEIR_OPENCL_LIBRARY="$folder/loader/libOpenCL.so.1" run_pocl
}
run_rusticl() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    LD_LIBRARY_PATH="$libraries" GALLIUM_PIPE_SEARCH_DIR="$libraries/gallium-pipe" \
        RUSTICL_ENABLE=swrast,llvmpipe OCL_ICD_VENDORS="$folder/vendors/rusticl" \
        unshare --map-root-user --mount sh -c 'mount --bind "$0" /usr/lib/clc && exec "$@"' \
        "$folder/debian/usr/lib/clc" "${suite[@]}"
}
run_oclgrind() {
    LD_LIBRARY_PATH="$libraries:$folder/debian/usr/lib/oclgrind" \
        OCL_ICD_VENDORS="$folder/vendors/oclgrind" "${suite[@]}"
}
run_intel() {
    LD_LIBRARY_PATH="$folder/intel/lib" OCL_ICD_VENDORS="$folder/vendors/intel" "${suite[@]}"
}

# row DRIVER: of its report; 1 if a test failed.
row() {
    python3 - "$1" "$folder/$1.json" <<'PYTHON'
import json, sys
report = json.load(open(sys.argv[2]))
failed = [test["name"] for test in report["tests"] if test["outcome"] == "failed"]
print("| %s: %s, %s | %d | %d | %d | %s |" % (sys.argv[1], report["platform"], report["driver"],
      report["passed"], report["failed"], report["skipped"], ", ".join(failed)))
sys.exit(bool(failed))
PYTHON
}

bazel build --noshow_progress //cli:weir //:modules //tests/conformance:conformance >&2
export WEIR_MODULE_PATH="$root/bazel-bin/lib/weir"
lacking=0
failing=0
echo "| driver | passed | failed | skipped | what failed |"
echo "| --- | --- | --- | --- | --- |"
for driver; do
    # The suite's own status tells of failed tests, which the table has.
    have="${driver%-basic}"
    if ! "have_${have//-/_}"; then
        echo "| $driver | | | | not run: a package could not be had, as $folder/download.log says |"
        lacking=1
    elif "run_${driver/-/_}" >"$folder/$driver.json" 2>"$folder/$driver.log"; [ -s "$folder/$driver.json" ]; then
        row "$driver" || failing=1
    else
        echo "| $driver | | | | not run: $(tail -1 "$folder/$driver.log") |"
        lacking=1
        failing=1
    fi
done
[ "$check$failing" != 11 ] || exit 2
exit "$lacking"
