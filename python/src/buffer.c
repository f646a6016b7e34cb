// Buffers and parts of them, the host's access to their memory, arrays of other libraries, pools.
//
// A buffer has a shape and a type of elements, and a part of one is made as of a numpy array.
// Memory that an array shows stays until the array has gone: each view of the buffer protocol, and
// each tensor, holds the buffer.
#include "weir_py.h"

#include <dlpack/dlpack.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

PyTypeObject *wp_buffer_type, *wp_access_type, *wp_pool_type;

// Elements.
static const struct wp_dtype dtypes[] = {
    {"uint8", "B", WEIR_SCALAR_U8, WEIR_ELEMENT_UINT, 1},
    {"int8", "b", WEIR_SCALAR_I8, WEIR_ELEMENT_INT, 1},
    {"uint16", "H", WEIR_SCALAR_U16, WEIR_ELEMENT_UINT, 2},
    {"int16", "h", WEIR_SCALAR_I16, WEIR_ELEMENT_INT, 2},
    {"uint32", "I", WEIR_SCALAR_U32, WEIR_ELEMENT_UINT, 4},
    {"int32", "i", WEIR_SCALAR_I32, WEIR_ELEMENT_INT, 4},
    {"uint64", "Q", WEIR_SCALAR_U64, WEIR_ELEMENT_UINT, 8},
    {"int64", "q", WEIR_SCALAR_I64, WEIR_ELEMENT_INT, 8},
    {"float16", "e", WEIR_SCALAR_F16, WEIR_ELEMENT_FLOAT, 2},
    {"float32", "f", WEIR_SCALAR_F32, WEIR_ELEMENT_FLOAT, 4},
    {"float64", "d", WEIR_SCALAR_F64, WEIR_ELEMENT_FLOAT, 8},
    {"complex64", "Zf", WEIR_SCALAR_OTHER, WEIR_ELEMENT_COMPLEX, 8},
    {"complex128", "Zd", WEIR_SCALAR_OTHER, WEIR_ELEMENT_COMPLEX, 16},
    {"bool", "?", WEIR_SCALAR_BOOL, WEIR_ELEMENT_BOOL, 1},
};
// The built-in types' names.
static const char *const other_names[][2] = {{"int", "int64"},
                                             {"float", "float64"},
                                             {"complex", "complex128"},
                                             {"l", "int64"},
                                             {"L", "uint64"}};
enum {
    DTYPES = sizeof dtypes / sizeof dtypes[0],
};

const struct wp_dtype *wp_dtype_of(PyObject *object)
{
    PyObject *name = NULL;
    if (PyUnicode_Check(object)) {
        Py_INCREF(object);
        name = object;
    } else if (!(name = PyObject_GetAttrString(object, "name"))) { // numpy.dtype
        PyErr_Clear();
        name = PyObject_GetAttrString(object, "__name__"); // numpy.float32, float
    }
    if (!name) { // torch.float32
        PyErr_Clear();
        name = PyObject_Str(object);
    }
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    const char *dot = text ? strrchr(text, '.') : NULL;
    const struct wp_dtype *found = NULL;
    const char *plain = !text ? NULL
                        : dot ? dot + 1
                              : text + (*text == '<' || *text == '|' || *text == '=');
    for (size_t i = 0; text && i < sizeof other_names / sizeof other_names[0]; i++)
        plain = strcmp(plain, other_names[i][0]) == 0 ? other_names[i][1] : plain;
    for (size_t i = 0; text && !found && i < DTYPES; i++) {
        static const char kinds[] = {'i', 'u', 'f', 0, 0, 'c', 'b'};
        const char letter[3] = {kinds[dtypes[i].element], (char)('0' + dtypes[i].size), 0};
        if (strcmp(plain, dtypes[i].name) == 0 || strcmp(plain, dtypes[i].format) == 0 ||
            (dtypes[i].size < 10 ? strcmp(plain, letter) == 0 : strcmp(plain, "c16") == 0))
            found = &dtypes[i];
    }
    Py_XDECREF(name);
    if (!found && !PyErr_Occurred())
        wp_refuse("dtype is %R; it is a name such as 'float32', 'int8', 'uint16', 'complex64', "
                  "'bool', or a type of that name; structures are 'uint8' with their bytes as the "
                  "last dimension",
                  object);
    return found;
}

bool wp_pack(weir_scalar scalar, PyObject *number, const char *what, uint64_t *out)
{
    static const struct {
        int bits; // negative: signed
        const char *name;
    } integers[] = {
        [WEIR_SCALAR_I8] = {-8, "int8"},    [WEIR_SCALAR_U8] = {8, "uint8"},
        [WEIR_SCALAR_I16] = {-16, "int16"}, [WEIR_SCALAR_U16] = {16, "uint16"},
        [WEIR_SCALAR_I32] = {-32, "int32"}, [WEIR_SCALAR_U32] = {32, "uint32"},
        [WEIR_SCALAR_I64] = {-64, "int64"}, [WEIR_SCALAR_U64] = {64, "uint64"},
    };
    *out = 0;
    if (scalar == WEIR_SCALAR_F32 || scalar == WEIR_SCALAR_F64 || scalar == WEIR_SCALAR_F16) {
        const double value = PyFloat_AsDouble(number);
        if (value == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            return wp_refuse("%s is %R; it is a number", what, number);
        }
        const float single = (float)value;
        if (scalar == WEIR_SCALAR_F64)
            memcpy(out, &value, sizeof value);
        else if (scalar == WEIR_SCALAR_F32)
            memcpy(out, &single, sizeof single);
        else
            *out = weir_half(single).bits;
        return true;
    }
    if (scalar == WEIR_SCALAR_BOOL) {
        const int truth = PyObject_IsTrue(number);
        *out = truth == 1;
        return truth >= 0;
    }
    if (scalar < WEIR_SCALAR_I8 || scalar > WEIR_SCALAR_U64)
        return wp_refuse("%s is %R, and its type takes bytes of its size", what, number);
    const int bits = abs(integers[scalar].bits);
    PyObject *index = PyNumber_Index(number);
    bool fits = index;
    if (index && integers[scalar].bits < 0) {
        const long long value = PyLong_AsLongLong(index);
        const long long most = (long long)(UINT64_MAX >> (64 - bits) >> 1);
        fits = !PyErr_Occurred() && value <= most && value >= -most - 1;
        *out = (uint64_t)value;
    } else if (index) {
        *out = PyLong_AsUnsignedLongLong(index);
        fits = !PyErr_Occurred() && *out <= UINT64_MAX >> (64 - bits);
    }
    Py_XDECREF(index);
    if (fits)
        return true;
    PyErr_Clear();
    return wp_refuse("%s is %R; it is an %s", what, number, integers[scalar].name);
}

// Shapes.
// Reads a shape, an int or a sequence of them, and sets dense strides. False with an exception.
static bool set_shape(struct wp_buffer *buffer, PyObject *shape)
{
    PyObject *list = PyIndex_Check(shape) ? PyTuple_Pack(1, shape) : PySequence_Tuple(shape);
    const Py_ssize_t count = list ? PyTuple_Size(list) : -1;
    buffer->dimensions = (int)count;
    buffer->size = buffer->dtype->size;
    bool fits = count >= 0 && count <= WP_DIMENSIONS;
    for (Py_ssize_t i = count - 1; fits && i >= 0; i--) {
        const Py_ssize_t extent = PyNumber_AsSsize_t(PyTuple_GetItem(list, i), PyExc_OverflowError);
        fits = extent > 0 && (size_t)extent <= PY_SSIZE_T_MAX / buffer->size;
        buffer->shape[i] = extent;
        buffer->strides[i] = (Py_ssize_t)buffer->size;
        buffer->size *= fits ? (size_t)extent : 1;
    }
    Py_XDECREF(list);
    buffer->dense = true;
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

static PyObject *tuple_of(const Py_ssize_t *values, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++)
        PyTuple_SetItem(tuple, i, PyLong_FromSsize_t(values[i]));
    return tuple;
}

// Buffers.
WP_KIND(buffer);
static const char *const placements[] = {"device", "host", "managed"};

PyObject *wp_buffer_new(struct wp_device *device, PyObject *shape, PyObject *dtype, PyObject *label,
                        const char *placement,
                        weir_status (*make)(void *user, size_t size, weir_buffer **out), void *user)
{
    struct wp_buffer form = {.dtype = dtype ? wp_dtype_of(dtype) : &dtypes[0]};
    weir_buffer *handle = NULL;
    if (!form.dtype || !set_shape(&form, shape))
        return NULL;
    const weir_status status = make(user, form.size, &handle);
    if (status != WEIR_OK)
        return wp_raise(status);
    struct wp_buffer *buffer =
        (struct wp_buffer *)wp_child_new(wp_buffer_type, &buffer_kind, device, handle, label);
    if (!buffer)
        return NULL;
    form.child = buffer->child;
    form.placement = placement;
    *buffer = form;
    return (PyObject *)buffer;
}

