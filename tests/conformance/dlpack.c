// DLPack export and import: layouts, ownership and lifetimes, and refusals.
#include <dlpack/dlpack.h>

#include "tests/conformance/native.h"

#define SIZE ((size_t)4096)

// A tensor as another library would make it, which counts how often it is deleted.
struct foreign {
    DLManagedTensor tensor;
    atomic_int deleted;
    int64_t shape[3];
    int64_t strides[3];
};

static void delete_foreign(DLManagedTensor *tensor)
{
    atomic_fetch_add(&((struct foreign *)tensor->manager_ctx)->deleted, 1);
}

// 2 x 16 floats in plain memory.
static void make_foreign(struct foreign *foreign, void *data)
{
    *foreign = (struct foreign){.shape = {2, 16}, .strides = {16, 1}};
    foreign->tensor.dl_tensor = (DLTensor){
        .data = data,
        .device = {.device_type = kDLCPU},
        .ndim = 2,
        .dtype = {kDLFloat, 32, 1},
        .shape = foreign->shape,
        .strides = foreign->strides,
    };
    foreign->tensor.manager_ctx = foreign;
    foreign->tensor.deleter = delete_foreign;
}

static struct weir_tensor tensor_of(weir_buffer *buffer, size_t offset, const int64_t *shape,
                                    uint32_t dimensions)
{
    return (struct weir_tensor){
        .struct_size = sizeof(struct weir_tensor),
        .buffer = buffer,
        .offset = offset,
        .element = WEIR_ELEMENT_FLOAT,
        .bits = 32,
        .dimensions = dimensions,
        .shape = shape,
    };
}

CONFORM(Dlpack, ExportOfAHostBuffer)
{
    weir_buffer *buffer = conform_host_buffer(f, SIZE);
    const int64_t shape[] = {4, 2, 8};
    const int64_t columns[] = {1, 4, 8}; // the first dimension fastest
    struct weir_tensor tensor = tensor_of(buffer, 64, shape, 3);
    DLManagedTensor *out = NULL, *other = NULL;

    ASSERT_OK(weir_dlpack_export(&tensor, &out));
    const DLTensor *dl = &out->dl_tensor;
    EXPECT_INT_EQ(dl->device.device_type, kDLCPU);
    EXPECT_INT_EQ(dl->device.device_id, 0);
    unsigned char *bytes = (unsigned char *)dl->data + dl->byte_offset;
    bytes[0] = 5;
    EXPECT_INT_EQ(conform_bytes(buffer)[64], 5);
    EXPECT_INT_EQ(dl->ndim, 3);
    EXPECT_MEM_EQ(dl->shape, shape, sizeof shape);
    const int64_t dense[] = {16, 8, 1};
    EXPECT_MEM_EQ(dl->strides, dense, sizeof dense);
    EXPECT_INT_EQ(dl->dtype.code, kDLFloat);
    EXPECT_INT_EQ(dl->dtype.bits, 32);
    EXPECT_INT_EQ(dl->dtype.lanes, 1);

    tensor.strides = columns;
    ASSERT_OK(weir_dlpack_export(&tensor, &other));
    EXPECT_MEM_EQ(other->dl_tensor.strides, columns, sizeof columns);
    other->deleter(other);

    // The tensor holds the buffer, and through it the device.
    weir_device *device = f->device;
    weir_buffer_destroy(&buffer);
    bytes[0] = 7; // the address sanitizer would object
    weir_program_destroy(&f->program);
    EXPECT_INVALID(weir_device_close(&device), "the buffer 'buffer' of a DLPack tensor");
    EXPECT_PTR_EQ(device, f->device);
    out->deleter(out);
}

#define NO_EXPORT(change, part) \
    EXPECT_INVALID_WITH(tensor, change, weir_dlpack_export(&tensor, &out), part)

CONFORM(Dlpack, ExportRefusals)
{
    own_buffer buffer = conform_host_buffer(f, SIZE);
    own_buffer on_device = conform_device_buffer(f, SIZE);
    int64_t shape[] = {32, 32};
    int64_t strides[] = {32, -1};
    struct weir_tensor tensor = tensor_of(buffer, 0, shape, 2);
    DLManagedTensor *out = NULL;

    EXPECT_INVALID(weir_dlpack_export(NULL, &out), "tensor");
    EXPECT_INVALID(weir_dlpack_export(&tensor, NULL), "out_tensor");
    NO_EXPORT(struct_size = 1, "struct_size");
    NO_EXPORT(buffer = NULL, "buffer");
    NO_EXPORT(offset = 4, "do not lie in a buffer"); // one element too far
    NO_EXPORT(bits = 4, "whole bytes");              // half a byte
    NO_EXPORT(element = (weir_element)7, "type code is 7");
    NO_EXPORT(dimensions = 33, "33 dimensions");
    NO_EXPORT(strides = strides, "stride of dimension 1 is -1");
    shape[0] = INT64_MAX; // the number of bytes wraps
    EXPECT_INVALID(weir_dlpack_export(&tensor, &out), "do not lie in a buffer");
    shape[0] = -1;
    EXPECT_INVALID(weir_dlpack_export(&tensor, &out), "dimension 0 of the shape is -1");
    EXPECT_NULL(out);
    if (f->limits->native)
        return;
    shape[0] = 32;
    tensor.buffer = on_device;
    EXPECT_REFUSED(weir_dlpack_export(&tensor, &out), WEIR_ERROR_UNSUPPORTED, "native");
}

