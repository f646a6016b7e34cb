// Memory of other libraries: the buffer protocol's arrays, and DLPack's tensors both ways, without
// copies.
#include "weir_py.h"

#include <dlpack/dlpack.h>
#include <stdlib.h>
#include <string.h>

bool wp_array_of(PyObject *object, const struct wp_buffer *buffer, bool writable, Py_buffer *out)
{
    static const char *const classes[] = {"bhilq", "BHILQ", "efd", "", "HE", "Z", "?"};
    const struct wp_dtype *dtype = buffer->dtype;
    if (PyObject_GetBuffer(object, out, PyBUF_STRIDES | PyBUF_FORMAT) != 0)
        return false;
    const char *format = out->format ? out->format : "B";
    format += *format == '<' || *format == '@' || *format == '=';
    const bool bytes = (*format == 'B' || *format == 'c') && out->itemsize == 1;
    const bool fits =
        (bytes || (dtype->size == 1 && dtype->element == WEIR_ELEMENT_UINT) ||
         ((size_t)out->itemsize == dtype->size && strchr(classes[dtype->element], *format)));
    if (writable && out->readonly)
        wp_refuse("the array is read-only; pass one that can be written");
    else if (!PyBuffer_IsContiguous(out, 'C'))
        wp_refuse("the array is not contiguous; pass numpy.ascontiguousarray(array)");
    else if (!fits)
        wp_refuse(
            "the array's elements are '%s' of %zd bytes, and those of %R are %s; convert it with "
            "array.astype('%s')",
            format, out->itemsize, buffer, dtype->name, dtype->name);
    else if ((size_t)out->len != buffer->size)
        wp_refuse("the array has %zd bytes, and %R has %zu; pass a part of it, such as buffer[:n]",
                  out->len, buffer, buffer->size);
    else
        return true;
    PyBuffer_Release(out);
    return false;
}

FUNCTION_Buffer___dlpack_device__
{
    struct wp_buffer *buffer = wp_buffer_of(self, "buffer");
    struct weir_native_device native = {.dlpack = kDLCPU};
    if (!buffer)
        return NULL;
    const weir_status status = weir_buffer_placement(wp_handle(buffer)) == WEIR_PLACE_HOST
                                   ? WEIR_OK
                                   : weir_device_get_native(buffer->object.owner->handle, &native);
    return status == WEIR_OK ? Py_BuildValue("(ii)", native.dlpack, native.ordinal)
                             : wp_raise(status);
}

// A tensor that a buffer was made of, which the library drops when no work uses its memory any
// more; or one that was made of a buffer, which another library drops.
struct shared {
    DLManagedTensor tensor;
    struct wp_later later;
    Py_buffer view;          // of an array, or
    DLManagedTensor *origin; // the tensor of the other side
    struct wp_object *held;  // the buffer, until the tensor is dropped
    int64_t shape[1];
};

static void drop_shared(struct wp_later *later)
{
    struct shared *shared =
        (struct shared *)(void *)((char *)later - offsetof(struct shared, later));
    if (shared->origin && shared->origin->deleter)
        shared->origin->deleter(shared->origin);
    if (shared->view.obj)
        PyBuffer_Release(&shared->view);
    if (shared->held)
        wp_let(shared->held);
    free(shared);
}

static void delete_shared(DLManagedTensor *tensor)
{
    wp_drop_later(&((struct shared *)tensor->manager_ctx)->later);
}

static void drop_capsule(PyObject *capsule)
{
    DLManagedTensor *tensor =
        PyCapsule_IsValid(capsule, "dltensor") ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
    if (tensor)
        tensor->deleter(tensor);
}

// Keywords are what the protocol has: the stream, which waits for nothing (see the text), and later
// ones.
PyObject *buffer_dlpack(PyObject *self, PyObject *Py_UNUSED(arguments),
                        PyObject *Py_UNUSED(keywords))
{
    struct wp_buffer *buffer = wp_buffer_of(self, "buffer");
    if (!buffer)
        return NULL;
    int64_t shape[WP_DIMENSIONS], strides[WP_DIMENSIONS];
    for (int i = 0; i < buffer->dimensions; i++) {
        shape[i] = buffer->shape[i];
        strides[i] = buffer->strides[i] / (Py_ssize_t)buffer->dtype->size;
    }
    const struct weir_tensor tensor = {
        .struct_size = sizeof tensor,
        .buffer = wp_handle(buffer),
        .offset = buffer->offset,
        .element = buffer->dtype->element,
        .bits = buffer->dtype->size * 8,
        .dimensions = (uint32_t)buffer->dimensions,
        .shape = shape,
        .strides = strides,
    };
    DLManagedTensor *made = NULL;
    WP_HERE(place);
    const weir_status status = weir_dlpack_export_at(&tensor, &made, WP_AT(place));
    if (status != WEIR_OK)
        return wp_raise(status);
    struct shared *export = calloc(1, sizeof *export);
    PyObject *capsule =
        export ? PyCapsule_New(&export->tensor, "dltensor", drop_capsule) : PyErr_NoMemory();
    if (!export || !capsule) {
        free(export);
        made->deleter(made);
        return NULL;
    }
    *export = (struct shared){
        .tensor = {made->dl_tensor, export, delete_shared},
        .later.drop = drop_shared,
        .origin = made,
        .held = wp_whole(buffer),
    };
    wp_hold(export->held);
    return capsule;
}