struct create {
    struct wp_device *device;
    struct weir_buffer_params params;
};

static weir_status create(void *user, size_t size, weir_buffer **out)
{
    struct create *create = user;
    weir_status status;
    WP_HERE(place);
    create->params.size = size;
    create->device->users++;
    WP_UNLOCKED(
        status = weir_buffer_create_at(create->device->handle, &create->params, out, WP_AT(place)));
    create->device->users--;
    return status;
}

static bool find_placement(const char *name, weir_placement *out)
{
    for (int i = 0; i < 3; i++) {
        *out = (weir_placement)i;
        if (strcmp(name, placements[i]) == 0)
            return true;
    }
    return wp_refuse("placement is '%s'; it is 'device', 'host' (pinned) or 'managed'", name);
}

PyObject *wp_device_buffer(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"shape", "dtype", "placement", "label", NULL};
    struct create made = {(struct wp_device *)self, {.struct_size = sizeof made.params}};
    PyObject *shape, *dtype = NULL, *label = NULL;
    const char *placement = "device";
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|Os$O:buffer", names, &shape, &dtype,
                                     &placement, &label) ||
        !wp_device_usable(made.device) || !wp_label(label, &made.params.label) ||
        !find_placement(placement, &made.params.placement))
        return NULL;
    return wp_buffer_new(made.device, shape, dtype, label, placements[made.params.placement],
                         create, &made);
}

struct wp_buffer *wp_buffer_of(PyObject *object, const char *argument)
{
    struct wp_buffer *buffer = (struct wp_buffer *)object;
    if (Py_TYPE(object) == wp_buffer_type && !buffer->child.closed &&
        (!buffer->base || !buffer->base->child.closed))
        return buffer;
    if (Py_TYPE(object) == wp_buffer_type && buffer->base)
        buffer = buffer->base;
    return wp_child_of((PyObject *)buffer, wp_buffer_type, argument);
}

struct wp_buffer *wp_dense_of(PyObject *object, const char *argument)
{
    struct wp_buffer *buffer = wp_buffer_of(object, argument);
    if (!buffer || buffer->dense)
        return buffer;
    wp_refuse(
        "%s is %R, whose elements are not contiguous; copy it into a buffer of its shape first",
        argument, object);
    return NULL;
}

// One index of a part: an int drops the dimension, a slice keeps it.
static bool cut(struct wp_buffer *part, int *at, PyObject *index)
{
    const Py_ssize_t extent = part->shape[*at];
    Py_ssize_t start, stop, step, length;
    if (PySlice_Check(index)) {
        if (PySlice_Unpack(index, &start, &stop, &step) != 0)
            return false;
        length = PySlice_AdjustIndices(extent, &start, &stop, step);
        if (step != 1 || length < 1)
            return wp_refuse("%R takes no elements, or not every one, of %zd", index, extent);
        part->offset += (size_t)(start * part->strides[*at]);
        part->shape[(*at)++] = length;
        return true;
    }
    start = PyNumber_AsSsize_t(index, PyExc_IndexError);
    if (start == -1 && PyErr_Occurred())
        return false;
    start += start < 0 ? extent : 0;
    if (start < 0 || start >= extent) {
        PyErr_Format(PyExc_IndexError, "index %R of %zd elements", index, extent);
        return false;
    }
    part->offset += (size_t)(start * part->strides[*at]);
    part->dimensions--;
    memmove(part->shape + *at, part->shape + *at + 1,
            (size_t)(part->dimensions - *at) * sizeof *part->shape);
    memmove(part->strides + *at, part->strides + *at + 1,
            (size_t)(part->dimensions - *at) * sizeof *part->strides);
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
    if (count > form.dimensions) {
        PyErr_Format(PyExc_IndexError, "%zd indices of %d dimensions", count, form.dimensions);
        return NULL;
    }
    int at = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!cut(&form, &at, PyTuple_Check(index) ? PyTuple_GetItem(index, i) : index))
            return NULL;
    }
    set_dense(&form);
    struct wp_buffer *part = (struct wp_buffer *)PyType_GenericAlloc(wp_buffer_type, 0);
    if (!part)
        return NULL;
    const PyObject head = part->child.ob_base;
    *part = form;
    part->child = (struct wp_child){.ob_base = head,
                                    .kind = &buffer_kind,
                                    .label = form.child.label,
                                    .device = form.child.device};
    Py_XINCREF(part->child.label);
    Py_INCREF(part->child.device);
    Py_INCREF(part->base);
    return (PyObject *)part;
}

