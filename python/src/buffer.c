// Buffers and parts of them, the host's access to their memory, pools; and memory of other libraries.
//
// A buffer has a shape and a type of elements, and a part of one is made as of a numpy array.
// Memory that an array shows stays until the array has gone: each view of the buffer protocol, and
// each tensor, holds the buffer.
#include "weir_py.h"

#include <dlpack/dlpack.h>
#include <stdlib.h>
#include <string.h>

// Elements.
static const struct wp_dtype dtypes[] = {
    {"uint8", "u1", "B", WEIR_SCALAR_U8, WEIR_ELEMENT_UINT, 1, WEIR_U8},
    {"float32", "f4", "f", WEIR_SCALAR_F32, WEIR_ELEMENT_FLOAT, 4, WEIR_F32},
    {"int32", "i4", "i", WEIR_SCALAR_I32, WEIR_ELEMENT_INT, 4, WEIR_I32},
    {"float64", "f8", "d", WEIR_SCALAR_F64, WEIR_ELEMENT_FLOAT, 8, WEIR_F64},
    {"int8", "i1", "b", WEIR_SCALAR_I8, WEIR_ELEMENT_INT, 1, WEIR_I8},
    {"uint16", "u2", "H", WEIR_SCALAR_U16, WEIR_ELEMENT_UINT, 2, WEIR_U16},
    {"int16", "i2", "h", WEIR_SCALAR_I16, WEIR_ELEMENT_INT, 2, WEIR_I16},
    {"uint32", "u4", "I", WEIR_SCALAR_U32, WEIR_ELEMENT_UINT, 4, WEIR_U32},
    {"uint64", "u8", "Q", WEIR_SCALAR_U64, WEIR_ELEMENT_UINT, 8, WEIR_U64},
    {"int64", "i8", "q", WEIR_SCALAR_I64, WEIR_ELEMENT_INT, 8, WEIR_I64},
    {"float16", "f2", "e", WEIR_SCALAR_F16, WEIR_ELEMENT_FLOAT, 2, WEIR_F16},
    {"complex64", "c8", "Zf", WEIR_SCALAR_OTHER, WEIR_ELEMENT_COMPLEX, 8, 0},
    {"complex128", "c16", "Zd", WEIR_SCALAR_OTHER, WEIR_ELEMENT_COMPLEX, 16, 0},
    {"bfloat16", "bf16", "H", WEIR_SCALAR_OTHER, WEIR_ELEMENT_BFLOAT, 2, WEIR_BF16},
    {"bool", "b1", "?", WEIR_SCALAR_BOOL, WEIR_ELEMENT_BOOL, 1, 0},
};
enum {
    DTYPES = sizeof dtypes / sizeof dtypes[0],
};

int wp_to_dtype(PyObject *object, void *out)
{
    PyObject *name = wp_helper("dtype", "O", object);
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    const struct wp_dtype *found = NULL;
    for (size_t i = 0; text && !found && i < DTYPES; i++)
        if (strcmp(text, dtypes[i].name) == 0 || strcmp(text, dtypes[i].code) == 0 ||
            strcmp(text, dtypes[i].format) == 0)
            found = &dtypes[i];
    Py_XDECREF(name);
    if (text && !found)
        wp_refuse("dtype is %R; it is a name such as 'float32', 'int8', 'uint16', 'complex64', "
                  "'bool', or a type of that name; structures are 'uint8' with their bytes as the "
                  "last dimension",
                  object);
    *(const struct wp_dtype **)out = found;
    return found != NULL;
}

// The type of an element with so many bits, or NULL.
static const struct wp_dtype *dtype_find(weir_element element, uint32_t bits)
{
    for (size_t i = 0; i < DTYPES; i++)
        if (dtypes[i].element == element && dtypes[i].size * 8 == bits)
            return &dtypes[i];
    return NULL;
}

static bool pack_float(weir_scalar scalar, PyObject *number, const char *what, uint64_t *out)
{
    const double value = PyFloat_AsDouble(number);
    const float single = (float)value;
    if (value == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        return wp_refuse("%s is %R; it is a number", what, number);
    }
    if (scalar == WEIR_SCALAR_F64)
        memcpy(out, &value, sizeof value);
    else if (scalar == WEIR_SCALAR_F32)
        memcpy(out, &single, sizeof single);
    else
        *out = weir_half(single).bits;
    return true;
}

