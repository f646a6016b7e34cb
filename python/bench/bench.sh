#!/bin/bash
# bench.sh PYTHON PROGRAM ARGUMENT...: runs a program of this folder with the package that was built.
set -eu
export PYTHONPATH="$PWD/python/package" LD_LIBRARY_PATH="$PWD/python/package/weir/lib" PYTHONDONTWRITEBYTECODE=1
python="$1"
program="$2"
shift 2
exec "$python" "python/bench/$program" "$@"
