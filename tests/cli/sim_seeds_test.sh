#!/bin/bash
# The commands of docs/sim.md about the three Teslas print what stands there.
. tests/cli/cli.sh
export WEIR_BACKEND=null WEIR_MODULE_PATH="$here/lib/weir"

ln -s "$here/tests/cli/chunked" program
mkdir bin
ln -s "$weir" bin/weir
export PATH="$PWD/bin:$PATH"

# The lines of the section that are indented are commands; the block after them is what they print.
commands="" printed="" count=0 inside=no section=no
while IFS= read -r line; do
    case "$line" in
    "### The C1060, the C2050 and the K20c") section=yes ;;
    "#"*) section=no ;;
    esac
    [ "$section" = yes ] || continue
    case "$line" in
    "    "*) commands+="${line#    }"$'\n' ;;
    '```')
        if [ "$inside" = no ]; then
            inside=yes printed=""
            continue
        fi
        inside=no
        expect_data 0 bash -c "$commands"
        [ "$output" = "${printed%$'\n'}" ] || fail "docs/sim.md has
$printed
and this prints
$output
$commands"
        commands="" count=$((count + 1))
        ;;
    *) [ "$inside" = no ] || printed+="$line"$'\n' ;;
    esac
done <"$here/docs/sim.md"
[ "$count" -eq 3 ] || fail "docs/sim.md has $count GPUs in that section, not 3"
