#!/bin/bash
# usage: freeze.sh                 freezes the public headers as they are now
#        freeze.sh MODULE COMMIT   adds a module's sources of a commit to the frozen headers
#
# The first form is for a release, and for a deliberate change of the ABI:
# docs/decisions/0011-sizes-of-structures.md. It copies the null backend and the plugin `count` too,
# and programs of the frozen headers run all tests of the conformance suite from then on.
#
# The modules that are shipped (cuda, opencl, trace) are not copied. Their present sources, compiled
# with the frozen headers, are older modules: all that a module knows of the ABI is in the headers.
# That ends with the first line that uses something appended since, for which frozen/weir_MODULE.so
# does not compile. The second form is for that moment: it copies what the module is made of, as of
# the last COMMIT that did compile, and that copy is compiled from then on. The next freeze removes
# it.

set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly frozen=tests/abi/frozen

freeze_headers()
{
    rm -rf "$frozen"
    mkdir -p "$frozen/api" "$frozen/null" "$frozen/count"
    cp -r api/weir "$frozen/api/"
    mkdir "$frozen/api/weir/patterns" "$frozen/api/weir/pipelines"
    grep -lZ WEIR_API patterns/*.h | xargs -0 cp -t "$frozen/api/weir/patterns"
    # In no archive, and so no promise; its params are read by the same rule.
    sed 's|^#include "\(patterns/.*\)"|#include <weir/\1>|' pipelines/arr_coc/arr_coc.h \
        >"$frozen/api/weir/pipelines/arr_coc.h"
    # What a module links statically is no interface.
    rm -r "$frozen/api/weir/kit"
    cp backends/null/*.[ch] "$frozen/null/"
    cp tests/plugins/count/*.c "$frozen/count/"
    sed -i "s|^#include \"backends/|#include \"$frozen/|" "$frozen"/null/*.[ch]
    sed -i '/^_APPENDED = \[$/,/^\]$/{/^    /d}' tests/conformance/BUILD
}

# copy_module NAME COMMIT FOLDER...: what is generated (page_html) is not in folders.
copy_module()
{
    local to="$frozen/$1" commit="$2"
    shift 2
    rm -rf "$to"
    mkdir "$to"
    git archive "$commit" "$@" | tar -x -C "$to" --wildcards '*.c' '*.h'
    find "$to" -name '*.[ch]' -exec sed -i \
        -e "/page_html/!s,^#include \"\(base\|backends\|plugins\|report\)/,#include \"$to/\1/," \
        -e "s,^#include <\(weir/kit/.*\)>,#include \"$to/api/\1\"," {} +
}

case "$#-${1-}" in
0-) freeze_headers ;;
2-cuda | 2-opencl) copy_module "$1" "$2" "backends/$1" backends/clc backends/kit api/weir/kit base ;;
2-trace) copy_module "$1" "$2" plugins/trace report base ;;
*)
    sed -n '2,3s/^# //p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac
