// Reads and writes of images, for images_test.c: one pixel a work-item.
const sampler_t nearest_of_program =
    CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
__constant sampler_t linear_of_program =
    CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;

float4 helper(read_only image2d_t image, sampler_t how, float2 at)
{
    return read_imagef(image, how, at);
}

__kernel void read_1d(read_only image1d_t image, sampler_t how, __global const float4 *at,
                      __global float4 *out)
{
    const size_t i = get_global_id(0);
    out[i] = read_imagef(image, how, at[i].x);
}

__kernel void read_2d(read_only image2d_t image, sampler_t how, __global const float4 *at,
                      __global float4 *out)
{
    const size_t i = get_global_id(0);
    out[i] = helper(image, how, at[i].xy);
}

__kernel void read_2d_array(__read_only image2d_array_t image, const sampler_t how,
                            __global const float4 *at, __global float4 *out)
{
    const size_t i = get_global_id(0);
    out[i] = read_imagef(image, how, at[i]);
}

__kernel void read_3d(__read_only image3d_t image, sampler_t how, __global const float4 *at,
                      __global float4 *out)
{
    const size_t i = get_global_id(0);
    out[i] = read_imagef(image, how, at[i]);
}

// The same with samplers of the program and of the kernel.
__kernel void read_constant(read_only image2d_t image, int which, __global const float4 *at,
                            __global float4 *out)
{
    const sampler_t of_kernel =
        CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_REPEAT | CLK_FILTER_LINEAR;
    const size_t i = get_global_id(0);
    if (which == 0)
        out[i] = read_imagef(image, nearest_of_program, at[i].xy);
    else if (which == 1)
        out[i] = read_imagef(image, linear_of_program, at[i].xy);
    else
        out[i] = read_imagef(image, of_kernel, at[i].xy);
}

__kernel void read_integers(read_only image2d_t image, sampler_t how, __global const int4 *at,
                            int is_signed, __global uint4 *out)
{
    const size_t i = get_global_id(0);
    out[i] = is_signed ? as_uint4(read_imagei(image, how, at[i].xy))
                       : read_imageui(image, how, at[i].xy);
}

__kernel void read_plain(read_only image1d_buffer_t image, __global uint4 *out)
{
    out[get_global_id(0)] = read_imageui(image, (int)get_global_id(0));
}

// Also outside of the image, at -1 and at the size.
__kernel void write_f(write_only image3d_t image, __global const float4 *in)
{
    const int4 at = (int4)((int)get_global_id(0), (int)get_global_id(1), (int)get_global_id(2), 0);
    const size_t row = get_global_size(0), slice = row * get_global_size(1);
    write_imagef(image, at - (int4)(1, 1, 1, 0), in[at.z * slice + at.y * row + at.x]);
}

__kernel void write_integers(write_only image2d_t image, int is_signed, __global const uint4 *in)
{
    const int2 at = (int2)((int)get_global_id(0), (int)get_global_id(1));
    const uint4 value = in[at.y * get_global_size(0) + at.x];
    if (is_signed)
        write_imagei(image, at - 1, as_int4(value));
    else
        write_imageui(image, at - 1, value);
}

__kernel void twice(read_write image2d_t image)
{
    const int2 at = (int2)((int)get_global_id(0), (int)get_global_id(1));
    write_imagef(image, at, 2 * read_imagef(image, at));
}

__kernel void tell(read_only image3d_t solid, read_only image2d_array_t array,
                   read_only image2d_t flat, __global int *out)
{
    const int4 solid_size = get_image_dim(solid);
    const int2 flat_size = get_image_dim(flat);
    out[0] = get_image_width(solid);
    out[1] = get_image_height(solid);
    out[2] = get_image_depth(solid);
    out[3] = solid_size.z;
    out[4] = (int)get_image_array_size(array);
    out[5] = flat_size.x;
    out[6] = flat_size.y;
    out[7] = get_image_channel_order(flat);
    out[8] = get_image_channel_data_type(flat);
#ifdef __IMAGE_SUPPORT__
    out[9] = CLK_ADDRESS_MIRRORED_REPEAT;
#endif
}

// As in docs/kernels.md.
const sampler_t smooth =
    CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;

__kernel void turn(read_only image2d_t in, write_only image2d_t out, float sine, float cosine)
{
    const int2 at = (int2)((int)get_global_id(0), (int)get_global_id(1));
    const float2 centre = 0.5f * convert_float2(get_image_dim(out));
    const float2 from = convert_float2(at) + 0.5f - centre;
    const float2 turned =
        (float2)(cosine * from.x - sine * from.y, sine * from.x + cosine * from.y);
    write_imagef(out, at, read_imagef(in, smooth, turned + centre));
}
