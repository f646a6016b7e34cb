#!/bin/bash
# Installs the packages that `bazel run //:demo` needs on Debian 12 and 13 and Ubuntu 24.04; with --tests also
# those of `bazel test //...` and tools/check.sh.

set -eu

# Each with its purpose. Of names with | between them the first that the release has; those in brackets are
# left out where it has none.
readonly build=(
    bazel-bootstrap       # Bazel: 4.2, or 7.7 in the release after Debian 13
    bazel-platforms       # the repositories it wants
    bazel-skylib
    gcc                   # the compiler of everything,
    g++                   # without which Bazel finds no toolchain
    binutils
    libc6-dev
    "clang-22|clang-18"   # kernels: OpenCL C to PTX
    "libclc-22|libclc-18" # its functions on NVIDIA's GPUs
    libdlpack-dev         # tensors of other libraries
    libinih-dev           # INI files
    libjansson-dev        # JSON
    libjpeg-dev           # JPEG
    libpng-dev            # PNG
    libsodium-dev         # proofs between ranks
    zlib1g-dev
    opencl-c-headers      # declarations of OpenCL
    ocl-icd-libopencl1    # the OpenCL loader
    pocl-opencl-icd       # an OpenCL device without a GPU
    python3               # generators of the build
)
readonly tests=(
    clang-format
    clang-tidy
    googletest            # GoogleTest's sources
    libgtest-dev
    dpkg-dev              # makes the Debian packages
    gpg                   # signs a folder of them,
    gpg-agent             # and keeps the key
    lintian               # checks them
    mmdebstrap            # makes the bare system that they are installed in
    openmpi-bin           # two MPIs, for the tests of the transport `mpi`
    mpich
    mandoc                # checks the manual pages
    doxygen               # makes the site
    "libdw1|libdw1t64"    # lines of programs without Weir
    pkg-config            # reads the delivered .pc file,
    cmake                 # and this the delivered CMake files
    make                  # which cmake writes for
    python3-venv          # a folder for what tools/hta/run.sh installs
    python3-dev           # the headers of the Python package,
    python3-pytest        # which tests it,
    mypy                  # its types,
    python3-numpy         # and arrays
    python3-pyopencl      # programs without Weir: Python's,
    opencl-clhpp-headers  # and those of Khronos' wrapper for C++
    ffmpeg                # streams of video for the tests of `weir run`
    "[chromium]"          # a browser for the test of the page; Ubuntu has it as a snap only
    fish                  # shells in which `weir completion` is tested
    zsh
    git
)

usage()
{
    cat <<'TEXT'
usage: tools/setup.sh [--tests] [--check | --help]

Installs the Debian packages that are missing, and nothing else: those that
`bazel run //:demo` needs. May be run again at any time. Needs root, or sudo.

  --tests   also those of `bazel test //...` and tools/check.sh, and basedpyright
            from PyPI, in ~/.cache/weir/pyright
  --check   only say what is missing; exit status 1 when something is
  --help    this text
TEXT
}

# has_release PACKAGE: whether apt could install it. Without lists of packages everything is taken for there.
has_release()
{
    [ -n "$(apt-cache pkgnames bazel-bootstrap)" ] || return 0
    apt-cache policy "$1" | grep -q '^  Candidate: [^(]'
}

# missing: of the packages that are not installed, those to install, one a line.
missing()
{
    local package name names chosen
    for package in "${packages[@]}"; do
        IFS='|' read -ra names <<<"${package//[\[\]]/}"
        chosen=
        for name in "${names[@]}"; do
            case "$(dpkg-query -W -f '${Status}' "$name" 2>/dev/null)" in
            "install ok installed") continue 2 ;;
            esac
            [ -n "$chosen" ] || ! has_release "$name" || chosen="$name"
        done
        case "$package" in
        "["*) [ -z "$chosen" ] || printf '%s\n' "$chosen" ;;
        *) printf '%s\n' "${chosen:-${names[0]}}" ;;
        esac
    done
}

# Bazel 7 of Debian takes modules from the folders of its packages; older ones read WORKSPACE.
choose_modules()
{
    local link
    link="$(dirname "${BASH_SOURCE[0]}")/bazel/here.bazelrc"
    rm -f "$link"
    [ ! -e /usr/share/bazel/rules/cc/MODULE.bazel ] || ln -s debian7.bazelrc "$link"
}

# The types of the Python package are also checked by pyright, which Debian has not: its test is skipped without it.
install_pyright()
{
    local venv="${XDG_CACHE_HOME:-$HOME/.cache}/weir/pyright"
    [ "$tests_too" -eq 1 ] || return 0
    if [ ! -x "$venv/bin/basedpyright" ] &&
        ! { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --timeout 10 "basedpyright<2"; } >/dev/null 2>&1; then
        echo "setup: basedpyright cannot be installed from PyPI; the test that needs it will be skipped"
    fi
}

check_only=0
tests_too=0
packages=("${build[@]}")
for option; do
    case "$option" in
    --tests)
        packages=("${build[@]}" "${tests[@]}")
        tests_too=1
        ;;
    --check) check_only=1 ;;
    --help)
        usage
        exit 0
        ;;
    *)
        echo "setup: unknown argument '$option'" >&2
        usage >&2
        exit 2
        ;;
    esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "setup: this is not a Debian system. Install the equivalents of: ${packages[*]}" >&2
    exit 1
fi

mapfile -t wanted < <(missing)
if [ "${#wanted[@]}" -eq 0 ]; then
    choose_modules
    [ "$check_only" -eq 1 ] || install_pyright
    echo "setup: all ${#packages[@]} packages are installed"
    exit 0
fi
if [ "$check_only" -eq 1 ]; then
    echo "setup: missing: ${wanted[*]}"
    exit 1
fi

run_as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "setup: installing needs root, and there is no sudo. As root, run:" >&2
        echo "    apt-get install --no-install-recommends ${wanted[*]}" >&2
        exit 1
    fi
    run_as_root=(sudo)
fi

# env, because sudo drops the environment. No questions, no recommended extras.
apt=("${run_as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y)
echo "setup: reading the package lists"
"${apt[@]}" update </dev/null
mapfile -t wanted < <(missing)
echo "setup: installing ${#wanted[@]} packages: ${wanted[*]}"
"${apt[@]}" install --no-install-recommends "${wanted[@]}" </dev/null

mapfile -t wanted < <(missing)
if [ "${#wanted[@]}" -ne 0 ]; then
    echo "setup: still missing: ${wanted[*]}" >&2
    exit 1
fi
choose_modules
install_pyright
echo "setup: done"