bool wp_pack(weir_scalar scalar, PyObject *number, const char *what, uint64_t *out)
{
    const struct wp_dtype *dtype = dtypes, *last = dtypes + DTYPES;
    *out = 0;
    if (scalar == WEIR_SCALAR_F32 || scalar == WEIR_SCALAR_F64 || scalar == WEIR_SCALAR_F16)
        return pack_float(scalar, number, what, out);
    while (dtype < last && (dtype->scalar != scalar || scalar == WEIR_SCALAR_OTHER))
        dtype++;
    if (dtype == last)
        return wp_refuse("%s is %R, and its type takes bytes of its size", what, number);
    if (dtype->element == WEIR_ELEMENT_BOOL) {
        const int truth = PyObject_IsTrue(number);
        *out = truth == 1;
        return truth >= 0;
    }
    const unsigned unused = 64 - 8 * dtype->size;
    PyObject *index = PyNumber_Index(number);
    bool fits = index;
    if (index && dtype->element == WEIR_ELEMENT_INT) {
        const long long value = PyLong_AsLongLong(index);
        fits = value <= INT64_MAX >> unused && value >= -(INT64_MAX >> unused) - 1;
        *out = (uint64_t)value;
    } else if (index) {
        *out = PyLong_AsUnsignedLongLong(index);
        fits = *out <= UINT64_MAX >> unused;
    }
    Py_XDECREF(index);
    if (fits && !PyErr_Occurred())
        return true;
    PyErr_Clear();
    return wp_refuse("%s is %R; it is an %s", what, number, dtype->name);
}

// Shapes.
// Sets the type of elements (NULL: bytes), the shape, an int or a sequence of them, and dense
// strides; false with an exception.
static bool set_shape(struct wp_buffer *form, const struct wp_dtype *dtype, PyObject *shape)
{
    form->dtype = dtype ? dtype : dtypes;
    PyObject *list = PyIndex_Check(shape) ? PyTuple_Pack(1, shape) : PySequence_Tuple(shape);
    const Py_ssize_t count = list ? PyTuple_Size(list) : -1;
    form->dimensions = (int)count;
    form->size = form->dtype->size;
    bool fits = count >= 0 && count <= WP_DIMENSIONS;
    for (Py_ssize_t i = count - 1; fits && i >= 0; i--) {
        const Py_ssize_t extent = PyNumber_AsSsize_t(PyTuple_GetItem(list, i), PyExc_OverflowError);
        fits = extent > 0 && (size_t)extent <= PY_SSIZE_T_MAX / form->size;
        form->shape[i] = extent;
        form->strides[i] = (Py_ssize_t)form->size;
        form->size *= fits ? (size_t)extent : 1;
    }
    Py_XDECREF(list);
    form->dense = true;
    if (fits)
        return true;
    PyErr_Clear();
    return wp_refuse("shape is %R; it is a number of elements, or a tuple of at most %d, each at "
                     "least 1 and fewer than 2^63 bytes in all",
                     shape, WP_DIMENSIONS);
}

static void set_dense(struct wp_buffer *buffer)
{
    Py_ssize_t wanted = buffer->dtype->size;
    buffer->dense = true;
    for (int i = buffer->dimensions - 1; i >= 0; i--) {
        buffer->dense &= buffer->shape[i] == 1 || buffer->strides[i] == wanted;
        wanted *= buffer->shape[i];
    }
    buffer->size = (size_t)wanted;
}

// Bytes from the first to the end of the last one that the buffer, or part, has.
static size_t span(const struct wp_buffer *buffer)
{
    size_t bytes = buffer->dtype->size;
    for (int i = 0; i < buffer->dimensions; i++)
        bytes += (size_t)((buffer->shape[i] - 1) * buffer->strides[i]);
    return bytes;
}

static PyObject *tuple(const Py_ssize_t *values, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++)
        PyTuple_SetItem(tuple, i, PyLong_FromSsize_t(values[i]));
    return tuple;
}

