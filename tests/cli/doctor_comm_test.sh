#!/bin/bash
# weir doctor comm: what communicators would use, and two machines that meet, both of them this one.
. tests/cli/cli.sh

# free_port: one at which nothing listens now.
free_port()
{
    python3 -c 'import socket; it = socket.socket(); it.bind(("127.0.0.1", 0)); print(it.getsockname()[1])'
}

expect_data 0 "$weir" doctor comm
for part in "transport = local (default)" "timeout = 300 seconds" "rank 0 of 1, without a rendezvous" \
    "ok       transport      local" "all is well"; do
    expect_contains "$output" "$part"
done
expect_data 0 env RANK=1 WORLD_SIZE=2 MASTER_ADDR=node1 MASTER_PORT=29500 WEIR_COMM_TIMEOUT=7 \
    "$weir" doctor comm --json
as_json 'any("rank 1 of 2, meeting at tcp://node1:29500" == f["text"] for f in data["findings"])'
as_json 'any("timeout = 7 seconds (WEIR_COMM_TIMEOUT)" == f["text"] for f in data["findings"])'
expect_data 0 env "WEIR_CUDA_NCCL=$here/tests/support/libnccl/libnccl.so.2" "$weir" doctor comm
expect_contains "$output" "ok       nccl           NCCL 2.28.9, $here/tests/support/libnccl/libnccl.so.2"
expect_data 0 env WEIR_CUDA_NCCL="$here/tests/support/libnccl/libnccl.so.2" WEIR_TEST_NCCL_VERSION=21000 \
    "$weir" doctor comm
expect_contains "$output" "note     nccl           NCCL 2.10.0"
expect_contains "$output" "it is too old: 2.18 or newer is needed"
printf '[cuda]\nnccl = off\n' >off.ini
expect_output 0 "not used: \`nccl\` of [cuda] is off" "$weir" doctor comm --config off.ini
expect_output 0 "note     nccl           /nonexistent.so: cannot open" env WEIR_CUDA_NCCL=/nonexistent.so "$weir" doctor comm
expect_contains "$output" "install libnccl2"
printf '[comm]\ntransport = mpi\n[mpi]\nlibrary = libnothing.so\n' >nothing.ini
expect_output 0 "transport = mpi (nothing.ini:2)" "$weir" doctor comm --config nothing.ini
expect_contains "$output" "note     transport      mpi cannot be used: "
expect_contains "$output" "install Open MPI 4 or MPICH 4, or set [mpi] library to the file"
expect_problem "RANK is set, and WORLD_SIZE is not" "set both, or neither" env RANK=1 "$weir" doctor comm

# Two that meet.
port="$(free_port)"
"$program" doctor comm --listen "127.0.0.1:$port" >listener 2>listener.messages &
listener=$!
expect_soon test -f "/tmp/weir-$(id -u)/port-$port"
expect_output 0 "reaching       127.0.0.1 is this machine" "$weir" doctor comm --connect "127.0.0.1:$port"
expect_contains "$output" "this machine is rank 1 of 2, and reaches the other one both ways"
expect_contains "$output" "an all-reduce of 4 bytes takes"
wait "$listener"
expect_contains "$(cat listener)" "this machine is rank 0 of 2"
expect_contains "$(cat listener)" "all is well"
expect_contains "$(cat listener.messages)" "run weir doctor comm --connect 127.0.0.1:$port"

# Two that do not.
expect_problem "rank 0 has not come to tcp://127.0.0.1:$port in 1.00 s" "start rank 0" \
    "$weir" doctor comm --connect "127.0.0.1:$port" --timeout 1
expect_problem "the host 'nothing.invalid' is not found" "name the host by its number" \
    "$weir" doctor comm --connect "nothing.invalid:$port"
expect_problem "rank 1 has not come to tcp://127.0.0.1:$port in 1.00 s" "" \
    "$weir" doctor comm --listen "127.0.0.1:$port" --timeout 1
expect_problem "'node1' is no place to meet" "name a host and a port, such as node1:29500" \
    "$weir" doctor comm --connect node1
expect_problem "'x' is no place to meet" "name a port, such as 29500" "$weir" doctor comm --listen x

expect_message 2 "takes one of --listen and --connect" "$weir" doctor comm --listen 1 --connect node1:1
