#!/bin/bash
# Counts which files of list.txt, public OpenCL C of other projects, the compilers of the OpenCL and
# the CUDA backend accept, refuse or fail at.
set -eu
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cd "$here/../.."

if [ "${1-}" = --help ]; then
    cat <<'TEXT'
usage: tools/corpus/run.sh [--from DIR] [--cuda COMMAND] [--opencl COMMAND] [--only PATTERN]
                           [--json FILE] [--messages] [--limit SECONDS] [--list FILE]

--from DIR        the checkouts, DIR/OWNER/NAME, at the commits of the list. Without it they are
                  fetched with git, each at its one commit, into WEIR_CORPUS or
                  ~/.cache/weir/corpus, and stay there.
--cuda COMMAND    run for each file, in its repository's folder. It exits with 0 if the file is
                  accepted and with 1, a reason on stderr, if it is refused; anything else is a
                  failure. An empty COMMAND leaves the column out. By default the compiler of
                  //kernels/compiler, for sm_90. In it are replaced: {file}, {std} (CL1.2), {work}
                  (a folder for its output), and as words {options}, {defines} (those that begin
                  with -D or -I) and {fast} (--fast, or nothing).
--opencl COMMAND  the same; {text} is the file with the text of what it includes, {others} all
                  options but -I in one word. By default the program is built by the OpenCL backend
                  on its first device: POCL_DEVICES and the OpenCL loader's variables choose it.
--only PATTERN    files whose OWNER/NAME/PATH matches
--messages        after the table, the message of every file that is not accepted

Needs git, python3 with its headers, and clang-22.
TEXT
    exit 0
fi

bazel build --noshow_progress //python:package //kernels/compiler:weir_kernels
export PYTHONPATH="$PWD/bazel-bin/python/package"
compiler="$PWD/bazel-bin/kernels/compiler/weir_kernels"
python3 tools/corpus/corpus.py \
    --fetch "${WEIR_CORPUS:-${XDG_CACHE_HOME:-$HOME/.cache}/weir/corpus}" \
    --opencl "python3 $PWD/tools/corpus/accept.py opencl {text} '-cl-std={std} {others}'" \
    --cuda "$compiler --symbol s --label l --out {work}/s --cubin 90 --std {std} \
        {fast} {defines} {file}" "$@"