// Buffers.
static const char *const placements[] = {"device", "host", "managed"};

int wp_to_bytes(PyObject *object, void *out)
{
    *(size_t *)out = PyLong_AsSize_t(object);
    if (!PyErr_Occurred())
        return 1;
    PyErr_Clear();
    return !!wp_refuse("%R is no number of bytes; it is a whole number from 0 on", object);
}

int wp_to_placement(PyObject *object, void *out)
{
    for (int i = 0; i < 3; i++) {
        *(weir_placement *)out = (weir_placement)i;
        if (PyUnicode_Check(object) && PyUnicode_CompareWithASCIIString(object, placements[i]) == 0)
            return true;
    }
    return !!wp_refuse("placement is %R; it is 'device', 'host' (pinned) or 'managed'", object);
}

// A buffer of a form, whose `object` is not looked at, with its handle.
static PyObject *buffer_made(weir_status status, const struct wp_buffer *form,
                             struct wp_object *device, weir_buffer *handle, const char *label)
{
    struct wp_buffer *buffer = wp_made(status, &wp_buffer_kind, device, handle, label);
    if (!buffer)
        return NULL;
    const struct wp_object object = buffer->object;
    *buffer = *form;
    buffer->object = object;
    buffer->placement = placements[weir_buffer_placement(handle)];
    return (PyObject *)buffer;
}

FUNCTION_Device_buffer
{
    struct Device_buffer a = DEFAULTS_Device_buffer;
    struct wp_buffer form = {.dtype = NULL};
    weir_status status;
    if (!READ_Device_buffer(&a) || !set_shape(&form, a.dtype, a.shape))
        return NULL;
    WP_HERE(place);
    WP_HELD(a.self,
            status = weir_buffer_create_at(a.self->handle,
                                           WP_PARAMS(weir_buffer_params, .size = form.size,
                                                     .placement = a.placement, .label = a.label),
                                           &a.result, WP_AT(place)));
    return buffer_made(status, &form, a.self, a.result, a.label);
}

struct wp_buffer *wp_buffer_of(PyObject *object, const char *argument)
{
    struct wp_buffer *buffer = (struct wp_buffer *)object;
    if (Py_TYPE(object) == wp_buffer_kind.type && !buffer->object.closed && buffer->base &&
        buffer->base->object.closed)
        object = (PyObject *)buffer->base;
    return wp_of(object, &wp_buffer_kind, argument);
}

struct wp_buffer *wp_dense_of(PyObject *object, const char *argument)
{
    struct wp_buffer *buffer = wp_buffer_of(object, argument);
    if (buffer && !buffer->dense)
        return (void *)wp_refuse(
            "%s is %R, whose elements are not contiguous; copy it into a buffer of its shape first",
            argument, object);
    return buffer;
}

// Adds a dimension of the whole buffer to a part: an int drops it, a slice keeps some of it.
static bool cut(struct wp_buffer *part, Py_ssize_t extent, Py_ssize_t stride, PyObject *index)
{
    Py_ssize_t start, stop, step, length;
    if (PySlice_Check(index)) {
        if (PySlice_Unpack(index, &start, &stop, &step) != 0)
            return false;
        length = PySlice_AdjustIndices(extent, &start, &stop, step);
        if (step != 1 || length < 1)
            return wp_refuse("%R takes no elements, or not every one, of %zd", index, extent);
        part->shape[part->dimensions] = length;
        part->strides[part->dimensions++] = stride;
    } else {
        start = PyNumber_AsSsize_t(index, PyExc_IndexError);
        if (start == -1 && PyErr_Occurred())
            return false;
        start += start < 0 ? extent : 0;
        if (start < 0 || start >= extent)
            return PyErr_Format(PyExc_IndexError, "index %R of %zd elements", index, extent);
    }
    part->offset += (size_t)(start * stride);
    return true;
}