CONFORM(Dlpack, RoundTripOnTheDevice)
{
    CONFORM_NEEDS_NATIVE(f);
    weir_buffer *buffer = conform_device_buffer(f, SIZE);
    const int64_t shape[] = {8, 16};
    const struct weir_tensor tensor = tensor_of(buffer, 1024, shape, 2);
    struct weir_tensor in = {.struct_size = sizeof in};
    struct weir_native_device native;
    DLManagedTensor *out = NULL;

    ASSERT_OK(weir_device_get_native(f->device, &native));
    conform_write(f->queue, buffer, 4);
    ASSERT_OK(weir_dlpack_export(&tensor, &out));
    EXPECT_INT_EQ(out->dl_tensor.device.device_type,
                  weir_native_is(native.api, WEIR_NATIVE_CUDA) ? kDLCUDA : kDLOpenCL);
    EXPECT_INT_EQ(out->dl_tensor.device.device_id, native.ordinal);
    weir_buffer_destroy(&buffer); // the tensor holds it
    ASSERT_OK(weir_dlpack_import(f->device, "in", out, &in));
    EXPECT_INT_EQ(in.element, WEIR_ELEMENT_FLOAT);
    EXPECT_UINT_EQ(in.bits, 32);
    EXPECT_UINT_EQ(in.dimensions, 2);
    EXPECT_MEM_EQ(in.shape, shape, sizeof shape);
    EXPECT_UINT_EQ(weir_buffer_size(in.buffer), in.offset + sizeof(float) * 128);
    EXPECT_INT_EQ(weir_buffer_placement(in.buffer), WEIR_PLACE_DEVICE);
    EXPECT_TRUE(conform_holds(f->queue, in.buffer, in.offset, sizeof(float) * 128, 4, 1024));
    // The end of the import ends the export, and with it the first buffer.
    weir_buffer_destroy(&in.buffer);
}

// Of plain memory, and of pinned, which a host buffer owns here, as CUDA's driver is asked about it. The deleter is
// called when the work that uses the memory has finished, not before.
CONFORM(Dlpack, ImportLivesUntilItsWorkIsDone)
{
    own_buffer owner = conform_host_buffer(f, SIZE);
    own_buffer copy = conform_device_buffer(f, SIZE);
    struct foreign foreign;
    struct weir_tensor in = {.struct_size = sizeof in};
    // Separate pages: pinned memory must not share them.
    OWN_MEMORY unsigned char *plain = aligned_alloc(4096, SIZE);
    ASSERT_NOT_NULL(plain);
    for (unsigned pinned = 0; pinned < 2; pinned++) {
        unsigned char *data = pinned ? conform_bytes(owner) : plain;
        for (size_t i = 0; i < SIZE; i++)
            data[i] = conform_pattern(i, 6 + pinned);
        make_foreign(&foreign, data);
        foreign.tensor.dl_tensor.device.device_type = pinned ? kDLCUDAHost : kDLCPU;
        ASSERT_OK(weir_dlpack_import(f->device, "in", &foreign.tensor, &in));
        EXPECT_INT_EQ(weir_buffer_placement(in.buffer), WEIR_PLACE_HOST);
        EXPECT_UINT_EQ(weir_buffer_size(in.buffer), 128);
        EXPECT_UINT_EQ(in.offset, 0);
        own_gate gate = gate_on(f->queue);
        ASSERT_OK(weir_queue_copy(f->queue, copy, 0, in.buffer, 0, 128));
        weir_buffer_destroy(&in.buffer);
        EXPECT_INT_EQ(atomic_load(&foreign.deleted), 0);
        gate_open(gate);
        EXPECT_TRUE(conform_holds(f->queue, copy, 0, 128, 6 + pinned, 0));
        EXPECT_OK(weir_device_trim(f->device));
        EXPECT_INT_EQ(atomic_load(&foreign.deleted), 1);
    }
}

#define EXPECT_NO_IMPORT(part)                                                           \
    do {                                                                                 \
        EXPECT_INVALID(weir_dlpack_import(f->device, "in", &foreign.tensor, &in), part); \
        EXPECT_NULL(in.buffer);                                                          \
        EXPECT_INT_EQ(atomic_load(&foreign.deleted), 0);                                 \
        make_foreign(&foreign, data);                                                    \
    } while (0)

