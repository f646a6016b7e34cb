#!/bin/bash
# Measures a GPU for tests/bench/sim/compare.py: the model of it, what kernels cost, and other runs,
# which the model is to predict.

set -u

usage()
{
    cat <<'TEXT'
usage: measure.sh --weir FILE --jobs FILE --out DIR [--cases FILE] [--turns N]

Leaves in DIR: card.ini, the model that `weir calibrate` measured; kernels.ini, what
`weir sim learn` found in traces of runs of one set; NAME.json, the figures of each case
of another set; and logs. The backend is that of the environment. Cases for more
devices than there are are left out. Exit status 0 if all else was measured.
TEXT
}

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
weir="" jobs="" out="" cases="$here/cases.txt" turns=11
while [ "$#" -gt 0 ]; do
    case "$1" in
    --help)
        usage
        exit 0
        ;;
    --weir | --jobs | --out | --cases | --turns)
        [ "$#" -gt 1 ] || { echo "measure: $1 needs a value" >&2 && exit 2; }
        declare "${1#--}=$2"
        shift
        ;;
    *)
        echo "measure: unknown argument '$1'" >&2
        usage >&2
        exit 2
        ;;
    esac
    shift
done
if [ -z "$weir" ] || [ -z "$jobs" ] || [ -z "$out" ]; then usage >&2 && exit 2; fi
mkdir -p "$out" || exit 2
failures=0

# keep SECONDS NAME COMMAND...: a log of what it prints.
keep()
{
    local limit="$1" name="$2" status=0
    shift 2
    timeout -k 5 "$limit" "$@" >"$out/$name.log" 2>&1 </dev/null || status=$?
    [ "$status" -eq 0 ] && return 0
    echo "measure: $name ended with $status: $(grep . "$out/$name.log" | tail -n 1)"
    failures=$((failures + 1))
    return 1
}

# bench ARGUMENT...: $benched is the command line, of the command or of a job.
bench()
{
    benched=("$weir" bench "$@")
    if [ "$1" = jobs ]; then benched=("$jobs" "${@:2}"); fi
}

# The first set: kernels of other sizes than those of the cases, one after the other. Products have at most
# a block for each multiprocessor, as those of the cases: the time of more grows in steps.
traces=()
learn()
{
    local name="$1"
    bench "${@:2}"
    keep 60 "trace-$name" "$weir" trace --output "$out/$name.trace.gz" "${benched[@]}" --quiet \
        --turns "$trace_turns" || return 0
    traces+=("$out/$name.trace.gz")
}

keep 90 calibrate "$weir" calibrate --turns "$turns" --output "$out/card.ini"
trace_turns=$((turns < 2 ? turns : 2))
learn advance overlap --size 64K,2M,32M,512M --kernel 1,700 --orders depth --chunks 1,4,32 --queues 1
learn arr-coc arr-coc --slots 1 --frames 20
learn priority jobs priority
for side in 256 512 896; do
    learn "swim-$side" swim --side "$side" --copies 1 --products 4 --portable
done
if [ "${#traces[@]}" -gt 0 ]; then
    keep 60 learn "$weir" sim learn --output "$out/kernels.ini" "${traces[@]}"
fi

count="$("$weir" devices 2>/dev/null | grep -c '^[0-9]*: ')"
while read -r name limit devices arguments; do
    [[ "$name" == "#"* || -z "$name" ]] && continue
    if [ "$devices" -gt "$count" ]; then
        echo "measure: $name is left out: it needs $devices devices, and there is $count"
        continue
    fi
    # shellcheck disable=SC2086 # the words of a line
    bench $arguments
    keep "$limit" "$name" "${benched[@]}" --turns "$turns" --quiet --output "$out/$name.json" &&
        echo "measured $name"
done <"$cases"
exit "$((failures > 0))"
