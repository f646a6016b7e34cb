#!/bin/bash
# In C, in C++ and in Python: each broken program is found with its two lines and nothing else, and each mended one is
# silent.
. tests/support/shell.sh

export WEIR_MODULE_PATH="$PWD/lib/weir"
python=/usr/bin/python3 # the system's, which has pyopencl
if [ "$POCL_DEVICES" = basic ]; then
    export PAIRS_WITHOUT="user_event user_chain flag"
    echo "left out: $PAIRS_WITHOUT: without the layer, too, PoCL's device basic never ends a program whose kernel" \
        "waits for a user event that is set later: it runs commands on the thread that enqueues them"
fi

if tests/layers/pairs --list 2>&1 | grep "^left out: images"; then
    export PAIRS_WITHOUT="${PAIRS_WITHOUT-} image"
fi

# told_apart COMMAND...
told_apart()
{
    python3 tests/layers/pairs.py cli/weir "$@" || fail "some pairs of $* are not told apart"
}

told_apart tests/layers/pairs
told_apart tests/layers/pairs_cpp
if reason="$("$python" -c "import pyopencl" 2>&1)"; then
    told_apart "$python" tests/layers/pyopencl_pairs.py
else
    echo "SKIPPED: tools/setup.sh --tests installs python3-pyopencl: ${reason##*$'\n'}"
fi
