#!/bin/bash
# again_test.sh [STEPS EVERY]: three ranks in processes, of which one is killed every EVERY steps and started
# again; the others go on with it in a new communicator, and no step is lost. With 10000 and 1000 it is a soak.
. tests/support/shell.sh
here="$PWD"
cd "$TEST_TMPDIR"
steps="${1-2000}" every="${2-200}"
export WEIR_BACKEND=null WEIR_MODULE_PATH="$here/lib/weir" WEIR_COMM_TIMEOUT=100
export WEIR_COMM_COUNT=3 WEIR_COMM_RENDEZVOUS="file:$PWD/meeting"
ulimit -c 0

for rank in 0 2; do
    WEIR_COMM_RANK=$rank "$here/tests/comm/again" "$steps" "$every" >"rank$rank" 2>&1 &
    pids[rank]=$!
done
deaths=0
while :; do
    status=0
    WEIR_COMM_RANK=1 "$here/tests/comm/again" "$steps" "$every" >rank1 2>&1 || status=$?
    [ "$status" -eq 137 ] || break
    deaths=$((deaths + 1))
done
[ "$status" -eq 0 ] || fail "rank 1 ended with $status: $(cat rank1)"
for rank in 0 2; do
    wait "${pids[rank]}" || fail "rank $rank ended with $?: $(cat "rank$rank")"
    expect_contains "$(cat "rank$rank")" "rank $rank of 3: $steps steps, $((deaths + 1)) communicators"
done
[ "$deaths" -eq $(((steps - 1) / every)) ] || fail "rank 1 was killed $deaths times"
echo "$steps steps, $deaths deaths"
