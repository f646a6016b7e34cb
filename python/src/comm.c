// Communicators and collectives.
#include "weir_py.h"

#include <stdlib.h>
#include <string.h>

int wp_to_color(PyObject *object, void *out)
{
    const long color = object == Py_None ? WEIR_NO_COLOR : PyLong_AsLong(object);
    *(int32_t *)out = (int32_t)color;
    return (!PyErr_Occurred() && (object == Py_None || (color >= 0 && color <= INT32_MAX))) ||
           wp_refuse("color is %R; it is a number from 0 on, or None for no part", object);
}

WP_METHOD(Device_comm, WP_HELD,
          weir_comm_create_at(a.self->handle,
                              WP_PARAMS(weir_comm_params, .label = a.label,
                                        .rank = (uint32_t)a.rank, .count = (uint32_t)a.count,
                                        .rendezvous = a.rendezvous, .timeout_ns = a.timeout,
                                        .check = a.check),
                              &a.result, WP_AT(place)))

static PyObject *create_all(PyObject *list, struct weir_comm_params *params)
{
    weir_device *devices[64];
    weir_comm *handles[64];
    const Py_ssize_t count = PyTuple_Size(list);
    weir_status status;
    if (count < 1 || count > 64)
        return wp_refuse("there are %zd devices; a communicator of one process has 1 to 64", count);
    for (Py_ssize_t i = 0; i < count; i++) {
        struct wp_object *device = wp_of(PyTuple_GetItem(list, i), &wp_device_kind, "device");
        if (!device)
            return NULL;
        devices[i] = device->handle;
    }
    WP_HERE(place);
    for (Py_ssize_t i = 0; i < count; i++)
        wp_hold((struct wp_object *)PyTuple_GetItem(list, i));
    WP_UNLOCKED(
        status = weir_comm_create_all_at(devices, (uint32_t)count, params, handles, WP_AT(place)));
    PyObject *comms = status == WEIR_OK ? PyList_New(0) : wp_raise(status);
    for (Py_ssize_t i = 0; i < count; i++) {
        struct wp_object *device = (struct wp_object *)PyTuple_GetItem(list, i);
        PyObject *comm = status != WEIR_OK
                             ? NULL
                             : wp_made(status, &wp_comm_kind, device, handles[i], params->label);
        if (comms && (!comm || PyList_Append(comms, comm) != 0))
            Py_CLEAR(comms); // the others' handles are made into objects, and dropped
        Py_XDECREF(comm);
        wp_let(device);
    }
    return comms;
}

FUNCTION_comms
{
    struct comms a = DEFAULTS_comms;
    PyObject *list = READ_comms(&a) ? PySequence_Tuple(a.devices) : NULL;
    PyObject *comms = list ? create_all(list, WP_PARAMS(weir_comm_params, .label = a.label,
                                                        .timeout_ns = a.timeout))
                           : NULL;
    PyObject *tuple = comms ? PyList_AsTuple(comms) : NULL;
    (void)self;
    Py_XDECREF(list);
    Py_XDECREF(comms);
    return tuple;
}

FUNCTION_Comm_split
{
    struct Comm_split a = DEFAULTS_Comm_split;
    weir_status status;
    if (!READ_Comm_split(&a))
        return NULL;
    WP_HERE(place);
    WP_HELD(a.self, status = weir_comm_split_at(a.self->handle, a.color, a.key, a.label, &a.result,
                                                WP_AT(place)));
    return status == WEIR_OK && !a.result ? Py_BuildValue("") : RESULT_Comm_split;
}

WP_METHOD(Comm_shrink, WP_HELD,
          weir_comm_shrink_at(a.self->handle, a.label, &a.result, WP_AT(place)))
WP_METHOD(Comm_abort, WP_HELD, weir_comm_abort_at(a.self->handle, a.why, WP_AT(place)))
WP_METHOD(Comm_error, WP_HELD, weir_comm_error(a.self->handle))
WP_GET(Comm_rank, weir_comm_rank(self->handle))
WP_GET(Comm_count, weir_comm_count(self->handle))
WP_GET(Comm_engine, weir_comm_engine(self->handle))

