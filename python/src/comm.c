// Communicators and collectives.
#include "weir_py.h"

#include <stdlib.h>
#include <string.h>

static bool read_timeout(double seconds, uint64_t *out_ns)
{
    *out_ns = seconds >= 0 && seconds < 1.8e10 ? (uint64_t)(seconds * 1e9) : 0;
    return *out_ns > 0 || seconds == 0 ||
           wp_refuse("timeout is a number of seconds, or 0 for that of the configuration");
}

PyObject *device_comm(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    struct wp_object *device = (struct wp_object *)self;
    struct weir_comm_params params = {.struct_size = sizeof params};
    double timeout = 0;
    int check = 0;
    weir_comm *handle = NULL;
    weir_status status;
    if (!WP_PARSE(Device_comm, "|IIz$dpz", &params.rank, &params.count, &params.rendezvous,
                  &timeout, &check, &params.label) ||
        !wp_usable(device) || !read_timeout(timeout, &params.timeout_ns))
        return NULL;
    params.check = check;
    WP_HERE(place);
    WP_HELD(device, status = weir_comm_create_at(device->handle, &params, &handle, WP_AT(place)));
    return wp_made(status, &wp_comm_kind, device, handle, params.label);
}

// Makes the objects of communicators that were created together.
static PyObject *wrap_all(weir_status status, PyObject *devices, weir_comm **handles,
                          const char *label)
{
    PyObject *list = status == WEIR_OK ? PyTuple_New(PyTuple_Size(devices)) : wp_raise(status);
    for (Py_ssize_t i = 0; status == WEIR_OK && i < PyTuple_Size(devices); i++) {
        PyObject *comm =
            wp_made(status, &wp_comm_kind, (struct wp_object *)PyTuple_GetItem(devices, i),
                    handles[i], label);
        if (!comm)
            Py_CLEAR(list); // the others' handles are made into objects, and dropped
        else if (!list || PyTuple_SetItem(list, i, comm) != 0)
            Py_DECREF(comm);
    }
    return list;
}

PyObject *wp_comms(PyObject *Py_UNUSED(module), PyObject *arguments, PyObject *keywords)
{
    struct weir_comm_params params = {.struct_size = sizeof params};
    weir_device *devices[64];
    weir_comm *handles[64];
    double timeout = 0;
    PyObject *given;
    if (!WP_PARSE(comms, "O|$dz", &given, &timeout, &params.label) ||
        !read_timeout(timeout, &params.timeout_ns))
        return NULL;
    PyObject *list = PySequence_Tuple(given);
    const Py_ssize_t count = list ? PyTuple_Size(list) : 0;
    bool fits = count >= 1 && count <= 64;
    if (list && !fits)
        wp_refuse("there are %zd devices; a communicator of one process has 1 to 64", count);
    for (Py_ssize_t i = 0; fits && i < count; i++) {
        struct wp_object *device = wp_of(PyTuple_GetItem(list, i), &wp_device_kind, "device");
        fits = device;
        devices[i] = device ? device->handle : NULL;
    }
    PyObject *comms = NULL;
    if (fits) {
        weir_status status;
        WP_HERE(place);
        for (Py_ssize_t i = 0; i < count; i++)
            wp_hold((struct wp_object *)PyTuple_GetItem(list, i));
        WP_UNLOCKED(status = weir_comm_create_all_at(devices, (uint32_t)count, &params, handles,
                                                     WP_AT(place)));
        comms = wrap_all(status, list, handles, params.label);
        for (Py_ssize_t i = 0; i < count; i++)
            wp_let((struct wp_object *)PyTuple_GetItem(list, i));
    }
    Py_XDECREF(list);
    return comms;
}

PyObject *comm_split(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    struct wp_object *comm = (struct wp_object *)self;
    PyObject *object;
    int key = 0;
    const char *label = NULL;
    weir_comm *handle = NULL;
    weir_status status;
    if (!WP_PARSE(Comm_split, "O|i$z", &object, &key, &label) || !wp_usable(comm))
        return NULL;
    const long color = object == Py_None ? WEIR_NO_COLOR : PyLong_AsLong(object);
    if (PyErr_Occurred() || (object != Py_None && (color < 0 || color > INT32_MAX)))
        return wp_refuse("color is %R; it is a number from 0 on, or None for no part", object);
    WP_HERE(place);
    WP_HELD(comm, status = weir_comm_split_at(comm->handle, (int32_t)color, key, label, &handle,
                                              WP_AT(place)));
    return status == WEIR_OK && !handle
               ? Py_BuildValue("")
               : wp_made(status, &wp_comm_kind, comm->owner, handle, label);
}

PyObject *comm_shrink(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    struct wp_object *comm = (struct wp_object *)self;
    const char *label = NULL;
    weir_comm *handle = NULL;
    weir_status status;
    if (!WP_PARSE(Comm_shrink, "|z", &label) || !wp_usable(comm))
        return NULL;
    WP_HERE(place);
    WP_HELD(comm, status = weir_comm_shrink_at(comm->handle, label, &handle, WP_AT(place)));
    return wp_made(status, &wp_comm_kind, comm->owner, handle, label);
}