static void buffer_dealloc(PyObject *self)
{
    struct wp_buffer *base = ((struct wp_buffer *)self)->base;
    wp_child_dealloc(self);
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
    PyObject *shape = tuple_of(buffer->shape, buffer->dimensions);
    PyObject *text =
        shape
            ? PyUnicode_FromFormat("<weir %sbuffer %R, %s %R on the %s%s>",
                                   buffer->base ? "part of " : "",
                                   buffer->child.label ? buffer->child.label : Py_None,
                                   buffer->dtype->name, shape, buffer->placement,
                                   (buffer->base ? buffer->base : buffer)->child.closed ? ", closed"
                                                                                        : "")
            : NULL;
    Py_XDECREF(shape);
    return text;
}

static PyObject *buffer_get(PyObject *self, void *what)
{
    const struct wp_buffer *buffer = (struct wp_buffer *)self;
    switch (*(const char *)what) {
    case 's':
        return tuple_of(buffer->shape, buffer->dimensions);
    case 't':
        return tuple_of(buffer->strides, buffer->dimensions);
    case 'd':
        return PyUnicode_FromString(buffer->dtype->name);
    case 'p':
        return PyUnicode_FromString(buffer->placement);
    case 'n':
        return PyLong_FromSize_t(buffer->size);
    default:
        return PyLong_FromSize_t(buffer->offset);
    }
}

static PyObject *buffer_address(PyObject *self, void *unused)
{
    (void)unused;
    struct wp_buffer *buffer = wp_buffer_of(self, "buffer");
    uint64_t address = 0;
    const weir_status status = buffer ? weir_buffer_address(wp_handle(buffer), &address) : WEIR_OK;
    if (!buffer || status != WEIR_OK)
        return buffer ? wp_raise(status) : NULL;
    return PyLong_FromUnsignedLongLong(address + buffer->offset);
}

// The host's access.
struct access {
    PyObject_HEAD struct wp_buffer *buffer;
    weir_access access;
    bool ended;
    void *memory;    // of the first element
    PyObject *array; // what `with` handed out
};

