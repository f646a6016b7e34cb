#!/bin/bash
# run.sh PYTHON FILE... [OPTIONS]: runs pytest on the files, with the package that was built.
. tests/support/shell.sh

python="$1"
shift
if ! "$python" -c 'import pytest' 2>/dev/null; then
    fail "$python has no pytest: install the Debian package python3-pytest (tools/setup.sh --tests)"
fi
# Bytecode would go beside the sources; -X dev shows what is not closed.
export PYTHONPATH="$PWD/python/package" PYTHONDONTWRITEBYTECODE=1
# The runtimes of the sanitizers that the package is built with have to come before the interpreter's own memory. Leaks of
# the interpreter are none of ours, and PoCL's threads have signal stacks of their own.
runtimes="$(readelf -d python/package/weir/_weir.abi3.so | grep -o 'lib[a-z]*san\.so\.[0-9]*' | paste -sd ' ')"
if [[ "$runtimes" == *tsan* ]]; then
    echo "skipped: the interpreter is not built for the detector of races"
    exit 0
fi
export LD_PRELOAD="$runtimes" ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0:use_sigaltstack=0"
exec "$python" -X dev -m pytest -q -p no:cacheprovider --rootdir="$PWD/python/tests" \
    --junitxml="${XML_OUTPUT_FILE:-$TEST_TMPDIR/junit.xml}" "$@"
