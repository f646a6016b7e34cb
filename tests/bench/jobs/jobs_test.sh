#!/bin/bash
# The jobs on null, on PoCL and on the tests' libcuda and libnccl: what they report, and what they say of wrong
# results, of wrong command lines, and of a library that is missing or refuses. No time is judged but those in
# virtual time.
. tests/cli/cli.sh
. "$here/tests/cli/bench.sh"

jobs="$here/tests/bench/jobs/jobs"
support="$here/tests/support"
export WEIR_MODULE_PATH="$here/lib/weir" POCL_DEVICES=pthread
printf '[weir]\nplugins = %s\n[%s]\nkind = %s\nforwarded = %s\n' lossy lossy launch 1 >lossy-launch.ini
printf '[weir]\nplugins = %s\n[%s]\nkind = %s\nforwarded = %s\n' lossy lossy copy 1 >lossy-copy.ini

# Every job that runs on one device, with plots.
for backend in null opencl; do
    export WEIR_BACKEND=$backend
    expect_data 0 "$jobs" graph --nodes 1,7 --launches 5 --turns 2 --json --plot graph.svg
    report '
rows = tables["graphs"]
assert [(row["nodes"], row["way"]) for row in rows] == [
    (nodes, way) for nodes in (1, 7) for way in ("Weir, graph", "Weir, one by one")]
assert [row["nodes"] for row in tables["forks"]] == [7, 7] # one kernel is not enough for four queues
assert data["results_checked"] == 3
for row in rows + tables["forks"]:
    assert 0 < median(row["submit_us"]) <= median(row["complete_us"])
'
    expect_plot graph.svg "Weir, graph" "kernels"
    expect_data 0 "$jobs" pool --size 100,64K --pairs 20 --turns 2 --json --plot pool.svg
    report '
rows = tables["pairs"]
assert [(row["bytes"], row["way"]) for row in rows] == [
    (100, "pair"), (100, "set"), (65536, "pair"), (65536, "set")], rows
assert all(median(row["pool_ns"]) > 0 and median(row["buffers_ns"]) > 0 for row in rows)
assert any("not CUDA" in note for note in data["notes"])
'
    expect_plot pool.svg "pool" "create, destroy" "100, set"
    expect_data 0 "$jobs" priority --samples 3 --turns 2 --json --plot priority.svg
    report '
names = [row["condition"] for row in tables["latency"]]
assert (names[2:] == ["high"]) != any("no priorities" in note for note in data["notes"])
assert data["results_checked"] == 4
for row in tables["latency"]:
    assert 0 < median(row["median_us"]) <= median(row["p99_us"])
'
    expect_plot priority.svg "idle" "99th percentile"
    expect_data 0 "$weir" launch -n 3 --no-prefix "$jobs" ddp --layers 5 --width 32 --batch 48,7 --buckets "auto,8K,1M" --turns 2 \
        --json --plot ddp.svg
    report '
ways = ["computation", "communication"] + ["serial", "overlapped"] * 3
rows = tables["steps"]
assert [row["way"] for row in rows] == ways * 2 and all(median(row["ms"]) > 0 for row in rows)
assert [row["count"] for row in rows[4:8]] == [3, 3, 1, 1]  # two weights of 4 KiB fit into 8 KiB
assert all(median(row["of_best"]) > 0 for row in rows if row["way"] == "overlapped")
reduced = 2 * 3 * 3 * 2 * 1024  # batches, slices, buckets, ways, elements of a slice
assert data["parameters"]["ranks"] == 3
assert data["results_checked"] == reduced, data["results_checked"]
'
    expect_plot ddp.svg "A step of 5 layers on 3 ranks" "overlapped, batch 48" "auto: "
