#!/bin/bash
# The layout of the public headers is that of the frozen ones, but for what may grow; and the
# comparison finds what is not.

. tests/support/shell.sh

readonly here=tests/abi

compare()
{
    # shellcheck disable=SC2046 # names without spaces
    python3 "$here/layout.py" compare "$here/frozen_table.layout" "$here/$1_table.layout" \
        $(find "$here/frozen/api/" -name '*.h')
}

expect_status 0 compare present
# Of everything there is: less means that the headers were not understood.
for least in "structures 65" "fields 480" "constants 100" "functions 135"; do
    count="$(sed -n "s/^compared ${least% *}: //p" <<<"$output")"
    [ "${count:-0}" -ge "${least#* }" ] || fail "compared too few ${least% *}: $output"
done

expect_status 0 compare newer

expect_status 1 compare doctored
while IFS= read -r sentence; do
    expect_contains "$output" "$sentence"
done <<'TEXT'
field weir_queue_setup.priority was 8+4 and is 12+4
field weir_error.native_code is gone
field weir_loader_params.slot_count was
constant WEIR_OPERATION_WAIT was 7 and is 12
structure weir_extent was 12 and is 16
function weir_capture_node was
TEXT
expect_not_contains "$output" "structure weir_queue_params"