static PyObject *buffer_part(PyObject *self, PyObject *index)
{
    struct wp_buffer *whole = wp_buffer_of(self, "buffer");
    if (!whole)
        return NULL;
    struct wp_buffer form = *whole;
    form.base = whole->base ? whole->base : whole;
    const Py_ssize_t count = PyTuple_Check(index) ? PyTuple_Size(index) : 1;
    if (count > form.dimensions)
        return PyErr_Format(PyExc_IndexError, "%zd indices of %d dimensions", count,
                            form.dimensions);
    form.dimensions = 0;
    for (int i = 0; i < whole->dimensions; i++) {
        const Py_ssize_t extent = whole->shape[i], stride = whole->strides[i];
        PyObject *each = i < count && PyTuple_Check(index) ? PyTuple_GetItem(index, i) : index;
        if (i < count && !cut(&form, extent, stride, each))
            return NULL;
        if (i >= count) {
            form.shape[form.dimensions] = extent;
            form.strides[form.dimensions++] = stride;
        }
    }
    set_dense(&form);
    struct wp_buffer *part = (struct wp_buffer *)PyType_GenericAlloc(wp_buffer_kind.type, 0);
    if (!part)
        return NULL;
    form.object = (struct wp_object){.ob_base = part->object.ob_base,
                                     .kind = &wp_buffer_kind,
                                     .label = whole->object.label,
                                     .owner = whole->object.owner};
    *part = form;
    Py_XINCREF(part->object.label);
    Py_INCREF(part->object.owner);
    Py_INCREF(part->base);
    return (PyObject *)part;
}

static void buffer_dealloc(PyObject *self)
{
    struct wp_buffer *base = ((struct wp_buffer *)self)->base;
    wp_dealloc(self);
    Py_XDECREF(base);
}

static Py_ssize_t buffer_length(PyObject *self)
{
    const struct wp_buffer *buffer = (struct wp_buffer *)self;
    return buffer->dimensions ? buffer->shape[0] : 1;
}

static PyObject *buffer_repr(PyObject *self)
{
    const struct wp_buffer *buffer = (struct wp_buffer *)self;
    PyObject *label = buffer->object.label ? buffer->object.label : Py_None;
    PyObject *shape = tuple(buffer->shape, buffer->dimensions);
    PyObject *text = shape ? PyUnicode_FromFormat("<weir %sbuffer %R, %s %R on the %s%s>",
                                                  buffer->base ? "part of " : "", label,
                                                  buffer->dtype->name, shape, buffer->placement,
                                                  wp_whole(buffer)->closed ? ", closed" : "")
                           : NULL;
    Py_XDECREF(shape);
    return text;
}

PyObject *get_Buffer_address(PyObject *self, void *Py_UNUSED(unused))
{
    const struct wp_buffer *buffer = wp_buffer_of(self, "buffer");
    uint64_t address = 0;
    if (!buffer)
        return NULL;
    const weir_status status = weir_buffer_address(wp_handle(buffer), &address);
    return status == WEIR_OK ? PyLong_FromUnsignedLongLong(address + buffer->offset)
                             : wp_raise(status);
}

WP_GET_OF(Buffer_shape, wp_buffer, tuple(self->shape, self->dimensions))
WP_GET_OF(Buffer_strides, wp_buffer, tuple(self->strides, self->dimensions))
WP_GET_OF(Buffer_dtype, wp_buffer, self->dtype->name)
WP_GET_OF(Buffer_placement, wp_buffer, self->placement)
WP_GET_OF(Buffer_nbytes, wp_buffer, self->size)
WP_GET_OF(Buffer_offset, wp_buffer, self->offset)

// The host's access.
struct access {
    PyObject_HEAD struct wp_buffer *buffer;
    weir_access access;
    bool ended;
    void *memory;    // of the first element
    PyObject *array; // what `with` handed out
};

FUNCTION_Buffer_host
{
    struct Buffer_host a = DEFAULTS_Buffer_host;
    struct wp_buffer *buffer = wp_buffer_of(self, "buffer");
    if (!buffer || !READ_Buffer_host(&a))
        return NULL;
    const char *mode = a.mode;
    const bool read = strchr(mode, 'r'), write = strchr(mode, 'w');
    if (strlen(mode) != (size_t)read + write || !*mode)
        return wp_refuse("mode is '%s'; it is 'r', 'w' or 'rw'", mode);
    struct access *access = (struct access *)PyType_GenericAlloc(wp_access_kind.type, 0);
    if (!access)
        return NULL;
    WP_HERE(place);
    access->access = (weir_access)(read * WEIR_ACCESS_READ + write * WEIR_ACCESS_WRITE);
    const weir_status status = weir_host_begin_at(wp_handle(buffer), buffer->offset, span(buffer),
                                                  access->access, &access->memory, WP_AT(place));
    if (status != WEIR_OK) {
        Py_DECREF(access);
        return wp_raise(status);
    }
    access->buffer = buffer;
    Py_INCREF(buffer);
    wp_hold(wp_whole(buffer));
    return (PyObject *)access;
}

