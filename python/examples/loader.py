"""A loader that copies the next batches while the model works on this one: four queues in turn."""

import weir

SOURCE = """
__kernel void model(__global const float *batch, __global float *sums, uint at, uint n)
{
    float sum = 0;
    for (uint i = 0; i < n; i++)
        sum += batch[i];
    sums[at] = sum;
}
"""
BATCHES, N, SLOTS = 24, 1 << 16, 4

with weir.open() as runtime, runtime.device() as device:
    model = device.program(SOURCE).kernel("model")
    compute = device.queue("compute")
    queues = [device.queue(f"load{i}") for i in range(SLOTS)]
    pinned = [device.buffer(N, "float32", placement="host", label=f"pinned{i}") for i in range(SLOTS)]
    batches = [device.buffer(N, "float32", label=f"batch{i}") for i in range(SLOTS)]
    sums = device.buffer(BATCHES, "float32", placement="host", label="sums")
    copied, used = [queue.record() for queue in queues], [compute.record()] * SLOTS

    def load(number):
        slot = number % SLOTS
        copied[slot].sync()  # the host's memory is written again
        with pinned[slot].host("w") as array:
            array[:] = number
        queues[slot].wait(used[slot])
        queues[slot].copy(batches[slot], pinned[slot])
        copied[slot] = queues[slot].record()

    for number in range(SLOTS):
        load(number)
    for number in range(BATCHES):
        slot = number % SLOTS
        compute.wait(copied[slot])
        model[1, 1](compute, weir.In(batches[slot]), weir.Out(sums), number, N)
        used[slot] = compute.record()
        if number + SLOTS < BATCHES:
            load(number + SLOTS)
    compute.sync()
    with sums.host("r") as array:
        print("wrong:", sum(1 for number in range(BATCHES) if array[number] != number * N))