PyObject *comm_abort(PyObject *self, PyObject *why)
{
    struct wp_object *comm = (struct wp_object *)self;
    const char *text = PyUnicode_AsUTF8AndSize(why, NULL);
    weir_status status;
    if (!text || !wp_usable(comm))
        return NULL;
    WP_HERE(place);
    WP_HELD(comm, status = weir_comm_abort_at(comm->handle, text, WP_AT(place)));
    return wp_none(status);
}

PyObject *comm_error(PyObject *self, PyObject *Py_UNUSED(unused))
{
    const struct wp_object *comm = (struct wp_object *)self;
    return wp_usable(comm) ? wp_none(weir_comm_error(comm->handle)) : NULL;
}

static PyObject *comm_get(PyObject *self, void *name)
{
    const struct wp_object *comm = (struct wp_object *)self;
    if (!wp_usable(comm))
        return NULL;
    if (strcmp(name, "engine") == 0)
        return wp_text(weir_comm_engine(comm->handle));
    return PyLong_FromUnsignedLong(strcmp(name, "rank") == 0 ? weir_comm_rank(comm->handle)
                                                             : weir_comm_count(comm->handle));
}

// Collectives.
// Which elements an operand has: none, `count`, or `count` of each rank; with ROOTS only the root
// has the operand.
enum {
    NONE,
    COUNT,
    ALL,
    ROOTS = 4,
};

static weir_datatype element_of(const struct wp_buffer *buffer)
{
    switch (buffer->dtype->scalar) {
    case WEIR_SCALAR_F16:
        return WEIR_F16;
    case WEIR_SCALAR_F32:
        return WEIR_F32;
    case WEIR_SCALAR_F64:
        return WEIR_F64;
    default: // integers have the same numbers
        return buffer->dtype->scalar <= WEIR_SCALAR_U64 ? (weir_datatype)buffer->dtype->scalar
                                                        : (weir_datatype)0;
    }
}

// Adds an operand to `params`, and returns its buffer; NULL where this rank has none, or with an
// exception.
static weir_buffer *operand(const struct wp_object *comm, PyObject *object, const char *name,
                            unsigned share, struct weir_collective_params *params, size_t *offset)
{
    const uint32_t ranks = share & ALL ? weir_comm_count(comm->handle) : 1;
    if (share == NONE || (share & ROOTS && weir_comm_rank(comm->handle) != params->root))
        return NULL;
    const struct wp_buffer *buffer = wp_dense_of(object, name);
    if (!buffer)
        return NULL;
    const weir_datatype element = element_of(buffer);
    const size_t elements = buffer->size / buffer->dtype->size, count = elements / ranks;
    if (!element)
        return (void *)wp_refuse("%s is %R; collectives have integers and floats", name, object);
    if (elements % ranks != 0)
        return (
            void *)wp_refuse("%s is %R, whose %zu elements are no parts of one size for %u ranks",
                             name, object, elements, ranks);
    if (params->element && (params->element != element || params->count != count))
        return (void *)wp_refuse("%s is %R; it goes with dst if it has %zu elements of dst's type",
                                 name, object, params->count * ranks);
    params->element = element;
    params->count = count;
    *offset = buffer->offset;
    return wp_handle(buffer);
}

struct operands {
    PyObject *queue, *dst, *src;
    const char *reduction;
    unsigned root; // or peer
};

static PyObject *submit(struct wp_object *comm, struct wp_object *queue,
                        const struct weir_collective_params *params)
{
    weir_status status;
    WP_HERE(place);
    WP_SUBMIT_UNLOCKED(
        status = weir_queue_collective_at(queue->handle, comm->handle, params, WP_AT(place)));
    return wp_none(status);
}

static PyObject *collective(PyObject *self, const struct operands *given, weir_collective kind,
                            unsigned dst, unsigned src)
{
    struct wp_object *comm = (struct wp_object *)self;
    struct wp_object *queue = wp_usable(comm) ? wp_of(given->queue, &wp_queue_kind, "queue") : NULL;
    struct weir_collective_params params = {.struct_size = sizeof params,
                                            .kind = kind,
                                            .root = given->root,
                                            .reduction =
                                                given->reduction ? WEIR_AVERAGE : WEIR_SUM};
    if (!queue)
        return NULL;
    while (given->reduction && params.reduction &&
           strcmp(given->reduction, weir_reduction_name(params.reduction)) != 0)
        params.reduction--;
    if (!params.reduction)
        return wp_refuse(
            "reduction is '%s'; it is 'sum', 'product', 'minimum', 'maximum' or 'average'",
            given->reduction);
    params.dst = operand(comm, given->dst, "dst", dst, &params, &params.dst_offset);
    if (!PyErr_Occurred())
        params.src = operand(comm, given->src, "src", src, &params, &params.src_offset);
    return PyErr_Occurred() ? NULL : submit(comm, queue, &params);
}

