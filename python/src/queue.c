// Queues, what is submitted to them, events, and the Python functions that the library calls.
#include "weir_py.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

WP_METHOD(Device_queue, WP_HELD,
          weir_queue_create_at(a.self->handle,
                               WP_PARAMS(weir_queue_params, .label = a.label,
                                         .priority = a.priority, .timing = a.timing),
                               &a.result, WP_AT(place)))

int wp_to_stream(PyObject *object, void *out)
{
    PyObject *number = wp_helper("stream", "O", object);
    *(void **)out = number ? PyLong_AsVoidPtr(number) : NULL;
    Py_XDECREF(number);
    return !PyErr_Occurred();
}

WP_METHOD(Device_wrap_queue, WP_HELD,
          weir_queue_wrap_at(a.self->handle,
                             WP_PARAMS(weir_queue_wrap_params, .native = a.stream, .label = a.label,
                                       .timing = a.timing),
                             &a.result, WP_AT(place)))

// The native queue; of that API, unless it is NULL.
static PyObject *native_of(const struct wp_object *queue, const char *api)
{
    struct weir_native_queue native;
    const weir_status status = weir_queue_get_native(queue->handle, &native);
    if (status != WEIR_OK)
        return wp_raise(status);
    return !api || weir_native_is(native.api, api)
               ? PyLong_FromVoidPtr(native.queue)
               : wp_refuse("the queue is one of %s, and has no CUDA stream", native.api);
}

FUNCTION_Queue___cuda_stream__
{
    struct wp_object *queue = (struct wp_object *)self;
    PyObject *native = wp_usable(queue) ? native_of(queue, WEIR_NATIVE_CUDA) : NULL;
    return native ? Py_BuildValue("(iN)", 0, native) : NULL;
}

PyObject *get_Queue_native(PyObject *self, void *Py_UNUSED(unused))
{
    const struct wp_object *queue = (struct wp_object *)self;
    return wp_usable(queue) ? native_of(queue, NULL) : NULL;
}

// Submits.
// Checks the number of arguments of a fast method, and the queue. NULL with an exception.
static struct wp_object *usable(PyObject *self, Py_ssize_t count, Py_ssize_t least, Py_ssize_t most,
                                const char *usage)
{
    struct wp_object *queue = (struct wp_object *)self;
    if (count >= least && count <= most)
        return wp_usable(queue) ? queue : NULL;
    return (void *)PyErr_Format(PyExc_TypeError, "%zd arguments of queue.%s", count, usage);
}

// Levels of rows from the innermost out, of one or two parts of the same shape: a width in bytes,
// then counts with the strides of both. Returns how many levels there are, 1 for contiguous bytes.
struct level {
    size_t count;
    Py_ssize_t strides[2];
};

static int levels_of(const struct wp_buffer *a, const struct wp_buffer *b,
                     struct level levels[WP_DIMENSIONS + 1])
{
    int top = 0;
    levels[0] = (struct level){1, {a->dtype->size, b->dtype->size}};
    for (int i = a->dimensions - 1; i >= 0; i--) {
        struct level *last = &levels[top];
        if (a->shape[i] == 1)
            continue;
        const Py_ssize_t count = (Py_ssize_t)last->count;
        if (a->strides[i] == count * last->strides[0] && b->strides[i] == count * last->strides[1])
            last->count *= (size_t)a->shape[i];
        else
            levels[++top] = (struct level){(size_t)a->shape[i], {a->strides[i], b->strides[i]}};
    }
    levels[0].count *= a->dtype->size;
    return top + 1;
}

