#!/bin/bash
# Runs the conformance suite on OpenCL drivers that are unpacked beside the system's, and prints a table.
# shellcheck disable=SC2317 # functions are called by the names of drivers
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root="$PWD"

if [ "${1-}" = --help ] || [ $# -lt 1 ]; then
    cat <<'TEXT'
usage: tools/opencl/run.sh [--check | --unpack] [--within SECONDS] FOLDER [DRIVER]...

DRIVER is pocl, pocl-basic, pocl-wheel, pocl-trixie, pocl-sid, loader, loader-sid, rusticl,
rusticl-trixie, rusticl-sid, oclgrind or intel; without any, all of them. pocl is the system's;
loader is the same through Khronos' loader, as Intel ships it; loader-sid is pocl-sid through
Khronos' loader, as Debian's sid has it, in place of ocl-icd; pocl-wheel is the PoCL of PyPI;
trixie and sid are Debian's later suites. All but pocl and pocl-basic are downloaded with apt-get,
mmdebstrap and pip, within four minutes each, and unpacked into FOLDER, which may be used again; nothing is
installed, and /etc/OpenCL/vendors is not read for them.
A later suite's driver runs in a root folder of its own, with that suite's C library, and so does
rusticl, as Mesa finds libclc by a fixed path; this needs namespaces for users and mounts.

With --unpack the drivers are unpacked and nothing is run: exit status 1 if one could not be had.

Else one row a driver; the reports are FOLDER/DRIVER.json, the messages FOLDER/DRIVER.log. The
suite has SECONDS on each, 1800 unless said. Exit status 0: every driver ran, whatever failed on it;
with --check, 2 if other tests failed than tools/opencl/failures.txt has for the driver, or if a
driver that could be had did not run or was not done in time; else 1: a driver could not be had or
did not run, as said.
TEXT
    exit 0
fi

check=0
unpack=0
within=1800
while [[ "${1-}" = --* ]]; do
    case "$1" in
    --check) check=1 ;;
    --unpack) unpack=1 ;;
    --within)
        within="${2-}"
        shift
        ;;
    *)
        echo "run.sh: there is no option $1: see --help" >&2
        exit 3
        ;;
    esac
    shift