static PyObject *buffer_host(PyObject *self, PyObject *arguments)
{
    struct wp_buffer *buffer = wp_buffer_of(self, "buffer");
    const char *mode = "r";
    if (!buffer || !PyArg_ParseTuple(arguments, "|s:host", &mode))
        return NULL;
    const bool read = strchr(mode, 'r'), write = strchr(mode, 'w');
    if (strlen(mode) != (size_t)read + write || !*mode)
        return wp_refuse("mode is '%s'; it is 'r', 'w' or 'rw'", mode);
    struct access *access = (struct access *)PyType_GenericAlloc(wp_access_type, 0);
    if (!access)
        return NULL;
    WP_HERE(place);
    access->access = (weir_access)(read * WEIR_ACCESS_READ + write * WEIR_ACCESS_WRITE);
    access->ended = true;
    const weir_status status = weir_host_begin_at(wp_handle(buffer), buffer->offset, span(buffer),
                                                  access->access, &access->memory, WP_AT(place));
    if (status != WEIR_OK) {
        Py_DECREF(access);
        return wp_raise(status);
    }
    access->ended = false;
    access->buffer = buffer;
    Py_INCREF(buffer);
    wp_child_hold(buffer->base ? &buffer->base->child : &buffer->child);
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

static PyObject *access_array(PyObject *self, void *unused)
{
    (void)unused;
    return wp_helper("array", "O", self);
}

// Keeps the array until the block's end, which revokes it.
static PyObject *access_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct access *access = (struct access *)self;
    if (!access->array)
        access->array = access_array(self, NULL);
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

static PyObject *access_end(PyObject *self, PyObject *unused)
{
    (void)unused;
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

static void access_dealloc(PyObject *self)
{
    struct access *access = (struct access *)self;
    struct wp_buffer *buffer = access->buffer;
    if (buffer) {
        WEIR_IGNORE(end(access, wp_here()));
        wp_child_let(buffer->base ? &buffer->base->child : &buffer->child);
        Py_DECREF(buffer);
    }
    Py_XDECREF(access->array);
    wp_free(self);
}

// Arrays of other libraries.
bool wp_array_of(PyObject *object, const struct wp_buffer *buffer, bool writable, Py_buffer *out)
{
    static const char *const classes[] = {"bhilq", "BHILQ", "efd", "", "", "Z", "?"};
    const struct wp_dtype *dtype = buffer->dtype;
    if (PyObject_GetBuffer(object, out,
                           PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) !=
        0) {
        PyErr_Clear();
        if (PyObject_GetBuffer(object, out, PyBUF_STRIDES | PyBUF_FORMAT) != 0)
            return false;
        const bool read_only = writable && out->readonly;
        PyBuffer_Release(out);
        return wp_refuse(read_only
                             ? "the array is read-only; pass one that can be written"
                             : "the array is not contiguous; pass numpy.ascontiguousarray(array)");
    }
    const char *format = out->format ? out->format : "B";
    format += *format == '<' || *format == '@' || *format == '=';
    const bool bytes = (*format == 'B' || *format == 'c') && out->itemsize == 1;
    const bool fits =
        (bytes || dtype == &dtypes[0] ||
         ((size_t)out->itemsize == dtype->size && strchr(classes[dtype->element], *format)));
    if (fits && (size_t)out->len == buffer->size)
        return true;
    if (fits)
        wp_refuse("the array has %zd bytes, and %R has %zu; pass a part of it, such as buffer[:n]",
                  out->len, buffer, buffer->size);
    else
        wp_refuse(
            "the array's elements are '%s' of %zd bytes, and those of %R are %s; convert it with "
            "array.astype('%s')",
            format, out->itemsize, buffer, dtype->name, dtype->name);
    PyBuffer_Release(out);
    return false;
}

static PyObject *buffer_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct wp_buffer *buffer = wp_buffer_of(self, "buffer");
    struct weir_native_device native;
    int type = kDLCPU, ordinal = 0;
    if (!buffer)
        return NULL;
    if (buffer->placement != placements[WEIR_PLACE_HOST]) {
        const weir_status status = weir_device_get_native(buffer->child.device->handle, &native);
        if (status != WEIR_OK)
            return wp_raise(status);
        type = native.dlpack;
        ordinal = native.ordinal;
    }
    return Py_BuildValue("(ii)", type, ordinal);
}

// A tensor that a buffer was made of, which the library drops when no work uses its memory any
// more; or one that was made of a buffer, which another library drops.
struct shared {
    DLManagedTensor tensor;
    struct wp_later later;
    Py_buffer view;          // of an array, or
    DLManagedTensor *origin; // the tensor of the other side
    struct wp_child *held;   // the buffer, until the tensor is dropped
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
        wp_child_let(shared->held);
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
static PyObject *buffer_dlpack(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    (void)arguments, (void)keywords;
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
    if (!capsule) {
        free(export);
        made->deleter(made);
        return NULL;
    }
    *export = (struct shared){
        .tensor = {made->dl_tensor, export, delete_shared},
        .later.drop = drop_shared,
        .origin = made,
        .held = &(buffer->base ? buffer->base : buffer)->child,
    };
    wp_child_hold(export->held);
    return capsule;
}

static PyObject *take_tensor(struct wp_device *device, struct shared *shared, PyObject *label)
{
    const char *text;
    struct weir_tensor described = {.struct_size = sizeof described};
    WP_HERE(place);
    shared->later.drop = drop_shared;
    shared->tensor.manager_ctx = shared;
    shared->tensor.deleter = delete_shared;
    weir_status status = WEIR_ERROR_INVALID;
    const bool named = wp_label(label, &text);
    if (named) {
        device->users++;
        WP_UNLOCKED(status = weir_dlpack_import_at(device->handle, text, &shared->tensor,
                                                   &described, WP_AT(place)));
        device->users--;
    }
    if (status != WEIR_OK) {
        if (named)
            wp_raise(status);
        shared->origin = NULL; // stays the capsule's
        drop_shared(&shared->later);
        return NULL;
    }
    struct wp_buffer form = {.placement = placements[weir_buffer_placement(described.buffer)],
                             .offset = described.offset,
                             .dimensions = (int)described.dimensions};
    for (size_t i = 0; i < DTYPES && !form.dtype; i++) {
        if (dtypes[i].element == described.element && dtypes[i].size * 8 == described.bits)
            form.dtype = &dtypes[i];
    }
    if (!form.dtype || described.dimensions > WP_DIMENSIONS || described.lanes > 1) {
        weir_buffer_destroy_at(&described.buffer, WP_AT(place));
        wp_refuse("the tensor's elements have %u bits, %u lanes and %u dimensions; there is no "
                  "dtype for them, or more than %d dimensions",
                  described.bits, described.lanes, described.dimensions, WP_DIMENSIONS);
        return NULL;
    }
    Py_ssize_t stride = form.dtype->size;
    for (int i = form.dimensions - 1; i >= 0; i--) {
        form.shape[i] = (Py_ssize_t)described.shape[i];
        form.strides[i] = stride;
        stride *= form.shape[i];
    }
    set_dense(&form);
    struct wp_buffer *buffer = (struct wp_buffer *)wp_child_new(wp_buffer_type, &buffer_kind,
                                                                device, described.buffer, label);
    if (buffer) {
        form.child = buffer->child;
        *buffer = form;
    }
    return (PyObject *)buffer;
}

PyObject *wp_device_wrap(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"array", "label", NULL};
    struct wp_device *device = (struct wp_device *)self;
    PyObject *array, *label = NULL;
    struct wp_buffer form = {.dtype = NULL};
    Py_buffer view;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|$O:wrap", names, &array, &label) ||
        !wp_device_usable(device) ||
        PyObject_GetBuffer(array, &view, PyBUF_STRIDES | PyBUF_FORMAT) != 0)
        return NULL;
    PyObject *format = PyUnicode_FromString(view.format ? view.format : "B");
    form.dtype = format ? wp_dtype_of(format) : NULL;
    PyObject *shape = form.dtype ? tuple_of(view.shape, view.ndim) : NULL;
    const bool fits = shape && set_shape(&form, shape);
    PyBuffer_Release(&view);
    Py_XDECREF(shape);
    Py_XDECREF(format);
    struct shared *shared = fits ? calloc(1, sizeof *shared) : NULL;
    if (!shared || !wp_array_of(array, &form, true, &shared->view)) {
        free(shared);
        return fits && !shared ? PyErr_NoMemory() : NULL;
    }
    shared->shape[0] = (int64_t)form.size;
    shared->tensor.dl_tensor = (DLTensor){.data = shared->view.buf,
                                          .device = {kDLCPU, 0},
                                          .ndim = 1,
                                          .dtype = {kDLUInt, 8, 1},
                                          .shape = shared->shape};
    struct wp_buffer *buffer = (struct wp_buffer *)take_tensor(device, shared, label);
    if (buffer) {
        form.child = buffer->child;
        form.placement = buffer->placement;
        *buffer = form;
    }
    return (PyObject *)buffer;
}