static int access_view(PyObject *self, Py_buffer *view, int flags)
{
    struct access *access = (struct access *)self;
    struct wp_buffer *buffer = access->buffer;
    view->obj = NULL;
    const char *fault =
        access->ended ? "the access has ended; begin another one with buffer.host()"
        : flags & PyBUF_WRITABLE && !(access->access & WEIR_ACCESS_WRITE)
            ? "the access reads only; begin it with buffer.host('w') or 'rw'"
        : !buffer->dense && (flags & PyBUF_STRIDES) != PyBUF_STRIDES
            ? "the elements are not contiguous, and the array's strides were not asked for"
            : NULL;
    if (fault) {
        PyErr_Format(PyExc_BufferError, "%R: %s", buffer, fault);
        return -1;
    }
    *view = (Py_buffer){
        .buf = access->memory,
        .obj = self,
        .len = (Py_ssize_t)buffer->size,
        .itemsize = buffer->dtype->size,
        .readonly = !(access->access & WEIR_ACCESS_WRITE),
        .ndim = flags & PyBUF_ND ? buffer->dimensions : 1,
        .format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)buffer->dtype->format : NULL,
        .shape = flags & PyBUF_ND ? buffer->shape : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? buffer->strides : NULL,
    };
    Py_INCREF(self);
    return 0;
}

WP_GET_OF(Access_array, access, wp_helper("array", "O", self))

// Keeps the array until the block's end, which revokes it.
PyObject *access_enter(PyObject *self, PyObject *Py_UNUSED(unused))
{
    struct access *access = (struct access *)self;
    if (!access->array)
        access->array = get_Access_array(self, NULL);
    Py_XINCREF(access->array);
    return access->array;
}

static weir_status end(struct access *access, struct wp_place place)
{
    struct wp_buffer *buffer = access->buffer;
    if (access->ended)
        return WEIR_OK;
    access->ended = true;
    return weir_host_end_at(wp_handle(buffer), buffer->offset, span(buffer), access->access,
                            WP_AT(place));
}

PyObject *access_end(PyObject *self, PyObject *Py_UNUSED(unused))
{
    struct access *access = (struct access *)self;
    const weir_status status = end(access, wp_here());
    PyObject *array = access->array, *done = NULL;
    access->array = NULL;
    if (array && !(done = wp_helper("take_back", "O", array)))
        return NULL;
    Py_XDECREF(done);
    Py_XDECREF(array);
    return wp_none(status);
}

PyObject *access_exit(PyObject *self, PyObject *arguments)
{
    return access_end(self, arguments);
}

static void access_dealloc(PyObject *self)
{
    struct access *access = (struct access *)self;
    struct wp_buffer *buffer = access->buffer;
    if (buffer) {
        WEIR_IGNORE(end(access, wp_here()));
        wp_let(wp_whole(buffer));
        Py_DECREF(buffer);
    }
    Py_XDECREF(access->array);
    wp_free(self);
}

WP_TYPE(access, Access, struct access, NULL, WP_FLAGS, WP_SLOT(Py_tp_dealloc, access_dealloc),
        WP_SLOT(Py_bf_getbuffer, access_view));

// Pools.
WP_METHOD(Device_pool, WP_HELD,
          weir_pool_create_at(a.self->handle,
                              WP_PARAMS(weir_pool_params, .limit_bytes = a.limit_bytes,
                                        .placement = a.placement, .label = a.label),
                              &a.result, WP_AT(place)))

