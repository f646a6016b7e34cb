"""Swimming in streams: products on one queue, copies to the host on another, copies to the device on a third."""

import weir

SOURCE = """
__kernel void product(__global const float *a, __global float *out, uint n)
{
    size_t row = get_global_id(0) / n, column = get_global_id(0) % n;
    float sum = 0;
    for (uint k = 0; k < n; k++)
        sum += a[row * n + k] * a[k * n + column];
    out[get_global_id(0)] = sum;
}
"""
SIDE, COUNT = 64, 8
N = SIDE * SIDE

with weir.open() as runtime, runtime.device() as device:
    product = device.program(SOURCE).kernel("product")
    first, second, third = device.queue("products"), device.queue("to host"), device.queue("to device")
    matrices = device.buffer((COUNT, N), "float32", label="matrices")
    products = device.buffer((COUNT, N), "float32", label="products")
    on_device = device.buffer((COUNT, N), "float32", label="on device")
    on_host = device.buffer((COUNT, N), "float32", placement="host", label="on host")
    results = device.buffer((COUNT, N), "float32", placement="host", label="results")
    first.fill(matrices, 1.0)
    second.fill(on_device, 5.0)
    with on_host.host("w") as array:
        array[:] = 6.0

    for i in range(COUNT):
        product[N // 64, 64](first, weir.In(matrices[i]), weir.Out(products[i]), SIDE)
    for i in range(COUNT):
        second.copy(results[i], on_device[i])
    copied = second.record()
    third.wait(copied)
    for i in range(COUNT):
        third.copy(on_device[i], on_host[i])
    copied.sync()
    with results.host("r") as array:
        print("wrong:", sum(1 for i in range(COUNT) if array[i][0] != 5.0))
    device.sync()
