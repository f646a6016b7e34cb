#!/bin/bash
# The raw step of weir bench ddp, on the fake libcuda, cuBLAS and libnccl. No time is judged.
. tests/cli/cli.sh
. "$here/tests/cli/bench.sh"

support="$here/tests/support"
export WEIR_BACKEND=cuda LD_LIBRARY_PATH="$support/libcuda:$support/libcublas:$support/libnccl"
step=("$weir" bench ddp --layers 3 --width 32 --batch 16 --buckets "1M,8K" --element f32 --turns 1)
alone=("${step[@]}" --ranks 1)

if "${alone[@]}" 2>&1 | grep -q "has no CUDA images"; then
    echo "skipped: the build had no CUDA toolkit"
    exit 0
fi
expect_data 0 "${alone[@]}" --json
report '
rows = [row for row in tables["steps"] if row["way"] == "raw"]
assert [row["count"] for row in rows] == [1, 2], rows
assert all(median(row["ms"]) > 0 for row in rows)
for row in tables["steps"]:
    assert (row["of_raw"] is None) == (row["way"] != "overlapped"), row
assert "raw: two streams, the same products and buckets, NCCL 2.28.9" in data["notes"], data["notes"]
'

# With Weir on its own transport all calls of NCCL are raw ones.
export WEIR_CUDA_NCCL=off
expect_none()
{
    local reason="$1"
    shift
    expect_data 0 "$@"
    expect_contains "$output" "no raw step beside it: $reason"
}
expect_none "/no/such/file: cannot open" "${alone[@]}" --nccl /no/such/file
expect_none "NCCL 2.10.0 is older than 2.18" env WEIR_TEST_NCCL_VERSION=21000 "${alone[@]}"
expect_none "NCCL 2.28.9 refused a communicator: the fake's error" \
    env WEIR_TEST_NCCL_FAIL=ncclCommInitRank:1 "${alone[@]}"
# Rank 1 does not wait for a rank 0 that has no id.
expect_none "ncclGetUniqueId fails: the fake's error" \
    env WEIR_TEST_NCCL_FAIL=ncclGetUniqueId:1 "$weir" launch -n 2 --no-prefix "${step[@]}"
expect_none "it is for one rank a process" env WEIR_TEST_CUDA_DEVICES=2 "${step[@]}"
expect_data 3 env WEIR_TEST_NCCL_FAIL=ncclAllReduce:1 "${alone[@]}"
expect_contains "$messages" "a raw call was refused (ncclAllReduce returned the fake's error, 2)"