// Collectives.
// Which elements an operand has: none, `count`, or `count` of each rank; with ROOTS only the root
// has the operand.
enum {
    NONE,
    COUNT,
    ALL,
    ROOTS = 4,
};

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
    const weir_datatype element = buffer->dtype->datatype;
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

static PyObject *submit(struct wp_object *comm, struct wp_object *queue,
                        const struct weir_collective_params *params)
{
    weir_status status;
    WP_HERE(place);
    WP_SUBMIT_UNLOCKED(
        status = weir_queue_collective_at(queue->handle, comm->handle, params, WP_AT(place)));
    return wp_none(status);
}

static PyObject *collective(struct wp_object *comm, struct wp_object *queue, weir_collective kind,
                            PyObject *dst, unsigned dst_share, PyObject *src, unsigned src_share,
                            const char *reduction, int root)
{
    struct weir_collective_params params = {.struct_size = sizeof params,
                                            .kind = kind,
                                            .root = (uint32_t)root,
                                            .reduction = reduction ? WEIR_AVERAGE : WEIR_SUM};
    while (reduction && params.reduction &&
           strcmp(reduction, weir_reduction_name(params.reduction)) != 0)
        params.reduction--;
    if (!params.reduction)
        return wp_refuse(
            "reduction is '%s'; it is 'sum', 'product', 'minimum', 'maximum' or 'average'",
            reduction);
    params.dst = operand(comm, dst, "dst", dst_share, &params, &params.dst_offset);
    if (!PyErr_Occurred())
        params.src = operand(comm, src, "src", src_share, &params, &params.src_offset);
    return PyErr_Occurred() ? NULL : submit(comm, queue, &params);
}

#define COLLECTIVE(name, ...) WP_RETURN(Comm_##name, collective(a.self, a.queue, __VA_ARGS__))
COLLECTIVE(all_reduce, WEIR_ALL_REDUCE, a.dst, COUNT, a.src, COUNT, a.reduction, 0)
COLLECTIVE(reduce, WEIR_REDUCE, a.dst, ROOTS | COUNT, a.src, COUNT, a.reduction, a.root)
COLLECTIVE(broadcast, WEIR_BROADCAST, a.dst, COUNT, a.src, ROOTS | COUNT, NULL, a.root)
COLLECTIVE(all_gather, WEIR_ALL_GATHER, a.dst, ALL, a.src, COUNT, NULL, 0)
COLLECTIVE(reduce_scatter, WEIR_REDUCE_SCATTER, a.dst, COUNT, a.src, ALL, a.reduction, 0)
COLLECTIVE(all_to_all, WEIR_ALL_TO_ALL, a.dst, ALL, a.src, ALL, NULL, 0)
COLLECTIVE(gather, WEIR_GATHER, a.dst, ROOTS | ALL, a.src, COUNT, NULL, a.root)
COLLECTIVE(scatter, WEIR_SCATTER, a.dst, COUNT, a.src, ROOTS | ALL, NULL, a.root)
COLLECTIVE(send, WEIR_SEND, NULL, NONE, a.src, COUNT, NULL, a.peer)
COLLECTIVE(recv, WEIR_RECV, a.dst, COUNT, NULL, NONE, NULL, a.peer)
COLLECTIVE(barrier, WEIR_BARRIER, NULL, NONE, NULL, NONE, NULL, 0)
#undef COLLECTIVE

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

FUNCTION_Comm_exchange
{
    struct Comm_exchange a = DEFAULTS_Comm_exchange;
    if (!READ_Comm_exchange(&a))
        return NULL;
    PyObject *result = NULL, *sends = PySequence_Tuple(a.sends);
    PyObject *receives = sends ? PySequence_Tuple(a.receives) : NULL;
    const size_t room = receives ? (size_t)(PyTuple_Size(sends) + PyTuple_Size(receives)) : 0;
    struct weir_exchange *list = receives ? calloc(room + 1, sizeof *list) : NULL;
    const Py_ssize_t sent = list ? read_pairs(sends, false, list) : -1;
    if (sent >= 0 && read_pairs(receives, true, list + sent) >= 0)
        result = submit(a.self, a.queue,
                        WP_PARAMS(weir_collective_params, .kind = WEIR_EXCHANGE, .exchanges = list,
                                  .exchange_count = (uint32_t)room));
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