done
# Plain OpenCL in every order, memory that is not pinned, and processes that start.
export WEIR_BACKEND=opencl
expect_data 0 "$jobs" overlap --size 1M --turns 2 --json
report '
rows = tables["raw"]
assert [row["way"] for row in rows].count("three_queues_64_chunks") == 1 and data["results_checked"] == 2 + 20
assert all(median(row["ms"]) > 0 and median(row["auto_to_it"]) > 0 for row in rows)
'
expect_data 0 env WEIR_COPY_THREADS=2 "$jobs" pageable --most 16777216 --turns 2 --json
report '
assert [(row["size"], row["direction"]) for row in tables["copies"]][-2:] == [("16.0 MiB", "up"), ("16.0 MiB", "down")]
assert all(median(row["ms"]) > 0 for row in tables["copies"]) and len(tables["copies"]) == 14
'
expect_data 0 "$jobs" start --turns 2 --json
report '
times = {row["step"]: median(row["weir_ms"]) for row in tables["start"]}
assert 0 < times["main"] < times["first_result"] < times["ended"], times
'
# A wrong result is an error, and nothing is timed.
lossy() { env WEIR_MODULE_PATH="$WEIR_MODULE_PATH:$here/tests/plugins/lossy" "$@" --turns 1; }
export WEIR_BACKEND=opencl
expect_message 1 "Weir, graph of 2 nodes: number 0 is " lossy "$jobs" graph --config lossy-launch.ini --nodes 2 --launches 1
expect_message 1 "the small work before the turns: " lossy "$jobs" priority --config lossy-launch.ini --samples 1
sed -i 's/forwarded = 1/forwarded = 20/' lossy-launch.ini
expect_message 1 " in place of " lossy "$weir" launch -n 2 "$jobs" ddp --config lossy-launch.ini --layers 5 --width 32 --batch 48 --buckets 8K
export WEIR_BACKEND=null
expect_message 1 "hold wrong bytes; nothing was timed" lossy "$jobs" pool --config lossy-copy.ini
for wrong in "graph --nodes 0" "pool --size 4K,x" "pool --pairs 0" "ddp --buckets 1M,all" "ddp --element f16"; do
    # shellcheck disable=SC2086 # the words of a command line
    expect_data 2 "$jobs" $wrong
    [ -z "$output" ] || fail "$wrong printed: $output"
done
expect_message 3 "--element bf16 needs cuBLAS" "$jobs" ddp --element bf16

# Plain OpenCL, on PoCL's threaded and its serial device.
unset WEIR_BACKEND POCL_DEVICES
expect_data 0 "$jobs" submit --turns 2 --operations 20 --json --plot submit.svg
report '
names = {key: [row["name"] for row in rows] for key, rows in tables.items()}
assert names["opencl_long"] == ["long"] and names["opencl_empty"] == ["empty", "empty_set_once"], names
assert all(median(row["weir_ns"]) > 0 for rows in tables.values() for row in rows)
'
mkdir vendors
expect_data 0 env OCL_ICD_VENDORS="$PWD/vendors/" "$jobs" submit --turns 1 --operations 5
expect_contains "$output" "not measured: OpenCL: "

# MPI, under the mpirun of those libraries that are installed: ranks on fewer cores, as any user, with sockets
# whose paths are short.
folder="$(mktemp -d /tmp/ompi.XXXXXX)"
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_orte_tmpdir_base="$folder" OMPI_MCA_btl_vader_backing_directory="$folder"
unset "${!PMI@}" "${!OMPI_COMM@}"
for library in openmpi mpich; do
    command -v "mpirun.$library" >/dev/null || continue
    expect_data 0 env WEIR_BACKEND=null WEIR_COMM_TRANSPORT=mpi "mpirun.$library" -n 2 "$jobs" comm \
        --turns 2 --iterations 2 --size 4K --json --collectives all-reduce,exchange
    report '
reduce, exchange = tables["collectives"]
assert median(reduce["mpi_ns"]) > 0 and median(reduce["of_mpi"]) > 0 and exchange["mpi_ns"] is None
'
done

