#!/bin/bash
# weir bench comm beside NCCL's own calls, on the fake libcuda and libnccl, and what it says where there is no
# NCCL that can be called. No time is judged.
. tests/cli/cli.sh
. "$here/tests/cli/bench.sh"

cuda="$here/tests/support/libcuda"
nccl="$here/tests/support/libnccl"
export WEIR_BACKEND=cuda WEIR_TEST_CUDA_DEVICES=2 LD_LIBRARY_PATH="$cuda:$nccl"
kinds=all-reduce,reduce,broadcast,all-gather,reduce-scatter,all-to-all

# Several devices of one process, and one.
for ranks in 1 2; do
    more=$kinds
    [ "$ranks" = 1 ] || more=$kinds,exchange
    expect_data 0 "$weir" bench comm --ranks "$ranks" --turns 2 --iterations 2 --collectives $more \
        --size 1000,64K --json
    report '
rows = tables["collectives"]
assert len(rows) == 2 * '"$(echo "$more" | tr ',' '\n' | wc -l)"', rows
for row in rows:
    assert median(row["raw_ns"]) > 0, row
    assert row["ns"]["min"] / row["raw_ns"]["max"] <= median(row["of_raw"]) <= row["ns"]["max"] / row["raw_ns"]["min"], row
assert data["results_checked"] == 2 * '"$ranks"' * len(rows)
assert "raw: NCCL 2.28.9 on streams of its own, the same memory" in data["notes"], data["notes"]
assert "through NCCL 2.28.9" in str(data["notes"])
'
done
expect_data 0 "$weir" bench comm --turns 1 --size 4K --memory host
expect_contains "$output" "over raw"
# The raw calls are beside a Weir that goes another way too.
expect_data 0 env WEIR_CUDA_NCCL=off "$weir" bench comm --turns 1 --size 4K --nccl "$nccl/libnccl.so.2"
expect_contains "$output" "through local"
expect_contains "$output" "over raw"

# expect_none REASON COMMAND...: figures of Weir alone, and a sentence.
expect_none()
{
    local reason="$1"
    shift
    expect_data 0 "$@" --turns 1 --size 4K --json
    reason="$reason" report '
import os
row, = tables["collectives"]
assert median(row["ns"]) > 0 and "raw_ns" not in row and "of_raw" not in row, row
assert any(note.startswith("no raw NCCL beside it: ") and os.environ["reason"] in note for note in data["notes"]), data["notes"]
'
}
expect_none "/no/such/file: cannot open" "$weir" bench comm --nccl /no/such/file
expect_none "NCCL 2.10.0 is older than 2.18" env WEIR_TEST_NCCL_VERSION=21000 "$weir" bench comm
expect_none "the device is none of CUDA" env WEIR_BACKEND=null "$weir" bench comm
expect_none "the device is none of CUDA" env WEIR_BACKEND=opencl "$weir" bench comm
expect_none "ranks share a device, which NCCL refuses" "$weir" bench comm --ranks 3

# With Weir on its own transport all calls of NCCL are raw ones.
export WEIR_CUDA_NCCL=off
for call in ncclGetVersion ncclGetUniqueId ncclCommInitRank ncclGroupEnd; do
    expect_none "the fake's error" env WEIR_TEST_NCCL_FAIL=$call:1 "$weir" bench comm
done
expect_none "NCCL 2.28.9 refused a communicator: the fake's error" \
    env WEIR_TEST_NCCL_FAIL=ncclCommInitRank:2 "$weir" bench comm
expect_none "NCCL 2.28.9 refused a communicator: the fake's error" \
    env WEIR_TEST_NCCL_FAIL=ncclCommInitRank:1 "$weir" launch -n 2 --no-prefix "$program" bench comm
# Rank 1 does not wait for a rank 0 that has no id.
expect_none "ncclGetUniqueId fails: the fake's error" \
    env WEIR_TEST_NCCL_FAIL=ncclGetUniqueId:1 "$weir" launch -n 2 --no-prefix "$program" bench comm
expect_none "libnccl_lacking.so.2 lacks ncclSend" "$weir" bench comm --nccl "$nccl/libnccl_lacking.so.2"

# A raw call that fails, of the check and of a turn: the first rank's, and the second one's after it.
for n in 1 2 5 6; do
    expect_data 3 env WEIR_TEST_NCCL_FAIL=ncclAllReduce:$n "$weir" bench comm --turns 1 --iterations 1 --size 4K
    expect_contains "$messages" "a raw call was refused (ncclAllReduce returned the fake's error, 2)"
    [ -z "$output" ] || fail "it printed figures: $output"
done
for call in ncclSend ncclRecv; do
    expect_data 3 env WEIR_TEST_NCCL_FAIL=$call:2 "$weir" bench comm --turns 1 --size 4K --collectives exchange
    expect_contains "$messages" "a raw call was refused ($call returned the fake's error, 2)"
done

# The driver's calls, of which Weir makes some too.
# expect_struck CALL TEXT STATUS: some of the first 40 calls are raw ones, and say so.
expect_struck()
{
    local n status
    for n in $(seq 40); do
        status=0
        output="$(WEIR_TEST_CUDA_FAIL=$1:$n "$weir" bench comm --turns 1 --size 4K 2>&1)" || status=$?
        ! printf '%s' "$output" | grep -qF "$2" || break
    done
    expect_contains "$output" "$2"
    [ "$status" -eq "$3" ] || fail "it ended with $status: $output"
}
expect_struck cuStreamCreateWithPriority "no raw NCCL beside it: the driver refused a stream (999)" 0
expect_struck cuStreamSynchronize "a raw call was refused (cuStreamSynchronize returned an error, 999)" 3

# A wrong result of the raw calls is an error as well: here the copies that bring it are lost.
unset WEIR_CUDA_NCCL WEIR_BACKEND
printf '[weir]\nbackend = cuda\nplugins = lossy\n[lossy]\nkind = copy\nforwarded = 10\n' >lossy.ini
expect_data 1 env WEIR_MODULE_PATH="$(dirname "$program")/../lib/weir:$here/tests/plugins/lossy" \
    "$weir" bench comm --config lossy.ini --turns 1 --size 4K
expect_contains "$messages" "raw all-reduce of 4096 bytes: element 0 of rank 0 is 1 in place of 3"

expect_data 0 "$weir" bench comm --help
expect_contains "$output" "--nccl F"