static PyObject *copy_rows(struct wp_object *queue, const struct wp_buffer *dst,
                           const struct wp_buffer *src)
{
    struct level levels[WP_DIMENSIONS + 1];
    if (dst->dtype != src->dtype || dst->dimensions != src->dimensions ||
        memcmp(dst->shape, src->shape, (size_t)src->dimensions * sizeof *src->shape) != 0)
        return wp_refuse(
            "dst is %R and src is %R: their shapes differ; copy a part, such as dst[:n]", dst, src);
    const int count = levels_of(dst, src, levels);
    if (count > 3)
        return wp_refuse("%R to %R has rows in more than three dimensions; copy it in parts", src,
                         dst);
    const size_t depth = count > 2 ? levels[2].count : 1;
    const struct weir_volume to = {wp_handle(dst), dst->offset, (size_t)levels[1].strides[0],
                                   count > 2 ? (size_t)levels[2].strides[0] : 0};
    const struct weir_volume from = {wp_handle(src), src->offset, (size_t)levels[1].strides[1],
                                     count > 2 ? (size_t)levels[2].strides[1] : 0};
    WP_RETURN_SUBMIT(queue, weir_queue_copy_3d_at, to, from, levels[0].count, levels[1].count,
                     depth);
}

PyObject *queue_copy(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    struct wp_object *queue = usable(self, count, 2, 2, "copy(dst, src)");
    const struct wp_buffer *dst = queue ? wp_buffer_of(arguments[0], "dst") : NULL;
    const struct wp_buffer *src = dst ? wp_buffer_of(arguments[1], "src") : NULL;
    if (!src)
        return NULL;
    if (dst->dtype != src->dtype && dst->dtype->size != 1 && src->dtype->size != 1)
        return wp_refuse("dst is %R and src is %R: their elements differ", dst, src);
    if (!dst->dense || !src->dense || dst->size != src->size)
        return copy_rows(queue, dst, src);
    WP_RETURN_SUBMIT(queue, weir_queue_copy_at, wp_handle(dst), dst->offset, wp_handle(src),
                     src->offset, src->size);
}

PyObject *queue_fill(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    struct wp_object *queue = usable(self, count, 2, 2, "fill(dst, value)");
    struct wp_buffer *dst = queue ? wp_buffer_of(arguments[0], "dst") : NULL;
    if (!dst)
        return NULL;
    uint64_t bits[2] = {0};
    size_t size = dst->dtype->size;
    if (PyBytes_Check(arguments[1])) {
        size = (size_t)PyBytes_Size(arguments[1]);
        memcpy(bits, PyBytes_AsString(arguments[1]), size < sizeof bits ? size : sizeof bits);
    } else if (!wp_pack(dst->dtype->scalar, arguments[1], "value", bits)) {
        return NULL;
    }
    struct level levels[WP_DIMENSIONS + 1];
    const int rows = levels_of(dst, dst, levels);
    if (rows > 2)
        return wp_refuse("%R has rows in more than two dimensions; fill it in parts", dst);
    if (rows == 1)
        WP_RETURN_SUBMIT(queue, weir_queue_fill_at, wp_handle(dst), dst->offset, dst->size, bits,
                         size);
    const struct weir_plane plane = {wp_handle(dst), dst->offset, (size_t)levels[1].strides[0]};
    WP_RETURN_SUBMIT(queue, weir_queue_fill_2d_at, plane, levels[0].count, levels[1].count, bits,
                     size);
}

// What is waited for: a device, a queue, or events, all or any of them.
struct sync {
    weir_device *device;
    weir_queue *queue;
    const struct weir_event *events;
    size_t count, index;
    bool any;
    struct wp_place place;
};

static weir_status sync_step(void *user, uint64_t timeout_ns)
{
    struct sync *sync = user;
    if (sync->device)
        return weir_device_sync_at(sync->device, timeout_ns, WP_AT(sync->place));
    if (sync->queue)
        return weir_queue_sync_at(sync->queue, timeout_ns, WP_AT(sync->place));
    if (sync->any)
        return weir_event_sync_any_at(sync->events, sync->count, timeout_ns, &sync->index,
                                      WP_AT(sync->place));
    return weir_event_sync_all_at(sync->events, sync->count, timeout_ns, WP_AT(sync->place));
}

