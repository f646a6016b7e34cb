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
    second.wait(done)
    train[N // 256, 256](second, weir.In(prepared), weir.Out(loss))
    second.copy(result, loss)
    second.sync()
    with result.host("r") as array:
        print("wrong:", sum(1 for value in array[::1024] if value != 0.0))