PyObject *wp_device_from_dlpack(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"tensor", "queue", "label", NULL};
    struct wp_device *device = (struct wp_device *)self;
    PyObject *object, *queue = Py_None, *label = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O$O:from_dlpack", names, &object,
                                     &queue, &label) ||
        !wp_device_usable(device))
        return NULL;
    PyObject *capsule = wp_helper("capsule", "OO", object, queue);
    DLManagedTensor *tensor = capsule ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
    struct shared *shared = tensor ? calloc(1, sizeof *shared) : NULL;
    PyObject *buffer = NULL;
    if (shared) {
        shared->tensor.dl_tensor = tensor->dl_tensor;
        shared->origin = tensor;
        buffer = take_tensor(device, shared, label);
    }
    if (buffer)
        PyCapsule_SetName(capsule, "used_dltensor");
    Py_XDECREF(capsule);
    return buffer || PyErr_Occurred() ? buffer : PyErr_NoMemory();
}

// Pools.
WP_KIND(pool);

struct pool {
    struct wp_child child;
    const char *placement;
};

PyObject *wp_device_pool(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"limit_bytes", "placement", "label", NULL};
    struct wp_device *device = (struct wp_device *)self;
    struct weir_pool_params params = {.struct_size = sizeof params};
    Py_ssize_t limit = 0;
    const char *placement = "device";
    PyObject *label = NULL;
    weir_pool *handle;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|ns$O:pool", names, &limit, &placement,
                                     &label) ||
        !wp_device_usable(device) || !wp_label(label, &params.label) ||
        !find_placement(placement, &params.placement))
        return NULL;
    params.limit_bytes = limit < 0 ? 0 : (size_t)limit;
    WP_HERE(place);
    const weir_status status = weir_pool_create_at(device->handle, &params, &handle, WP_AT(place));
    if (status != WEIR_OK)
        return wp_raise(status);
    struct pool *pool =
        (struct pool *)wp_child_new(wp_pool_type, &pool_kind, device, handle, label);
    if (pool)
        pool->placement = placements[params.placement];
    return (PyObject *)pool;
}