// upload() and download(). Signals interrupt the wait for the work before it, and not the copy.
static PyObject *transfer(struct wp_object *queue, struct wp_buffer *buffer, PyObject *array,
                          bool up)
{
    Py_buffer view;
    weir_status status;
    if (!buffer || !wp_array_of(array, buffer, !up, &view))
        return NULL;
    WP_HERE(place);
    struct sync sync = {.queue = queue->handle, .place = place};
    wp_hold(wp_whole(buffer));
    wp_hold(queue);
    const bool waited = wp_wait(WEIR_FOREVER, sync_step, &sync, &status);
    if (waited)
        WP_UNLOCKED(status = up ? weir_upload_at(queue->handle, wp_handle(buffer), buffer->offset,
                                                 view.buf, buffer->size, WP_AT(place))
                                : weir_download_at(queue->handle, view.buf, wp_handle(buffer),
                                                   buffer->offset, buffer->size, WP_AT(place)));
    wp_let(queue);
    wp_let(wp_whole(buffer));
    PyBuffer_Release(&view);
    return waited && PyErr_CheckSignals() == 0 ? wp_none(status) : NULL;
}

WP_RETURN(Queue_upload, transfer(a.self, wp_dense_of((PyObject *)a.dst, "dst"), a.array, true))
WP_RETURN(Queue_download, transfer(a.self, wp_dense_of((PyObject *)a.src, "src"), a.array, false))

struct event {
    PyObject_HEAD struct weir_event event;
};

PyObject *queue_record(PyObject *self, PyObject *Py_UNUSED(unused))
{
    struct wp_object *queue = (struct wp_object *)self;
    struct weir_event event;
    weir_status status;
    if (!wp_usable(queue))
        return NULL;
    WP_HERE(place);
    WP_SUBMIT(queue, status = weir_queue_record_at(queue->handle, &event, WP_AT(place)));
    if (status != WEIR_OK)
        return wp_raise(status);
    struct event *made = PyObject_New(struct event, wp_event_kind.type);
    if (made)
        made->event = event;
    return (PyObject *)made;
}

PyObject *queue_wait(PyObject *self, PyObject *object)
{
    struct wp_object *queue = (struct wp_object *)self;
    if (!wp_usable(queue))
        return NULL;
    if (Py_TYPE(object) == wp_event_kind.type)
        WP_RETURN_SUBMIT(queue, weir_queue_wait_at, ((struct event *)object)->event);
    struct wp_object *other = wp_of(object, &wp_queue_kind, "event");
    PyObject *event = other ? queue_record(object, NULL) : NULL;
    PyObject *result = event ? queue_wait(self, event) : NULL;
    Py_XDECREF(event);
    return result;
}

// Waits.
static _Thread_local bool in_call;

// None, or of any event its index. `object`, unless it is NULL, is in use meanwhile.
static PyObject *run_sync(struct sync *sync, uint64_t timeout_ns, struct wp_object *object)
{
    weir_status status;
    sync->place = wp_here();
    if (object)
        wp_hold(object);
    PyObject *result = !wp_wait(timeout_ns, sync_step, sync, &status) ? NULL
                       : status == WEIR_OK && sync->any ? PyLong_FromSize_t(sync->index)
                                                        : wp_none(status);
    if (object)
        wp_let(object);
    return result;
}

bool wp_device_wait(struct wp_object *device)
{
    struct sync sync = {.device = device->handle, .place = wp_here()};
    weir_status status;
    if (in_call)
        return wp_refuse("a device cannot be closed in a host call, which must not wait");
    wp_hold(device);
    const bool waited = wp_wait(WEIR_FOREVER, sync_step, &sync, &status);
    wp_let(device);
    return waited;
}

WP_RETURN(Queue_sync, run_sync(&(struct sync){.queue = a.self->handle}, a.timeout, a.self))
WP_RETURN(Device_sync, run_sync(&(struct sync){.device = a.self->handle}, a.timeout, a.self))
WP_METHOD(Queue_flush, WP_HELD, weir_queue_flush_at(a.self->handle, WP_AT(place)))
WP_METHOD(Queue_recover, WP_HELD, weir_queue_recover_at(a.self->handle, WP_AT(place)))

