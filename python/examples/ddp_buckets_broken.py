"""Gradients in buckets: a bucket is reduced on its own queue while the backward pass goes on with the next."""

import weir

SOURCE = """
__kernel void backward(__global float *gradient, float value) { gradient[get_global_id(0)] = value; }
__kernel void reduce(__global float *gradient, __global const float *other)
{
    size_t i = get_global_id(0);
    gradient[i] = 0.5f * (gradient[i] + other[i]);
}
__kernel void descend(__global float *weights, __global const float *gradient, float rate)
{
    size_t i = get_global_id(0);
    weights[i] -= rate * gradient[i];
}
"""
N, BUCKETS, STEPS = 1 << 18, 4, 3

with weir.open() as runtime, runtime.device() as device:
    program = device.program(SOURCE)
    backward, reduce, descend = (program.kernel(name) for name in ("backward", "reduce", "descend"))
    compute, communication = device.queue("compute"), device.queue("communication")
    gradients = [device.buffer(N, "float32", label=f"gradient{i}") for i in range(BUCKETS)]
    weights = [device.buffer(N, "float32", placement="host", label=f"weights{i}") for i in range(BUCKETS)]
    other = device.buffer(N, "float32", label="other rank")
    communication.fill(other, 4.0)
    for bucket in weights:
        compute.fill(bucket, 8.0)

    for _ in range(STEPS):
        for i in reversed(range(BUCKETS)):
            backward[N // 256, 256](compute, weir.Out(gradients[i]), 2.0)
            communication.wait(compute.record())
            reduce[N // 256, 256](communication, weir.InOut(gradients[i]), weir.In(other))
        for i in range(BUCKETS):
            descend[N // 256, 256](compute, weir.InOut(weights[i]), weir.In(gradients[i]), 0.5)
    compute.sync()
    with weights[0].host("r") as array:
        print("wrong:", sum(1 for value in array[::1024] if value != 8.0 - STEPS * 1.5))

# weir check python ddp_buckets_broken.py
#
# read-after-write, 3 times
#   the launch of 'descend' on 'compute' at ddp_buckets_broken.py:37 reads bytes 0 to 1048575 of buffer 'gradient0', which the launch of 'reduce' on 'communication' at ddp_buckets_broken.py:35 reads and writes, and nothing orders the two
#   to do: record on 'communication' after ddp_buckets_broken.py:35, wait on 'compute' before ddp_buckets_broken.py:37
