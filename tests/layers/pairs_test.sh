#!/bin/bash
# COMMAND...: of the programs in pairs, each broken one is found with its two lines and nothing else, and each mended one
# is silent.
. tests/support/shell.sh

export WEIR_MODULE_PATH="$PWD/lib/weir"
if [ "$POCL_DEVICES" = basic ]; then
    export PAIRS_WITHOUT="user_event user_chain"
    echo "left out: $PAIRS_WITHOUT: without the layer, too, PoCL's device basic never ends a program whose kernel" \
        "waits for a user event that is set later: it runs commands on the thread that enqueues them"
fi
if [ "${1##*/}" = python3 ] && ! reason="$("$1" -c "import pyopencl" 2>&1)"; then
    echo "SKIPPED: tools/setup.sh --tests installs python3-pyopencl: ${reason##*$'\n'}"
    exit 0
fi
python3 tests/layers/pairs.py cli/weir "$@" || fail "some pairs are not told apart"