# NCCL, one rank a process.
export WEIR_BACKEND=cuda WEIR_TEST_CUDA_DEVICES=2
export LD_LIBRARY_PATH="$support/libcuda:$support/libcublas:$support/libnccl"
# Ranks of the tests' NCCL meet in files, and send each other nothing there.
ranks_of_nccl()
{
    mkdir -p nccl
    rm -f nccl/*
    [ "$1" = 1 ] || set -- "$1" env WEIR_TEST_NCCL_FOLDER="$PWD/nccl" "$weir" launch -n "$1" --no-prefix "${@:2}"
    "${@:2}"
}
for ranks in 1 2; do
    expect_data 0 ranks_of_nccl "$ranks" "$jobs" comm --ranks 1 --turns 2 --iterations 2 --size 1000,64K --json \
        --collectives all-reduce,broadcast,all-gather,reduce
    report '
rows = tables["collectives"]
assert len(rows) == 8 and all(row["raw_ns"] is None for row in rows[6:]), rows
rows = rows[:6]
assert all(median(row["raw_ns"]) > 0 and median(row["of_raw"]) > 0 for row in rows)
assert data["results_checked"] == 2 * len(rows) + 2 and data["parameters"]["ranks"] == '"$ranks"'
assert "raw: NCCL 2.28.9 on a stream of its own, the same memory" in data["notes"], data["notes"]
'
done

# expect_none REASON COMMAND...: figures of Weir alone, and a sentence.
expect_none()
{
    expect_data 0 "${@:2}" --turns 1
    expect_contains "$output" "$1"
    expect_not_contains "$output" "over raw"
}
comm=("$jobs" comm --size 4K --ranks 1)
expect_none "no raw NCCL beside it: /no/such/file: cannot open" "${comm[@]}" --nccl /no/such/file
expect_none "NCCL 2.10.0 is older than 2.18" env WEIR_TEST_NCCL_VERSION=21000 "${comm[@]}"
expect_none "this is not CUDA" env WEIR_BACKEND=null "${comm[@]}"
expect_none "it is for one rank a process" "$jobs" comm --size 4K
# With Weir on its own transport all calls of NCCL are raw ones. Rank 1 does not wait for a rank 0 without an id.
export WEIR_CUDA_NCCL=off
for call in ncclGetVersion ncclGetUniqueId ncclCommInitRank; do
    expect_none "the fake's error" env WEIR_TEST_NCCL_FAIL=$call:1 "${comm[@]}"
done
expect_none "ncclGetUniqueId fails: the fake's error" \
    env WEIR_TEST_NCCL_FAIL=ncclGetUniqueId:1 "$weir" launch -n 2 --no-prefix "${comm[@]}"
for n in 1 2 3; do
    expect_data 3 env WEIR_TEST_NCCL_FAIL=ncclAllReduce:$n "${comm[@]}" --turns 1 --iterations 1
    expect_contains "$messages" "a raw call was refused (ncclAllReduce returned the fake's error, 2)"
    [ -z "$output" ] || fail "it printed figures: $output"
done
unset WEIR_CUDA_NCCL
sed -i 's/forwarded = .*/forwarded = 9/' lossy-copy.ini
rm -f nccl/*
expect_message 1 "raw all-reduce of 4096 bytes: element 0 of rank " lossy WEIR_TEST_NCCL_FOLDER="$PWD/nccl" \
    "$weir" launch -n 2 --no-prefix "${comm[@]}" --config lossy-copy.ini

# Copies of pinned memory, and the driver's pool, need no kernel; the rest needs the images of a CUDA toolkit.
expect_data 0 "$jobs" pool --size 4K --pairs 20 --turns 2 --json
report 'assert all(median(row["driver_ns"]) > 0 and median(row["to_driver"]) > 0 for row in tables["pairs"])'
expect_data 0 "$jobs" pageable --most 16777216 --turns 1 --json
report '
assert {row["way"] for row in tables["copies"]} == {"copy", "driver", "pinned"} and data["results_checked"] == 4
'
if "$jobs" graph --nodes 2 --launches 1 --turns 1 2>&1 | grep -q "has no CUDA images"; then
    echo "skipped: the build had no CUDA toolkit"
    exit 0
fi
expect_data 0 "$jobs" graph --nodes 3 --launches 4 --turns 2 --json
report '
assert [row["way"] for row in tables["graphs"]] == [
    "Weir, graph", "Weir, one by one", "raw CUDA, graph", "raw CUDA, one by one"]
assert data["results_checked"] == 2 and data["notes"] == []
assert median(tables["graphs"][0]["submit_to_raw"]) > 0
'
expect_data 0 "$jobs" submit --operations 50 --turns 2 --json
report '
assert [row["name"] for row in tables["cuda"]] == [
    "sequence", "sequence_no_context", "copy", "launch", "record", "wait", "round_trip"]
assert all(median(row["weir_ns"]) > 0 and median(row["other_ns"]) > 0 for row in tables["cuda"])
'
step=("$jobs" ddp --layers 3 --width 32 --batch 16 --buckets "1M,8K" --element f32 --turns 1)
expect_data 0 "${step[@]}" --json
report '
rows = [row for row in tables["steps"] if row["way"] == "raw"]
assert [row["count"] for row in rows] == [1, 2] and all(median(row["ms"]) > 0 for row in rows)
assert "raw: two streams, the same products and buckets, NCCL 2.28.9" in data["notes"], data["notes"]
'
# A driver call that fails, early and late: a message, no figures, nothing leaked.
struck=0
for call in cuMemcpyHtoDAsync cuLaunchKernel cuEventRecord cuStreamCreateWithPriority cuMemHostAlloc; do
    for number in 1 4 40; do
        for arguments in "graph --nodes 2 --launches 2" "submit --operations 10"; do
            status=0
            # shellcheck disable=SC2086
            output="$(WEIR_TEST_CUDA_FAIL="$call:$number" "$jobs" $arguments --turns 1 2>failed)" || status=$?
            [ "$status" -ne 0 ] || continue # it makes fewer calls than that
            struck=$((struck + 1))
            [ -s failed ] && [ -z "$output" ] || fail "$arguments with $call:$number: $(cat failed) $output"
        done
    done
done
[ "$struck" -ge 12 ] || fail "only $struck of the failures struck"