struct allocate {
    struct pool *pool;
    struct wp_queue *queue;
};

static weir_status allocate(void *user, size_t size, weir_buffer **out)
{
    const struct allocate *made = user;
    WP_HERE(place);
    return weir_pool_allocate_at(made->pool->child.handle, made->queue->child.handle, size, out,
                                 WP_AT(place));
}

static PyObject *pool_allocate(PyObject *self, PyObject *arguments)
{
    struct allocate made = {(struct pool *)self, NULL};
    PyObject *queue, *shape, *dtype = NULL;
    if (!PyArg_ParseTuple(arguments, "OO|O:allocate", &queue, &shape, &dtype) ||
        !wp_child_usable(&made.pool->child) ||
        !(made.queue = wp_child_of(queue, wp_queue_type, "queue")))
        return NULL;
    PyObject *buffer = wp_buffer_new(made.pool->child.device, shape, dtype, made.pool->child.label,
                                     made.pool->placement, allocate, &made);
    if (buffer)
        ((struct wp_buffer *)buffer)->pooled = true;
    return buffer;
}

static PyObject *buffer_free(PyObject *self, PyObject *object)
{
    struct wp_buffer *buffer = wp_buffer_of(self, "buffer");
    struct wp_queue *queue = buffer ? wp_child_of(object, wp_queue_type, "queue") : NULL;
    if (!queue)
        return NULL;
    if (!buffer->pooled || buffer->base || buffer->child.users)
        return wp_refuse(buffer->child.users
                             ? "an array shows the buffer's memory; drop it first"
                             : "the buffer is not a whole one of a pool; close() destroys others");
    WP_HERE(place);
    weir_buffer *handle = buffer->child.handle;
    const weir_status status = weir_pool_free_at(queue->child.handle, &handle, WP_AT(place));
    if (status == WEIR_OK) {
        buffer->child.handle = NULL; // there is nothing left to destroy
        wp_child_close(&buffer->child, place);
    }
    return wp_none(status);
}

static PyObject *pool_trim(PyObject *self, PyObject *bytes)
{
    struct pool *pool = (struct pool *)self;
    const size_t keep = PyLong_AsSize_t(bytes);
    if (PyErr_Occurred() || !wp_child_usable(&pool->child))
        return NULL;
    WP_RETURN_UNLOCKED(&pool->child, weir_pool_trim(pool->child.handle, keep));
}

static PyObject *pool_statistics(PyObject *self, void *unused)
{
    (void)unused;
    struct pool *pool = (struct pool *)self;
    struct weir_pool_statistics figures;
    if (!wp_child_usable(&pool->child))
        return NULL;
    weir_pool_read_statistics(pool->child.handle, &figures);
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K}", "in_use_bytes", figures.in_use_bytes,
                         "kept_bytes", figures.kept_bytes, "high_bytes", figures.high_bytes,
                         "allocations", figures.allocations, "reused", figures.reused, "blocked",
                         figures.blocked);
}

