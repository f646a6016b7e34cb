#!/bin/bash
# weir bench comm: ranks of one process on null and PoCL, and of processes, with what it says of wrong command
# lines and wrong results. No time is judged.
. tests/cli/cli.sh
. "$here/tests/cli/bench.sh"

export POCL_DEVICES=pthread

for backend in null opencl; do
    expect_data 0 env WEIR_BACKEND=$backend "$weir" bench comm --ranks 3 --turns 2 --iterations 2 \
        --collectives all-reduce,reduce,broadcast,all-gather,reduce-scatter,all-to-all,exchange \
        --size 1000,64K --json --plot comm.svg
    report '
rows = tables["collectives"]
factors = {"all-reduce": 4 / 3, "reduce": 1, "broadcast": 1, "all-gather": 2 / 3,
           "reduce-scatter": 2 / 3, "all-to-all": 2 / 3, "exchange": 1}
assert [row["collective"] for row in rows[::2]] == list(factors), rows
assert [row["bytes"] for row in rows[:2]] == [1000, 65536]
assert rows[6]["bytes"] == 996, rows[6]  # a whole number of elements for each rank
for row in rows:
    ns, rate, bus = (median(row[key]) for key in ("ns", "algorithm_gbs", "bus_gbs"))
    assert abs(bus / rate - factors[row["collective"]]) < 1e-3, row
    assert row["bytes"] / row["ns"]["max"] <= rate * 1.001, row
    assert "mpi_ns" not in row
assert data["results_checked"] == 3 * len(rows)
assert data["parameters"]["ranks"] == 3 == data["parameters"]["ranks_of_this_process"]
'
    expect_plot comm.svg "Collectives of 3 ranks" "broadcast" "65536"
done

# Of several processes rank 0 alone reports.
export WEIR_BACKEND=null
expect_data 0 "$weir" launch -n 2 --no-prefix "$program" bench comm --turns 1 --iterations 1 \
    --size 64K --memory host --json
report '
assert len(tables["collectives"]) == 1
assert data["parameters"]["ranks"] == 2 and data["parameters"]["ranks_of_this_process"] == 1
'

expect_message 2 "--collectives takes some of all-reduce, reduce, broadcast" "$weir" bench comm --collectives all-reduce,all
expect_message 2 "--memory takes at most 1 value" "$weir" bench comm --memory host,device
expect_message 2 "--size takes whole numbers" "$weir" bench comm --size 2
expect_message 2 "8 bytes are less than one number for each of 3 ranks" "$weir" bench comm --ranks 3 --collectives all-gather --size 8
expect_message 3 "RANK is set, and WORLD_SIZE is not" env RANK=1 "$weir" bench comm

lossy null copy 1
expect_wrong " in place of 3" comm
expect_contains "$messages" "all-reduce of 4096 bytes: element 0 of rank 0 is "