// Makes a buffer of `shared`, which it takes also when it fails. `form`, unless it is NULL, has the
// shape and type of the elements, in place of the tensor's.
static PyObject *take_tensor(struct wp_object *device, struct shared *shared,
                             const struct wp_buffer *form, const char *label)
{
    struct weir_tensor described = {.struct_size = sizeof described};
    weir_status status;
    WP_HERE(place);
    shared->later.drop = drop_shared;
    shared->tensor.manager_ctx = shared;
    shared->tensor.deleter = delete_shared;
    WP_HELD(device, status = weir_dlpack_import_at(device->handle, label, &shared->tensor,
                                                   &described, WP_AT(place)));
    if (status != WEIR_OK) {
        wp_raise(status);
        drop_shared(&shared->later);
        return NULL;
    }
    struct wp_buffer own = {.offset = described.offset};
    const struct wp_dtype *dtype = wp_dtype_find(described.element, described.bits);
    PyObject *shape = wp_tuple(described.shape, (int)described.dimensions);
    if (!dtype || described.dimensions > WP_DIMENSIONS || described.lanes > 1)
        wp_refuse("the tensor's elements have %u bits, %u lanes and %u dimensions; there is no "
                  "dtype for them, or more than %d dimensions",
                  described.bits, described.lanes, described.dimensions, WP_DIMENSIONS);
    const bool fits = !PyErr_Occurred() && wp_set_shape(&own, dtype, shape);
    Py_XDECREF(shape);
    if (fits)
        return wp_buffer_made(status, form ? form : &own, device, described.buffer, label);
    weir_buffer_destroy_at(&described.buffer, WP_AT(place));
    return NULL;
}

FUNCTION_Device_wrap
{
    struct Device_wrap a = DEFAULTS_Device_wrap;
    struct wp_buffer form = {.dtype = NULL};
    Py_buffer view;
    if (!READ_Device_wrap(&a) ||
        PyObject_GetBuffer(a.array, &view, PyBUF_STRIDES | PyBUF_FORMAT) != 0)
        return NULL;
    PyObject *format = wp_text(view.format ? view.format : "B");
    PyObject *shape = format ? wp_tuple(view.shape, view.ndim) : NULL;
    const bool fits =
        shape && wp_to_dtype(format, &form.dtype) && wp_set_shape(&form, form.dtype, shape);
    PyBuffer_Release(&view);
    Py_XDECREF(shape);
    Py_XDECREF(format);
    struct shared *shared = fits ? calloc(1, sizeof *shared) : NULL;
    if (!shared || !wp_array_of(a.array, &form, true, &shared->view)) {
        free(shared);
        return fits && !shared ? PyErr_NoMemory() : NULL;
    }
    shared->shape[0] = (int64_t)form.size;
    shared->tensor.dl_tensor = (DLTensor){.data = shared->view.buf,
                                          .device = {kDLCPU, 0},
                                          .ndim = 1,
                                          .dtype = {kDLUInt, 8, 1},
                                          .shape = shared->shape};
    return take_tensor(a.self, shared, &form, a.label);
}

FUNCTION_Device_from_dlpack
{
    struct Device_from_dlpack a = DEFAULTS_Device_from_dlpack;
    if (!READ_Device_from_dlpack(&a))
        return NULL;
    PyObject *buffer = NULL, *capsule = wp_helper("capsule", "OO", a.tensor, a.queue);
    DLManagedTensor *tensor = capsule ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
    struct shared *shared = tensor ? calloc(1, sizeof *shared) : NULL;
    if (shared && PyCapsule_SetName(capsule, "used_dltensor") == 0) {
        shared->tensor.dl_tensor = tensor->dl_tensor;
        shared->origin = tensor;
        buffer = take_tensor(a.self, shared, NULL, a.label);
    } else {
        free(shared);
    }
    Py_XDECREF(capsule);
    return buffer || PyErr_Occurred() ? buffer : PyErr_NoMemory();
}