// Types.
static PyMethodDef buffer_methods[] = {
    WP_CHILD_METHODS,
    {"host", buffer_host, METH_VARARGS,
     "host($self, mode='r', /)\n--\n\nBegins an access of the host to a 'host' or 'managed' "
     "buffer, or to a part of one:\n\n    with buffer.host('w') as array:\n        array[:] = "
     "1\n\narray is numpy's, or a memoryview where numpy is not installed. mode is 'r', 'w' or "
     "'rw'. The call waits for nothing: sync with the work that wrote the bytes first, and leave "
     "the block before work needs them. After the block a memoryview refuses every use and the "
     "array every write; arrays made of it stay readable, and keep the memory."},
    {"free", buffer_free, METH_O,
     "free($self, queue, /)\n--\n\nReturns a pool's buffer to it, after all work submitted to the "
     "queue so far. Returns at once."},
    {"__dlpack__", WP_KEYED(buffer_dlpack),
     "A tensor of the buffer's memory, without a copy. It carries no order: sync with the work "
     "that writes it first."},
    {"__dlpack_device__", buffer_dlpack_device, METH_NOARGS,
     "DLPack's type and number of the device."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef buffer_getters[] = {
    {"shape", buffer_get, NULL, "Elements in each dimension.", "s"},
    {"strides", buffer_get, NULL, "Bytes from one element to the next, in each dimension.", "t"},
    {"dtype", buffer_get, NULL, "The elements' type: \"float32\".", "d"},
    {"placement", buffer_get, NULL, "\"device\", \"host\" or \"managed\".", "p"},
    {"nbytes", buffer_get, NULL, "Bytes of its elements.", "n"},
    {"offset", buffer_get, NULL, "Bytes from the start of the whole buffer to the first element.",
     "o"},
    {"address", buffer_address, NULL, "The device's address of the first element.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef buffer_members[] = {WP_CHILD_MEMBERS, {NULL, 0, 0, 0, NULL}};
static PyType_Slot buffer_slots[] = {
    WP_SLOT(Py_tp_dealloc, buffer_dealloc),
    WP_SLOT(Py_tp_repr, buffer_repr),
    WP_SLOT(Py_mp_subscript, buffer_part),
    WP_SLOT(Py_mp_length, buffer_length),
    {Py_tp_methods, buffer_methods},
    {Py_tp_getset, buffer_getters},
    {Py_tp_members, buffer_members},
    {Py_tp_doc, "Memory with a shape and a type of elements. buffer[a:b], buffer[i], buffer[a:b, "
                "c:d] are parts of it, without a copy, which are buffers too. Made by "
                "device.buffer(), pool.allocate(), device.wrap()."},
    {0, NULL},
};
PyType_Spec wp_buffer_spec = {"weir.Buffer", sizeof(struct wp_buffer), 0, WP_TYPE_FLAGS,
                              buffer_slots};

static PyMethodDef access_methods[] = {
    {"end", access_end, METH_NOARGS,
     "end($self)\n--\n\nEnds the access. A second call does nothing."},
    {"__enter__", access_enter, METH_NOARGS, NULL},
    {"__exit__", access_end, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef access_getters[] = {
    {"array", access_array, NULL, "The memory: numpy's array, or a memoryview without numpy.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot access_slots[] = {
    WP_SLOT(Py_tp_dealloc, access_dealloc),
    WP_SLOT(Py_bf_getbuffer, access_view),
    {Py_tp_methods, access_methods},
    {Py_tp_getset, access_getters},
    {Py_tp_doc,
     "An access of the host to a buffer's memory, which it shows by the buffer protocol. Made by "
     "buffer.host()."},
    {0, NULL},
};
PyType_Spec wp_access_spec = {"weir.Access", sizeof(struct access), 0, WP_TYPE_FLAGS, access_slots};

static PyMethodDef pool_methods[] = {
    WP_CHILD_METHODS,
    {"allocate", pool_allocate, METH_VARARGS,
     "allocate($self, queue, shape, dtype='uint8', /)\n--\n\nA buffer for work that is submitted "
     "to the queue after this call. Never waits. Free it with buffer.free(queue)."},
    {"trim", pool_trim, METH_O,
     "trim($self, keep_bytes, /)\n--\n\nReturns idle memory to the device until at most so many "
     "bytes are kept."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef pool_getters[] = {
    {"statistics", pool_statistics, NULL,
     "A dict: in_use_bytes, kept_bytes, high_bytes, allocations, reused, blocked.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef pool_members[] = {WP_CHILD_MEMBERS, {NULL, 0, 0, 0, NULL}};
static PyType_Slot pool_slots[] = {
    WP_SLOT(Py_tp_dealloc, wp_child_dealloc),
    WP_SLOT(Py_tp_repr, wp_child_repr),
    {Py_tp_methods, pool_methods},
    {Py_tp_getset, pool_getters},
    {Py_tp_members, pool_members},
    {Py_tp_doc,
     "Buffers that are allocated and freed in the order of queues. Made by device.pool()."},
    {0, NULL},
};
PyType_Spec wp_pool_spec = {"weir.Pool", sizeof(struct pool), 0, WP_TYPE_FLAGS, pool_slots};
