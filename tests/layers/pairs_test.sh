#!/bin/bash
# Each broken program is found with its two lines and nothing else, and each mended one is silent.
. tests/support/shell.sh

export WEIR_MODULE_PATH="$PWD/lib/weir"
# Without the layer, too, PoCL's device `basic` never ends a program whose kernel waits for a user event that
# is set later: it runs commands on the thread that enqueues them.
[ "$POCL_DEVICES" != basic ] || export PAIRS_WITHOUT="user_event user_chain"
python3 tests/layers/pairs.py cli/weir tests/layers/pairs || fail "some pairs are not told apart"
