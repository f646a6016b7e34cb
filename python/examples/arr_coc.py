"""Texture, relevance and allocation of tokens on three queues, as in ARR-COC."""

import weir

SOURCE = """
__kernel void texture(__global const uchar *image, __global float *texture)
{
    size_t i = get_global_id(0);
    texture[i] = image[i] / 255.0f;
}
__kernel void relevance(__global const float *texture, __global float *scores, uint patch)
{
    size_t p = get_global_id(0);
    float sum = 0;
    for (uint i = 0; i < patch; i++)
        sum += texture[p * patch + i];
    scores[p] = sum / patch;
}
__kernel void allocate(__global const float *scores, __global const float *texture, __global uint *tokens, uint patch)
{
    size_t p = get_global_id(0);
    tokens[p] = 64 + (uint)(336.0f * scores[p] * texture[p * patch]);
}
"""
PATCH, PATCHES, IMAGES = 1024, 1024, 3
N = PATCH * PATCHES

with weir.open() as runtime, runtime.device() as device:
    program = device.program(SOURCE)
    texture, relevance, allocate = (program.kernel(name) for name in ("texture", "relevance", "allocate"))
    first, second, third = device.queue("texture"), device.queue("relevance"), device.queue("allocation")
    image = device.buffer(N, "uint8", label="image")
    textures = device.buffer(N, "float32", label="textures")
    scores = device.buffer(PATCHES, "float32", label="scores")
    tokens = device.buffer(PATCHES, "uint32", placement="host", label="tokens")

    allocated = third.record()
    for number in range(IMAGES):
        first.wait(allocated)
        first.fill(image, 255)
        texture[N // 256, 256](first, weir.In(image), weir.Out(textures))
        second.wait(first.record())
        relevance[PATCHES // 64, 64](second, weir.In(textures), weir.Out(scores), PATCH)
        third.wait(second.record())
        allocate[PATCHES // 64, 64](third, weir.In(scores), weir.In(textures), weir.Out(tokens), PATCH)
        allocated = third.record()
    allocated.sync()
    with tokens.host("r") as array:
        print("wrong:", sum(1 for value in array if value != 400))