done
if [[ ! "$within" =~ ^[1-9][0-9]*$ ]] || [ $# -lt 1 ]; then
    echo "run.sh: it takes a folder, and --within a number of seconds from 1: see --help" >&2
    exit 3
fi
mkdir -p "$1"
folder="$(cd "$1" && pwd)"
shift
[ $# -gt 0 ] || set -- pocl pocl-basic pocl-wheel pocl-trixie pocl-sid loader loader-sid rusticl \
    rusticl-trixie rusticl-sid oclgrind intel
libraries="$folder/debian/usr/lib/$(uname -m)-linux-gnu"
suite_here="$(. /etc/os-release && echo "$VERSION_CODENAME")"

# download COMMAND...: within four minutes; the log has what it says.
download() {
    local status=0
    timeout --kill-after=5 240 "$@" >>"$folder/download.log" 2>&1 || status=$?
    [ "$status" != 124 ] || echo "not done within four minutes: $*" >>"$folder/download.log"
    return "$status"
}

# debian PACKAGE...: unpacks them; what is there already is kept.
debian() {
    local package
    mkdir -p "$folder/debian" "$folder/packages"
    for package in "$@"; do
        [ -e "$folder/packages/$package" ] && continue
        (cd "$folder/packages" && rm -f "${package}"_*.deb && download apt-get download "$package") ||
            return 1
        dpkg-deb -x "$folder/packages/${package}"_*.deb "$folder/debian" || return 1
        touch "$folder/packages/$package"
    done
}

# vendor NAME LIBRARY: a folder that registers one driver.
vendor() {
    mkdir -p "$folder/vendors/$1"
    echo "$2" >"$folder/vendors/$1/$1.icd"
}

# later SUITE PACKAGE [LOADER]: a root folder with a driver of a suite and all that it needs, and
# with Weir. The loader is ocl-icd unless said.
later() {
    local suite="$1" at="$folder/$1-$2${3:+-$3}" mirror name
    unshare --map-root-user --mount true 2>>"$folder/download.log" || return 1
    if [ ! -e "$at/done" ]; then
        rm -rf "$at"
        mkdir -p "$at"
        # shellcheck disable=SC2016 # apt-get expands it
        mirror="$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Label: Debian' | head -n 1)"
        apt-config dump | grep -E '^Acquire::(http|https)::' >"$at/proxies" || true
        # A mirror that is not renewed any more still has drivers to test with.
        download mmdebstrap --quiet --mode=chrootless --variant=extract --include="$2,${3:-ocl-icd-libopencl1}" \
            --aptopt="$at/proxies" "$suite" "$at/root" \
            "deb [check-valid-until=no] ${mirror:-http://deb.debian.org/debian} $suite main" || return 1
        for name in bin sbin lib lib64; do # as base-files has them
            mkdir -p "$at/root/usr/$name"
            ln -sfn "usr/$name" "$at/root/$name"
        done
    fi
    touch "$at/done"
    rm -rf "$at/root/weir"
    mkdir -p "$at/root/weir/bin" "$at/root/weir/lib" "$at/root/weir/libexec/weir"
    cp bazel-bin/cli/weir "$at/root/weir/bin"
    cp -L bazel-bin/lib/weir/*.so "$at/root/weir/lib"
    cp bazel-bin/tests/conformance/conformance "$at/root/weir/libexec/weir"
}

# run_later ROOT [NAME=VALUE]: in that root folder, which sees the processes and devices of the system.
run_later() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    env -i PATH="$PATH" HOME=/tmp XDG_CACHE_HOME=/tmp WEIR_MODULE_PATH=/weir/lib \
        RUSTICL_ENABLE=llvmpipe "${@:2}" timeout --kill-after=5 "$within" unshare --map-root-user --mount sh -c 'cd "$0" && mkdir -p proc dev sys tmp &&
        mount --rbind /proc proc && mount --rbind /dev dev && mount --rbind /sys sys &&
        mount -t tmpfs none tmp && exec chroot . "$@"' "$folder/$1/root" \
        /weir/bin/weir "${conform[@]}"
}

have_pocl() { :; }
have_rusticl() { later "$suite_here" mesa-opencl-icd; }
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
    download pip download --quiet --no-deps -d "$into/wheels" "$@" || return 1
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
have_pocl_trixie() { later trixie pocl-opencl-icd; }
have_pocl_sid() { later sid pocl-opencl-icd; }
have_loader_sid() { later sid pocl-opencl-icd khronos-opencl-icd-libopencl1; }
have_rusticl_trixie() { later trixie mesa-opencl-icd; }
have_rusticl_sid() { later sid mesa-opencl-icd; }

conform=(conform --backend opencl --json --limit 120)
suite=(timeout --kill-after=5 "$within" "$root/bazel-bin/cli/weir" "${conform[@]}")

run_pocl() { POCL_DEVICES=pthread "${suite[@]}"; }
run_pocl_basic() { POCL_DEVICES=basic "${suite[@]}"; }
run_pocl_wheel() { OCL_ICD_VENDORS="$folder/vendors/pocl-wheel" run_pocl; }
run_loader() {
    LD_LIBRARY_PATH="$folder/intel/lib" WEIR_OPENCL_LIBRARY="$folder/loader/libOpenCL.so.1" run_pocl
}
run_rusticl() { run_later "$suite_here-mesa-opencl-icd"; }
run_oclgrind() {
    LD_LIBRARY_PATH="$libraries:$folder/debian/usr/lib/oclgrind" \
        OCL_ICD_VENDORS="$folder/vendors/oclgrind" "${suite[@]}"
}
run_pocl_trixie() { run_later trixie-pocl-opencl-icd; }
run_pocl_sid() { run_later sid-pocl-opencl-icd; }
run_loader_sid() { run_later sid-pocl-opencl-icd-khronos-opencl-icd-libopencl1; }
run_rusticl_trixie() { run_later trixie-mesa-opencl-icd; }
# Its library lacks fma().
run_rusticl_sid() { run_later sid-mesa-opencl-icd WEIR_OPENCL_BUILD_OPTIONS=-Dfma=mad; }
run_intel() {
    LD_LIBRARY_PATH="$folder/intel/lib" OCL_ICD_VENDORS="$folder/vendors/intel" "${suite[@]}"
}

# unknown_processor DRIVER: whether it compiles nothing here, as its LLVM does not know the processor.
unknown_processor() {
    [ "$1" = pocl-wheel ] || return 1
    local suite=("${suite[@]}" --filter Launch.Geometry)
    "run_${1//-/_}" 2>&1 | grep -q "unknown target CPU"
}

# row DRIVER: of its report; 1 if other tests failed than those that are known to.
row() {
    python3 - "$1" "$folder/$1.json" "$root/tools/opencl/failures.txt" <<'PYTHON'
import json, sys
driver, path, list_path = sys.argv[1:]
report = json.load(open(path))
failed = {test["name"] for test in report["tests"] if test["outcome"] == "failed"}
rows = [line.split(None, 3) for line in open(list_path) if line.strip() and not line.startswith("#")]
wrong = ["%s: no reason, or neither always nor sometimes: %s" % (list_path, " ".join(row))
         for row in rows if len(row) < 4 or row[2] not in ("always", "sometimes")]
known = {row[1]: row for row in rows if row[0] == driver and len(row) == 4}
mended = ["%s passes on %s now: take it out of %s" % (name, driver, list_path)
          for name in sorted(set(known) - failed) if known[name][2] == "always"]
wrong += ["%s fails on %s, and %s has no reason for it" % (name, driver, list_path)
          for name in sorted(failed - set(known))]
print("| %s: %s, %s | %d | %d | %d | %s |" % (driver, report["platform"], report["driver"],
      report["passed"], report["failed"], report["skipped"],
      "; ".join(name + (", known: " + known[name][3].strip() if name in known else "") for name in sorted(failed))))
print("".join(line + "\n" for line in wrong + mended), end="", file=sys.stderr)
# Drivers of sid are replaced at any time.
sys.exit(1 if wrong or (mended and not driver.endswith("-sid")) else 0)
PYTHON
}

if [ "$unpack" = 1 ]; then
    for driver; do
        "have_${driver//-/_}" || exit 1
    done
    exit 0
fi
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
        continue
    fi
    if unknown_processor "$driver"; then
        echo "| $driver | | | | not run: its LLVM does not know this machine's processor |" | tee -a "$folder/download.log"
        lacking=1
        continue
    fi
    status=0
    "run_${driver//-/_}" >"$folder/$driver.json" 2>"$folder/$driver.log" || status=$?
    if [ "$status" = 124 ] || [ "$status" = 137 ]; then
        echo "| $driver | | | | not done within $within s |"
        lacking=1
        failing=1
    elif [ -s "$folder/$driver.json" ]; then
        row "$driver" || failing=1
    else
        echo "| $driver | | | | not run: $(tail -1 "$folder/$driver.log") |"
        lacking=1
        failing=1
    fi
done
[ "$check$failing" != 11 ] || exit 2
exit "$lacking"