#define COLLECTIVE(name, kind, dst_share, src_share, format, ...)                  \
    PyObject *comm_##name(PyObject *self, PyObject *arguments, PyObject *keywords) \
    {                                                                              \
        struct operands o = {.dst = Py_None, .src = Py_None};                      \
        return WP_PARSE(Comm_##name, "O" format, &o.queue, __VA_ARGS__)            \
                   ? collective(self, &o, kind, dst_share, src_share)              \
                   : NULL;                                                         \
    }
COLLECTIVE(all_reduce, WEIR_ALL_REDUCE, COUNT, COUNT, "OO|s", &o.dst, &o.src, &o.reduction)
COLLECTIVE(reduce, WEIR_REDUCE, ROOTS | COUNT, COUNT, "OO|sI", &o.dst, &o.src, &o.reduction,
           &o.root)
COLLECTIVE(broadcast, WEIR_BROADCAST, COUNT, ROOTS | COUNT, "OO|I", &o.dst, &o.src, &o.root)
COLLECTIVE(all_gather, WEIR_ALL_GATHER, ALL, COUNT, "OO", &o.dst, &o.src)
COLLECTIVE(reduce_scatter, WEIR_REDUCE_SCATTER, COUNT, ALL, "OO|s", &o.dst, &o.src, &o.reduction)
COLLECTIVE(all_to_all, WEIR_ALL_TO_ALL, ALL, ALL, "OO", &o.dst, &o.src)
COLLECTIVE(gather, WEIR_GATHER, ROOTS | ALL, COUNT, "OO|I", &o.dst, &o.src, &o.root)
COLLECTIVE(scatter, WEIR_SCATTER, COUNT, ROOTS | ALL, "OO|I", &o.dst, &o.src, &o.root)
COLLECTIVE(send, WEIR_SEND, NONE, COUNT, "OI", &o.src, &o.root)
COLLECTIVE(recv, WEIR_RECV, COUNT, NONE, "OI", &o.dst, &o.root)
#undef COLLECTIVE

PyObject *comm_barrier(PyObject *self, PyObject *queue)
{
    const struct operands o = {.queue = queue};
    return collective(self, &o, WEIR_BARRIER, NONE, NONE);
}

// Reads pairs of a buffer and a peer. How many were read, or -1 with an exception.
static Py_ssize_t read_pairs(PyObject *pairs, bool receive, struct weir_exchange *out)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(pairs); i++) {
        PyObject *object;
        unsigned peer;
        PyObject *pair = PyTuple_GetItem(pairs, i);
        if (!PyTuple_Check(pair) || !PyArg_ParseTuple(pair, "OI:exchange", &object, &peer)) {
            PyErr_Clear();
            wp_refuse("%R is not a buffer and the rank of its peer", pair);
            return -1;
        }
        const struct wp_buffer *buffer = wp_dense_of(object, receive ? "receives" : "sends");
        if (!buffer)
            return -1;
        // Bytes, whatever the elements are.
        out[i] = (struct weir_exchange){wp_handle(buffer), buffer->offset, buffer->size,
                                        WEIR_U8,           peer,           receive};
    }
    return PyTuple_Size(pairs);
}

PyObject *comm_exchange(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    struct wp_object *comm = (struct wp_object *)self, *queue;
    PyObject *object, *sends, *receives, *result = NULL;
    if (!WP_PARSE(Comm_exchange, "OOO", &object, &sends, &receives) || !wp_usable(comm) ||
        !(queue = wp_of(object, &wp_queue_kind, "queue")))
        return NULL;
    sends = PySequence_Tuple(sends);
    receives = sends ? PySequence_Tuple(receives) : NULL;
    const size_t room = receives ? (size_t)(PyTuple_Size(sends) + PyTuple_Size(receives)) : 0;
    struct weir_exchange *list = receives ? calloc(room + 1, sizeof *list) : NULL;
    const Py_ssize_t sent = list ? read_pairs(sends, false, list) : -1;
    const Py_ssize_t received = sent >= 0 ? read_pairs(receives, true, list + sent) : -1;
    const struct weir_collective_params params = {.struct_size = sizeof params,
                                                  .kind = WEIR_EXCHANGE,
                                                  .exchanges = list,
                                                  .exchange_count = (uint32_t)room};
    if (received >= 0)
        result = submit(comm, queue, &params);
    else if (receives && !list)
        PyErr_NoMemory();
    free(list);
    Py_XDECREF(sends);
    Py_XDECREF(receives);
    return result;
}

// It may wait for other ranks, whose threads may be this process's.
static weir_status destroy_comm(struct wp_object *object, struct wp_place place)
{
    weir_comm *handle = object->handle;
    WP_UNLOCKED(weir_comm_destroy_at(&handle, WP_AT(place)));
    return WEIR_OK;
}

WP_TYPE(comm, Comm, struct wp_object, destroy_comm, WP_FLAGS, {0, NULL});
