#!/bin/bash
# bench.sh PYTHON: prints what each call costs in C and in Python, on null, in turns.
set -eu
export PYTHONPATH="$PWD/python/package" LD_LIBRARY_PATH="$PWD/python/package/weir/lib" PYTHONDONTWRITEBYTECODE=1
exec "$1" python/bench/calls.py python/bench/calls