CONFORM(Dlpack, ImportRefusals)
{
    struct foreign foreign;
    struct weir_tensor in = {.struct_size = sizeof in};
    float data[64] = {0};
    make_foreign(&foreign, data);
    DLTensor *dl = &foreign.tensor.dl_tensor;

    EXPECT_INVALID(weir_dlpack_import(NULL, "in", &foreign.tensor, &in), "device");
    EXPECT_INVALID(weir_dlpack_import(f->device, "in", NULL, &in), "tensor");
    EXPECT_INVALID(weir_dlpack_import(f->device, "in", &foreign.tensor, NULL), "out_tensor");
    in.struct_size = 0;
    EXPECT_INVALID(weir_dlpack_import(f->device, "in", &foreign.tensor, &in), "struct_size");
    in.struct_size = sizeof in;
    dl->strides = (int64_t[]){1, 2};
    EXPECT_NO_IMPORT("the stride of dimension 0 is 1, and that of a dense tensor 16");
    dl->dtype.code = 7;
    EXPECT_NO_IMPORT("type code is 7");
    dl->dtype.bits = 4;
    EXPECT_NO_IMPORT("whole bytes");
    dl->dtype.lanes = 0;
    EXPECT_NO_IMPORT("whole bytes");
    dl->ndim = -1;
    EXPECT_NO_IMPORT("-1 dimensions");
    dl->ndim = 33;
    EXPECT_NO_IMPORT("33 dimensions");
    foreign.shape[1] = 0;
    EXPECT_NO_IMPORT("no elements");
    foreign.shape[0] = -3;
    EXPECT_NO_IMPORT("dimension 0 of the shape is -3");
    foreign.shape[0] = INT64_MAX;
    foreign.shape[1] = INT64_MAX;
    dl->strides = NULL;
    EXPECT_NO_IMPORT("2^63");
    foreign.shape[0] = INT64_MAX / 16; // its bytes wrap
    dl->strides = NULL;
    EXPECT_NO_IMPORT("the device's limit");
    dl->byte_offset = UINT64_MAX - 8;
    EXPECT_NO_IMPORT("the device's limit");
    dl->data = NULL;
    EXPECT_NO_IMPORT("data is NULL");
    const weir_status refused = f->limits->native ? WEIR_ERROR_INVALID : WEIR_ERROR_UNSUPPORTED;
    dl->device.device_type = kDLMetal;
    EXPECT_REFUSED(weir_dlpack_import(f->device, "in", &foreign.tensor, &in), refused,
                   "device type 8");
    dl->device.device_type = kDLVulkan;
    EXPECT_REFUSED(weir_dlpack_import(f->device, "in", &foreign.tensor, &in), refused,
                   "device type 7");
}

CONFORM(Dlpack, ImportOfAnotherDevice)
{
    struct foreign foreign;
    struct weir_tensor in = {.struct_size = sizeof in};
    struct weir_native_device native;
    float data[64] = {0};
    make_foreign(&foreign, data);
    DLTensor *dl = &foreign.tensor.dl_tensor;

    dl->device.device_type = kDLCUDA;
    if (!f->limits->native) {
        EXPECT_REFUSED(weir_dlpack_import(f->device, "in", &foreign.tensor, &in),
                       WEIR_ERROR_UNSUPPORTED, "native");
        return;
    }
    ASSERT_OK(weir_device_get_native(f->device, &native));
    if (weir_native_is(native.api, WEIR_NATIVE_CUDA)) {
        dl->device.device_id = native.ordinal + 1;
        EXPECT_NO_IMPORT("the tensor is on device");
        dl->device.device_type = kDLOpenCL;
        EXPECT_NO_IMPORT("device type 4");
        // This memory is the host's.
        dl->device.device_type = kDLCUDA;
        dl->device.device_id = native.ordinal;
        EXPECT_NO_IMPORT("no device memory");
    } else {
        EXPECT_NO_IMPORT("device type 2");
    }
}

// A single row's stride may be anything, and a tensor of no dimensions is one element.
CONFORM(Dlpack, ImportOfDenseOnesInDisguise)
{
    struct foreign foreign;
    struct weir_tensor in = {.struct_size = sizeof in};
    OWN_MEMORY unsigned char *data = aligned_alloc(4096, SIZE);
    ASSERT_NOT_NULL(data);
    make_foreign(&foreign, data);
    foreign.shape[0] = 1;
    foreign.strides[0] = 999;

    ASSERT_OK(weir_dlpack_import(f->device, "row", &foreign.tensor, &in));
    EXPECT_UINT_EQ(weir_buffer_size(in.buffer), 64);
    weir_buffer_destroy(&in.buffer);
    EXPECT_OK(weir_device_trim(f->device));
    foreign.tensor.dl_tensor.ndim = 0;
    foreign.tensor.dl_tensor.shape = NULL;
    foreign.tensor.dl_tensor.strides = NULL;
    ASSERT_OK(weir_dlpack_import(f->device, "scalar", &foreign.tensor, &in));
    EXPECT_UINT_EQ(weir_buffer_size(in.buffer), 4);
    EXPECT_UINT_EQ(in.dimensions, 0);
    weir_buffer_destroy(&in.buffer);
    EXPECT_INT_EQ(atomic_load(&foreign.deleted), 2);
    EXPECT_OK(weir_device_trim(f->device));
}
