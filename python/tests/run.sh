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
exec "$python" -X dev -m pytest -q -p no:cacheprovider --rootdir="$PWD/python/tests" \
    --junitxml="${XML_OUTPUT_FILE:-$TEST_TMPDIR/junit.xml}" "$@"
