#!/bin/bash
# Each broken program is found with its two lines and nothing else, and each mended one is silent.
. tests/support/shell.sh

export WEIR_MODULE_PATH="$PWD/lib/weir"
python3 tests/layers/pairs.py cli/weir tests/layers/pairs || fail "some pairs are not told apart"