// Later.
static _Atomic(struct wp_later *) laters;

static int drop_pending(void *Py_UNUSED(unused))
{
    wp_drop_now();
    return 0;
}

void wp_drop_later(struct wp_later *later)
{
    struct wp_later *next = atomic_load(&laters);
    do
        later->next = next;
    while (!atomic_compare_exchange_weak(&laters, &next, later));
    if (!next &&
        !atomic_load(&wp_over)) // where the list is full, the next object's creation does it
        Py_AddPendingCall(drop_pending, NULL);
}

// One at a time: what is dropped may let others end, which drop the rest.
void wp_drop_now(void)
{
    for (struct wp_later *first = atomic_load(&laters); first;) {
        if (!atomic_compare_exchange_weak(&laters, &first, first->next))
            continue;
        first->drop(first);
        first = atomic_load(&laters);
    }
}

// Functions that the library calls.
struct wp_call {
    struct wp_later later;
    struct wp_call *next; // of the device's
    struct wp_call **link;
    PyObject *function, *arguments; // a tuple
    struct wp_place place;          // without a line where a graph may call it
    bool kept;                      // until the device ends, since a graph may call it again
};

static void drop_call(struct wp_later *later)
{
    struct wp_call *call = (struct wp_call *)(void *)later;
    if (call->next)
        call->next->link = call->link;
    *call->link = call->next;
    Py_DECREF(call->function);
    Py_DECREF(call->arguments);
    free(call);
}

void wp_drop_calls(struct wp_device *device)
{
    wp_drop_now();
    while (device->calls)
        drop_call(&device->calls->later);
}

// The sentence on what a call raised, or NULL; weir._help keeps the exception.
static PyObject *take_raised(const struct wp_call *call)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback)
        PyException_SetTraceback(value, traceback);
    PyObject *text = wp_helper("raised", "Ozi", value, call->place.file, call->place.line);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return text;
}

// Runs on a thread of the library's or the driver's, which sets `in_call` meanwhile.
static weir_status run_call(void *user)
{
    struct wp_call *call = user;
    struct weir_error error = {.status = WEIR_ERROR_HOST_CALL};
    if (atomic_load(&wp_over))
        return error.status;
    const PyGILState_STATE state = PyGILState_Ensure();
    in_call = true;
    PyObject *result = PyObject_CallObject(call->function, call->arguments);
    PyObject *text = result ? NULL : take_raised(call);
    in_call = false;
    const bool failed = !result;
    const char *message = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    snprintf(error.message, sizeof error.message, "%s", message ? message : "a host call raised");
    snprintf(error.remedy, sizeof error.remedy,
             "__cause__ of this exception is what it raised, with its traceback");
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(result);
    if (!call->kept) // a thread of the program drops it: what it has may end objects
        wp_drop_later(&call->later);
    PyGILState_Release(state);
    return failed ? weir_error_set(&error) : WEIR_OK;
}

PyObject *queue_host_call(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    struct wp_object *queue =
        usable(self, count, 1, PY_SSIZE_T_MAX, "host_call(function, *arguments)");
    if (queue && !PyCallable_Check(arguments[0]))
        return PyErr_Format(PyExc_TypeError, "function is %R; it is something that can be called",
                            arguments[0]);
    PyObject *others = queue ? PyTuple_New(count - 1) : NULL;
    struct wp_call *call = others ? calloc(1, sizeof *call) : NULL;
    if (!call) {
        Py_XDECREF(others);
        return others ? PyErr_NoMemory() : NULL;
    }
    for (Py_ssize_t i = 1; i < count; i++)
        PyTuple_SetItem(others, i - 1, Py_BuildValue("O", arguments[i]));
    // Perhaps it is this queue that is captured: then the call stays until the device closes.
    struct wp_device *device = (struct wp_device *)queue->owner;
    const bool kept = device->captures > 0;
    WP_HERE(place);
    *call = (struct wp_call){.later.drop = drop_call,
                             .next = device->calls,
                             .link = &device->calls,
                             .function = Py_BuildValue("O", arguments[0]),
                             .arguments = others,
                             .place = kept ? (struct wp_place){NULL, 0} : place,
                             .kept = kept};
    if (call->next)
        call->next->link = &call->next;
    device->calls = call;
    device->submits_free |= kept;
    weir_status status;
    WP_HELD(queue, status = weir_queue_host_call_at(queue->handle, run_call, call, WP_AT(place)));
    if (status != WEIR_OK)
        drop_call(&call->later);
    return wp_none(status);
}

