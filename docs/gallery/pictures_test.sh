#!/usr/bin/env bash
# The commands of the gallery's page make its pictures, and what the page says of the overlap holds.
. tests/support/shell.sh
export WEIR_MODULE_PATH=lib/weir WEIR_BACKEND=opencl
work="$TEST_TMPDIR"
made=0

# How a copy of pageable memory is cut into pieces depends on the number of threads.
printf '[weir]\ncopy_threads = 8\n' >"$work/weir.ini"
export WEIR_CONFIG="$work/weir.ini"

while read -r _ _ arguments; do
    name="${arguments##*/}"
    read -ra words <<<"${arguments/bazel-bin\//}"
    for i in "${!words[@]}"; do
        [[ "${words[i]}" != docs/images/* ]] || words[i]="$work/${words[i]##*/}"
    done
    [ "$name" != simple_p2p ] || export POCL_DEVICES="pthread basic"
    cli/weir sim --quiet --output "$work/$name.json" "${words[@]}" >"$work/log" 2>&1 || fail "$name: $(cat "$work/log")"
    cmp "$work/gallery-$name.svg" "docs/images/gallery-$name.svg" || fail "gallery-$name.svg is another picture now"
    made=$((made + 1))
    unset POCL_DEVICES
done < <(grep '^    weir sim ' docs/gallery.md)
[ "$made" -eq "$(grep -c '^!\[' docs/gallery.md)" ] || fail "$made pictures have a command"

cli/weir trace check "$work/simple_streams.json" --overlap 'copy/compute>=0.3' || fail "the copies are not hidden"
