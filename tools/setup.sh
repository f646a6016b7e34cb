#!/bin/bash
# Installs the packages that the build, the tests and tools/check.sh need on Debian 12.

set -eu

# Each with its purpose.
readonly packages=(
    bazel-bootstrap       # Bazel 4.2
    bazel-platforms       # the repositories it wants
    bazel-skylib
    gcc                   # the compiler of everything,
    g++                   # of GoogleTest and the C++ tests
    binutils
    libc6-dev
    clang-22              # kernels: OpenCL C to PTX
    libclc-22             # its functions on NVIDIA's GPUs
    clang-format
    clang-tidy
    googletest            # GoogleTest's sources
    libgtest-dev
    libdlpack-dev         # tensors of other libraries
    libinih-dev           # INI files
    libjansson-dev        # JSON
    libjpeg62-turbo-dev   # JPEG
    libpng-dev            # PNG
    libsodium-dev         # proofs between ranks
    zlib1g-dev
    opencl-c-headers      # declarations to check ours against
    ocl-icd-libopencl1    # the OpenCL loader
    pocl-opencl-icd       # an OpenCL device without a GPU
    dpkg-dev              # makes the Debian packages
    gpg                   # signs a folder of them
    lintian               # checks them
    mmdebstrap            # makes the bare system that they are installed in
    openmpi-bin           # two MPIs, for the tests of the transport `mpi`
    mpich
    mandoc                # checks the manual pages
    doxygen               # makes the site
    pkg-config            # reads the delivered .pc file,
    cmake                 # and this the delivered CMake files
    make                  # which cmake writes for
    python3               # generators of the build,
    python3-venv          # and a folder for what tools/hta/run.sh installs
    ffmpeg                # streams of video for the tests of `weir run`
    chromium              # a browser for the test of the page
    fish                  # shells in which `weir completion` is tested
    zsh
    git
)

usage()
{
    cat <<'TEXT'
usage: tools/setup.sh [--check | --help]

Installs the Debian packages that are missing, and nothing else. May be run
again at any time. Needs root, or sudo.

  --check   only say what is missing; exit status 1 when something is
  --help    this text
TEXT
}

# The names of the packages that are not installed, one a line.
missing()
{
    local package status
    for package in "${packages[@]}"; do
        status="$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)"
        [ "$status" = "install ok installed" ] || printf '%s\n' "$package"
    done
}

check_only=0
case "${1-}" in
'') ;;
--check) check_only=1 ;;
--help)
    usage
    exit 0
    ;;
*)
    echo "setup: unknown argument '$1'" >&2
    usage >&2
    exit 2
    ;;
esac
if [ "$#" -gt 1 ]; then
    echo "setup: one argument at most" >&2
    exit 2
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "setup: this is not a Debian system. Install the equivalents of: ${packages[*]}" >&2
    exit 1
fi

mapfile -t wanted < <(missing)
if [ "${#wanted[@]}" -eq 0 ]; then
    echo "setup: all ${#packages[@]} packages are installed"
    exit 0
fi
echo "setup: missing: ${wanted[*]}"
[ "$check_only" -eq 0 ] || exit 1

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
echo "setup: installing ${#wanted[@]} packages"
"${apt[@]}" install --no-install-recommends "${wanted[@]}" </dev/null

mapfile -t wanted < <(missing)
if [ "${#wanted[@]}" -ne 0 ]; then
    echo "setup: still missing: ${wanted[*]}" >&2
    exit 1
fi
echo "setup: done"
