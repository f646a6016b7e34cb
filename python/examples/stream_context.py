"""Work in the context of a stream, and work outside of it: here each call names its queue."""

import weir

SOURCE = """
__kernel void square(__global const float *x, __global float *y) { size_t i = get_global_id(0); y[i] = x[i] * x[i]; }
__kernel void half_of(__global const float *y, __global float *z) { size_t i = get_global_id(0); z[i] = 0.5f * y[i]; }
"""
N = 1 << 20

with weir.open() as runtime, runtime.device() as device:
    program = device.program(SOURCE)
    square, half_of = program.kernel("square"), program.kernel("half_of")
    side, main = device.queue("side"), device.queue("main")
    x, y, z = (device.buffer(N, "float32", label=name) for name in "xyz")
    result = device.buffer(N, "float32", placement="host", label="result")

    side.fill(x, 3.0)
    square[N // 256, 256](side, weir.In(x), weir.Out(y))
    main.wait(side.record())
    half_of[N // 256, 256](main, weir.In(y), weir.Out(z))
    main.copy(result, z)
    main.sync()
    with result.host("r") as array:
        print("wrong:", sum(1 for value in array[::1024] if value != 4.5))