// Events.
WP_RETURN(Event_sync, run_sync(&(struct sync){.events = &((struct event *)self)->event, .count = 1},
                               a.timeout, NULL))

PyObject *get_Event_done(PyObject *self, void *Py_UNUSED(unused))
{
    WP_HERE(place);
    const weir_status status = weir_event_query_at(((struct event *)self)->event, WP_AT(place));
    return status < 0 ? wp_raise(status) : PyBool_FromLong(status == WEIR_OK);
}

PyObject *get_Event_time_ns(PyObject *self, void *Py_UNUSED(unused))
{
    uint64_t time_ns;
    WP_HERE(place);
    const weir_status status =
        weir_event_time_ns_at(((struct event *)self)->event, &time_ns, WP_AT(place));
    return status == WEIR_OK ? PyLong_FromUnsignedLongLong(time_ns) : wp_raise(status);
}

WP_VALUE(Event_elapsed_ns, int64_t,
         weir_event_elapsed_ns_at(((struct event *)self)->event, ((struct event *)a.end)->event,
                                  &result, WP_AT(place)))
WP_VALUE(Event_fd, int, weir_event_fd_at(((struct event *)self)->event, &result, WP_AT(place)))

static PyObject *sync_events(PyObject *events, uint64_t timeout_ns, bool any)
{
    PyObject *tuple = PySequence_Tuple(events);
    struct sync sync = {.count = tuple ? (size_t)PyTuple_Size(tuple) : 0, .any = any};
    struct weir_event *list = tuple ? calloc(sync.count + 1, sizeof *list) : NULL;
    bool fits = list;
    for (size_t i = 0; fits && i < sync.count; i++) {
        PyObject *event = PyTuple_GetItem(tuple, (Py_ssize_t)i);
        fits = Py_TYPE(event) == wp_event_kind.type || wp_of(event, &wp_event_kind, "event");
        list[i] = fits ? ((struct event *)event)->event : list[i];
    }
    sync.events = list;
    PyObject *result = fits ? run_sync(&sync, timeout_ns, NULL) : NULL;
    if (tuple && !list)
        PyErr_NoMemory();
    free(list);
    Py_XDECREF(tuple);
    return result;
}

WP_RETURN(sync_all, sync_events(a.events, a.timeout, false))
WP_RETURN(sync_any, sync_events(a.events, a.timeout, true))

static PyObject *event_await(PyObject *self)
{
    PyObject *coroutine = wp_helper("complete", "O", self);
    PyObject *iterator = coroutine ? PyObject_CallMethod(coroutine, "__await__", NULL) : NULL;
    Py_XDECREF(coroutine);
    return iterator;
}

static PyObject *event_repr(PyObject *self)
{
    const struct event *event = (struct event *)self;
    return PyUnicode_FromFormat("<weir event %llu of queue %llu>",
                                (unsigned long long)event->event.sequence,
                                (unsigned long long)event->event.queue);
}

WP_TYPE(event, Event, struct event, NULL, WP_FLAGS, WP_SLOT(Py_tp_dealloc, wp_free),
        WP_SLOT(Py_tp_repr, event_repr), WP_SLOT(Py_am_await, event_await));
WP_CHILD_TYPE(queue, Queue, struct wp_object, {0, NULL});
