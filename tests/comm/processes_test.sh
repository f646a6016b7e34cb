#!/bin/bash
# Ranks in processes of their own, through the transport `local`, as docs/collectives.md starts them. Some that are
# killed, stopped and late are in tests/bench/failures.
. tests/support/shell.sh
here="$PWD"
weir="$here/cli/weir"
cd "$TEST_TMPDIR"
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
export WEIR_BACKEND=null WEIR_MODULE_PATH="$here/lib/weir" WEIR_COMM_TIMEOUT=100

# The page's program, alone and as two ranks.
expect_says 0 "rank 0 of 1: 1023" "$here/tests/api/collectives_example"
expect_says 0 "rank 0 of 2: 1023.5" "$weir" launch -n 2 "$here/tests/api/collectives_example"
expect_contains "$output" "rank 1 of 2: 1023.5"

# Many steps of three ranks.
expect_status 0 "$weir" launch -n 3 "$here/tests/comm/rank" 20
for rank in 0 1 2; do
    expect_contains "$output" "rank $rank of 3: 3.48678e+09"
done

# Many communicators one after the other: nothing grows. Sanitizers keep memory that is freed.
memory=memory
! grep -q '__[at]san_init' "$here/tests/comm/churn" || memory=
expect_status 0 "$weir" launch -n 2 "$here/tests/comm/churn" 200 $memory 600 # and as many duplicates
expect_says 0 "361 of 400 in " "$here/tests/comm/churn" 400 $memory
expect_status 3 "$weir" launch -n 2 "$here/tests/comm/churn" 1000000 1
expect_contains "$output" "the time was over before the tenth that is compared with"
# The tests' NCCL, which ends communicators on threads, alone and with ranks in processes.
export LD_LIBRARY_PATH="$here/tests/support/libcuda:$here/tests/support/libnccl" WEIR_BACKEND=cuda
expect_status 0 "$here/tests/comm/churn" 200 $memory
mkdir nccl
WEIR_TEST_NCCL_FOLDER="$PWD/nccl" expect_status 0 "$weir" launch -n 3 "$here/tests/comm/rank" 20
for rank in 0 1 2; do
    expect_contains "$output" "rank $rank of 3: 3.48678e+09"
done
