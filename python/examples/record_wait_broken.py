"""An event of one queue, and a wait for it on another: preprocessing, then training."""

import weir

SOURCE = """
__kernel void preprocess(__global const uchar *data, __global float *out)
{
    size_t i = get_global_id(0);
    out[i] = data[i] / 255.0f;
}
__kernel void train(__global const float *in, __global float *loss)
{
    size_t i = get_global_id(0);
    loss[i] = 1.0f - in[i];
}
"""
N = 1 << 20

with weir.open() as runtime, runtime.device() as device:
    program = device.program(SOURCE)
    preprocess, train = program.kernel("preprocess"), program.kernel("train")
    first, second = device.queue("first"), device.queue("second")
    data = device.buffer(N, "uint8", label="data")
    prepared, loss = device.buffer(N, "float32", label="prepared"), device.buffer(N, "float32", label="loss")
    result = device.buffer(N, "float32", placement="host", label="result")

    first.fill(data, 255)
    preprocess[N // 256, 256](first, weir.In(data), weir.Out(prepared))
    done = first.record()
    train[N // 256, 256](second, weir.In(prepared), weir.Out(loss))
    second.copy(result, loss)
    second.sync()
    with result.host("r") as array:
        print("wrong:", sum(1 for value in array[::1024] if value != 0.0))

# weir check python record_wait_broken.py
#
# read-after-write, 1 time
#   the launch of 'train' on 'second' at record_wait_broken.py:30 reads bytes 0 to 4194303 of buffer 'prepared', which the launch of 'preprocess' on 'first' at record_wait_broken.py:28 writes, and nothing orders the two
#   to do: record on 'first' after record_wait_broken.py:28, wait on 'second' before record_wait_broken.py:30
