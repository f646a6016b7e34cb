"""Three stages on three queues, two slots: preprocess, encode, decode."""

import weir

SOURCE = """
__kernel void preprocess(__global float *out, float batch) { out[get_global_id(0)] = batch; }
__kernel void encode(__global const float *in, __global float *out)
{
    size_t i = get_global_id(0);
    out[i] = in[i] + 1.0f;
}
__kernel void decode(__global const float *in, __global float *out, uint at)
{
    if (get_global_id(0) == 0)
        out[at] = in[0];
}
"""
N, BATCHES, SLOTS = 1 << 18, 16, 2

with weir.open() as runtime, runtime.device() as device:
    program = device.program(SOURCE)
    preprocess, encode, decode = (program.kernel(name) for name in ("preprocess", "encode", "decode"))
    first, second, third = device.queue("preprocess"), device.queue("encode"), device.queue("decode")
    images = [device.buffer(N, "float32", label=f"image{i}") for i in range(SLOTS)]
    features = [device.buffer(N, "float32", label=f"features{i}") for i in range(SLOTS)]
    outputs = device.buffer(BATCHES, "float32", placement="host", label="outputs")
    encoded, decoded = [second.record()] * SLOTS, [third.record()] * SLOTS

    for batch in range(BATCHES):
        slot = batch % SLOTS
        preprocess[N // 256, 256](first, weir.Out(images[slot]), float(batch))
        second.wait(first.record())
        second.wait(decoded[slot])
        encode[N // 256, 256](second, weir.In(images[slot]), weir.Out(features[slot]))
        encoded[slot] = second.record()
        third.wait(encoded[slot])
        decode[1, 1](third, weir.In(features[slot]), weir.InOut(outputs), batch)
        decoded[slot] = third.record()
    third.sync()
    with outputs.host("r") as array:
        print("wrong:", sum(1 for batch in range(BATCHES) if array[batch] != batch + 1))

# weir check python pipeline_broken.py
#
# write-after-read, 14 times
#   the launch of 'preprocess' on 'preprocess' at pipeline_broken.py:31 writes bytes 0 to 1048575 of buffer 'image0', which the launch of 'encode' on 'encode' at pipeline_broken.py:34 reads, and nothing orders the two
#   to do: record on 'encode' after pipeline_broken.py:34, wait on 'preprocess' before pipeline_broken.py:31