FUNCTION_Pool_allocate
{
    struct Pool_allocate a = DEFAULTS_Pool_allocate;
    struct wp_buffer form = {.pooled = true};
    if (!READ_Pool_allocate(&a) || !set_shape(&form, a.dtype, a.shape))
        return NULL;
    WP_HERE(place);
    const weir_status status =
        weir_pool_allocate_at(a.self->handle, a.queue->handle, form.size, &a.result, WP_AT(place));
    PyObject *label = a.self->label;
    return buffer_made(status, &form, a.self->owner, a.result,
                       label ? PyUnicode_AsUTF8AndSize(label, NULL) : NULL);
}

PyObject *buffer_free(PyObject *self, PyObject *object)
{
    struct wp_buffer *buffer = wp_buffer_of(self, "buffer");
    struct wp_object *queue = buffer ? wp_of(object, &wp_queue_kind, "queue") : NULL;
    if (!queue)
        return NULL;
    if (!buffer->pooled || buffer->base || buffer->object.users)
        return wp_refuse(buffer->object.users
                             ? "an array shows the buffer's memory; drop it first"
                             : "the buffer is not a whole one of a pool; close() destroys others");
    WP_HERE(place);
    if (wp_submits > 0) { // one of them may use it
        Py_INCREF(queue);
        buffer->freed = queue;
    } else {
        weir_buffer *handle = buffer->object.handle;
        const weir_status status = weir_pool_free_at(queue->handle, &handle, WP_AT(place));
        if (status != WEIR_OK)
            return wp_raise(status);
        buffer->object.handle = NULL; // there is nothing left to destroy
    }
    wp_close(&buffer->object, place);
    Py_RETURN_NONE;
}

static weir_status destroy_buffer(struct wp_object *object, struct wp_place place)
{
    struct wp_object *queue = ((struct wp_buffer *)object)->freed;
    weir_buffer *handle = object->handle;
    weir_status status = WEIR_OK;
    if (queue && queue->handle)
        status = weir_pool_free_at(queue->handle, &handle, WP_AT(place));
    Py_XDECREF(queue);
    weir_buffer_destroy_at(&handle, WP_AT(place)); // unless the pool has it again
    return status;
}

WP_METHOD(Pool_trim, WP_HELD, weir_pool_trim(a.self->handle, a.keep_bytes))

static PyObject *statistics_of(const struct wp_object *pool)
{
    struct weir_pool_statistics figures;
    weir_pool_read_statistics(pool->handle, &figures);
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K}", "in_use_bytes", figures.in_use_bytes,
                         "kept_bytes", figures.kept_bytes, "high_bytes", figures.high_bytes,
                         "allocations", figures.allocations, "reused", figures.reused, "blocked",
                         figures.blocked);
}
WP_GET(Pool_statistics, statistics_of(self))

WP_CHILD_TYPE(pool, Pool, struct wp_object, {0, NULL});
WP_TYPE(buffer, Buffer, struct wp_buffer, destroy_buffer, WP_FLAGS,
        WP_SLOT(Py_tp_dealloc, buffer_dealloc), WP_SLOT(Py_tp_repr, buffer_repr),
        WP_SLOT(Py_mp_subscript, buffer_part), WP_SLOT(Py_mp_length, buffer_length));

// Memory of other libraries: the buffer protocol's arrays, and DLPack's tensors both ways, without copies.
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
    const struct wp_dtype *dtype = dtype_find(described.element, described.bits);
    PyObject *shape = tuple(described.shape, (int)described.dimensions);
    if (!dtype || described.dimensions > WP_DIMENSIONS || described.lanes > 1)
        wp_refuse("the tensor's elements have %u bits, %u lanes and %u dimensions; there is no "
                  "dtype for them, or more than %d dimensions",
                  described.bits, described.lanes, described.dimensions, WP_DIMENSIONS);
    const bool fits = !PyErr_Occurred() && set_shape(&own, dtype, shape);
    Py_XDECREF(shape);
    if (fits)
        return buffer_made(status, form ? form : &own, device, described.buffer, label);
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
    PyObject *shape = format ? tuple(view.shape, view.ndim) : NULL;
    const bool fits =
        shape && wp_to_dtype(format, &form.dtype) && set_shape(&form, form.dtype, shape);
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
