// Queues, what is submitted to them, events, and the Python functions that the library calls.
#include "weir_py.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

PyTypeObject *wp_queue_type, *wp_event_type;

WP_KIND(queue);

PyObject *wp_device_queue(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"label", "priority", "timing", NULL};
    struct wp_device *device = (struct wp_device *)self;
    struct weir_queue_params params = {.struct_size = sizeof params};
    PyObject *label = NULL;
    int timing = 0;
    weir_queue *handle;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O$ip:queue", names, &label,
                                     &params.priority, &timing) ||
        !wp_device_usable(device) || !wp_label(label, &params.label))
        return NULL;
    params.timing = timing;
    WP_HERE(place);
    const weir_status status = weir_queue_create_at(device->handle, &params, &handle, WP_AT(place));
    return status == WEIR_OK
               ? (PyObject *)wp_child_new(wp_queue_type, &queue_kind, device, handle, label)
               : wp_raise(status);
}

PyObject *wp_device_wrap_queue(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"stream", "label", "timing", NULL};
    struct wp_device *device = (struct wp_device *)self;
    struct weir_queue_wrap_params params = {.struct_size = sizeof params};
    PyObject *stream, *label = NULL;
    int timing = 0;
    weir_queue *handle;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O$p:wrap_queue", names, &stream,
                                     &label, &timing) ||
        !wp_device_usable(device) || !wp_label(label, &params.label))
        return NULL;
    PyObject *number = wp_helper("stream", "O", stream);
    params.native = number ? PyLong_AsVoidPtr(number) : NULL;
    Py_XDECREF(number);
    if (PyErr_Occurred())
        return NULL;
    params.timing = timing;
    WP_HERE(place);
    const weir_status status = weir_queue_wrap_at(device->handle, &params, &handle, WP_AT(place));
    return status == WEIR_OK
               ? (PyObject *)wp_child_new(wp_queue_type, &queue_kind, device, handle, label)
               : wp_raise(status);
}

// `api`, unless it is NULL, is the one that it has to be.
static PyObject *queue_native(PyObject *self, void *api)
{
    struct weir_native_queue native;
    if (!wp_child_usable((struct wp_child *)self))
        return NULL;
    const weir_status status = weir_queue_get_native(((struct wp_child *)self)->handle, &native);
    if (status != WEIR_OK)
        return wp_raise(status);
    return !api || weir_native_is(native.api, api)
               ? PyLong_FromVoidPtr(native.queue)
               : wp_refuse("the queue is one of %s, and has no CUDA stream", native.api);
}

static PyObject *queue_cuda_stream(PyObject *self, PyObject *unused)
{
    (void)unused;
    static char api[] = WEIR_NATIVE_CUDA;
    PyObject *native = queue_native(self, api);
    return native ? Py_BuildValue("(iN)", 0, native) : NULL;
}

// Submits.
// Checks the number of arguments of a fast method, and the queue. NULL with an exception.
static struct wp_queue *usable(PyObject *self, Py_ssize_t count, Py_ssize_t least, Py_ssize_t most,
                               const char *usage)
{
    if (count >= least && count <= most)
        return wp_child_usable((struct wp_child *)self) ? (struct wp_queue *)self : NULL;
    PyErr_Format(PyExc_TypeError, "%zd arguments of queue.%s", count, usage);
    return NULL;
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

static weir_status copy_rows(struct wp_queue *queue, const struct wp_buffer *dst,
                             const struct wp_buffer *src, const struct level *levels, int count,
                             struct wp_place place)
{
    weir_status status;
    const size_t depth = count > 2 ? levels[2].count : 1;
    const struct weir_volume to = {wp_handle(dst), dst->offset, (size_t)levels[1].strides[0],
                                   count > 2 ? (size_t)levels[2].strides[0] : 0};
    const struct weir_volume from = {wp_handle(src), src->offset, (size_t)levels[1].strides[1],
                                     count > 2 ? (size_t)levels[2].strides[1] : 0};
    WP_SUBMIT(queue, status,
              weir_queue_copy_3d_at(queue->child.handle, to, from, levels[0].count, levels[1].count,
                                    depth, WP_AT(place)));
    return status;
}

static PyObject *queue_copy(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    struct wp_queue *queue = usable(self, count, 2, 2, "copy(dst, src)");
    const struct wp_buffer *dst = queue ? wp_buffer_of(arguments[0], "dst") : NULL;
    const struct wp_buffer *src = dst ? wp_buffer_of(arguments[1], "src") : NULL;
    if (!src)
        return NULL;
    if (dst->dtype != src->dtype && dst->dtype->size != 1 && src->dtype->size != 1)
        return wp_refuse("dst is %R and src is %R: their elements differ", dst, src);
    weir_status status;
    WP_HERE(place);
    if (dst->dense && src->dense && dst->size == src->size) {
        WP_SUBMIT(queue, status,
                  weir_queue_copy_at(queue->child.handle, wp_handle(dst), dst->offset,
                                     wp_handle(src), src->offset, src->size, WP_AT(place)));
        return wp_none(status);
    }
    struct level levels[WP_DIMENSIONS + 1];
    const bool alike =
        dst->dtype == src->dtype && dst->dimensions == src->dimensions &&
        memcmp(dst->shape, src->shape, (size_t)src->dimensions * sizeof *src->shape) == 0;
    const int count_levels = alike ? levels_of(dst, src, levels) : 0;
    if (!alike)
        return wp_refuse(
            "dst is %R and src is %R: their shapes differ; copy a part, such as dst[:n]", dst, src);
    if (count_levels > 3)
        return wp_refuse("%R to %R has rows in more than three dimensions; copy it in parts", src,
                         dst);
    return wp_none(copy_rows(queue, dst, src, levels, count_levels, place));
}

static PyObject *queue_fill(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    struct wp_queue *queue = usable(self, count, 2, 2, "fill(dst, value)");
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
    weir_status status;
    WP_HERE(place);
    if (rows == 1) {
        WP_SUBMIT(queue, status,
                  weir_queue_fill_at(queue->child.handle, wp_handle(dst), dst->offset, dst->size,
                                     bits, size, WP_AT(place)));
    } else {
        const struct weir_plane plane = {wp_handle(dst), dst->offset, (size_t)levels[1].strides[0]};
        WP_SUBMIT(queue, status,
                  weir_queue_fill_2d_at(queue->child.handle, plane, levels[0].count,
                                        levels[1].count, bits, size, WP_AT(place)));
    }
    return wp_none(status);
}

// upload() and download().
static PyObject *transfer(struct wp_queue *queue, struct wp_buffer *buffer, PyObject *array,
                          bool up)
{
    Py_buffer view;
    weir_status status;
    if (!wp_array_of(array, buffer, !up, &view))
        return NULL;
    WP_HERE(place);
    wp_child_hold(&queue->child);
    wp_child_hold(&(buffer->base ? buffer->base : buffer)->child);
    WP_UNLOCKED(status = up ? weir_upload_at(queue->child.handle, wp_handle(buffer), buffer->offset,
                                             view.buf, buffer->size, WP_AT(place))
                            : weir_download_at(queue->child.handle, view.buf, wp_handle(buffer),
                                               buffer->offset, buffer->size, WP_AT(place)));
    wp_child_let(&(buffer->base ? buffer->base : buffer)->child);
    wp_child_let(&queue->child);
    PyBuffer_Release(&view);
    return PyErr_CheckSignals() == 0 ? wp_none(status) : NULL;
}

static PyObject *queue_upload(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    struct wp_queue *queue = usable(self, count, 2, 2, "upload(dst, array)");
    struct wp_buffer *buffer = queue ? wp_dense_of(arguments[0], "dst") : NULL;
    return buffer ? transfer(queue, buffer, arguments[1], true) : NULL;
}

static PyObject *queue_download(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    struct wp_queue *queue = usable(self, count, 2, 2, "download(array, src)");
    struct wp_buffer *buffer = queue ? wp_dense_of(arguments[1], "src") : NULL;
    return buffer ? transfer(queue, buffer, arguments[0], false) : NULL;
}

static PyObject *queue_record(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct wp_queue *queue = usable(self, 0, 0, 0, "record()");
    struct weir_event event;
    weir_status status;
    if (!queue)
        return NULL;
    WP_HERE(place);
    WP_SUBMIT(queue, status, weir_queue_record_at(queue->child.handle, &event, WP_AT(place)));
    return status == WEIR_OK ? wp_event_new(event) : wp_raise(status);
}

struct event {
    PyObject_HEAD struct weir_event event;
};

static PyObject *queue_wait(PyObject *self, PyObject *object)
{
    struct wp_queue *queue = usable(self, 1, 1, 1, "wait(event)");
    struct weir_event event;
    weir_status status = WEIR_OK;
    if (!queue)
        return NULL;
    WP_HERE(place);
    if (Py_TYPE(object) == wp_event_type) {
        event = ((struct event *)object)->event;
    } else {
        struct wp_queue *other = wp_child_of(object, wp_queue_type, "event");
        if (!other)
            return NULL;
        WP_SUBMIT(other, status, weir_queue_record_at(other->child.handle, &event, WP_AT(place)));
    }
    if (status == WEIR_OK)
        WP_SUBMIT(queue, status, weir_queue_wait_at(queue->child.handle, event, WP_AT(place)));
    return wp_none(status);
}

// Waits.
static _Thread_local bool in_call;

// One of the three.
struct sync {
    weir_device *device;
    weir_queue *queue;
    const struct weir_event *event;
    struct wp_place place;
};

static weir_status sync_step(void *user, uint64_t timeout_ns)
{
    struct sync *sync = user;
    return sync->device  ? weir_device_sync_at(sync->device, timeout_ns, WP_AT(sync->place))
           : sync->queue ? weir_queue_sync_at(sync->queue, timeout_ns, WP_AT(sync->place))
                         : weir_event_sync_at(*sync->event, timeout_ns, WP_AT(sync->place));
}

// None, or an exception.
static PyObject *run_sync(struct sync *sync, PyObject *timeout)
{
    weir_status status;
    sync->place = wp_here();
    return wp_wait(timeout, sync_step, sync, &status) ? wp_none(status) : NULL;
}

bool wp_device_wait(struct wp_device *device)
{
    struct sync sync = {.device = device->handle, .place = wp_here()};
    weir_status status;
    if (in_call)
        return wp_refuse("a device cannot be closed in a host call, which must not wait");
    return wp_wait(NULL, sync_step, &sync, &status);
}

static PyObject *queue_sync(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"timeout", NULL};
    struct wp_child *queue = (struct wp_child *)self;
    PyObject *timeout = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O:sync", names, &timeout) ||
        !wp_child_usable(queue))
        return NULL;
    struct sync sync = {.queue = queue->handle};
    wp_child_hold(queue);
    PyObject *result = run_sync(&sync, timeout);
    wp_child_let(queue);
    return result;
}

PyObject *wp_device_sync(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"timeout", NULL};
    struct wp_device *device = (struct wp_device *)self;
    PyObject *timeout = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O:sync", names, &timeout) ||
        !wp_device_usable(device))
        return NULL;
    struct sync sync = {.device = device->handle};
    device->users++;
    PyObject *result = run_sync(&sync, timeout);
    device->users--;
    if (device->closed) // by another thread
        wp_device_settle(device);
    return result;
}

static PyObject *queue_flush(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct wp_child *queue = (struct wp_child *)self;
    if (!wp_child_usable(queue))
        return NULL;
    WP_HERE(place);
    WP_RETURN_UNLOCKED(queue, weir_queue_flush_at(queue->handle, WP_AT(place)));
}

static PyObject *queue_recover(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct wp_child *queue = (struct wp_child *)self;
    if (!wp_child_usable(queue))
        return NULL;
    WP_HERE(place);
    WP_RETURN_UNLOCKED(queue, weir_queue_recover_at(queue->handle, WP_AT(place)));
}

// Functions that the library calls.
struct wp_call {
    struct wp_later later;
    PyObject *function;
    PyObject *arguments;
    struct wp_place place;
    struct wp_call *next; // of the device's calls that have not run
    struct wp_call **link;
    bool kept; // by a graph, which may run it again
};

// Exceptions of functions, the latest ones, with the line that submitted each: the cause of the
// failure that names it.
static struct raised {
    PyObject *exception;
    struct wp_place place;
    bool told; // as the cause of an exception
} raised[8];
static unsigned raised_count;

// Drops one; what was not told goes to sys.unraisablehook.
static void forget(struct raised *one)
{
    PyObject *exception = one->exception;
    one->exception = NULL;
    if (exception && !one->told) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
        PyErr_WriteUnraisable(NULL);
    }
    Py_XDECREF(exception);
}

PyObject *wp_call_cause(const struct weir_error *error)
{
    char named[1024]; // in the message about a graph's call
    for (unsigned i = raised_count, least = i > 8 ? i - 8 : 0; i-- > least;) {
        const struct wp_place place = raised[i % 8].place;
        snprintf(named, sizeof named, "%s:%d", place.file ? place.file : "", place.line);
        const bool same = error->file && place.file && place.line == error->line &&
                          strcmp(place.file, error->file) == 0;
        if (raised[i % 8].exception && (same || strstr(error->message, named))) {
            raised[i % 8].told = true;
            return raised[i % 8].exception;
        }
    }
    return NULL;
}

void wp_calls_forget(void)
{
    for (unsigned i = 0; i < 8; i++)
        forget(&raised[i]);
}

static void drop_call(struct wp_later *later)
{
    struct wp_call *call = (struct wp_call *)later;
    Py_XDECREF(call->function);
    Py_XDECREF(call->arguments);
    free(call);
}

static void unlink_call(struct wp_call *call)
{
    if (!call->link)
        return;
    if (call->next)
        call->next->link = call->link;
    *call->link = call->next;
    call->link = NULL;
}

// Keeps the exception that is set, and makes its text the thread's error detail.
static weir_status note_exception(const struct wp_call *call)
{
    struct weir_error error = {.status = WEIR_ERROR_HOST_CALL,
                               .file = call->place.file,
                               .line = call->place.line};
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback)
        PyException_SetTraceback(value, traceback);
    PyObject *name = PyObject_GetAttrString(type, "__name__");
    PyObject *text =
        name ? PyUnicode_FromFormat("the function of a host call raised %S: %S", name, value)
             : NULL;
    const char *message = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    strncat(error.message, message ? message : "the function of a host call raised",
            sizeof error.message - 1);
    strncat(error.remedy, "__cause__ of this exception is what it raised, with its traceback",
            sizeof error.remedy - 1);
    PyErr_Clear();
    Py_XDECREF(name);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    struct raised *one = &raised[raised_count++ % 8];
    forget(one);
    *one = (struct raised){.exception = value, .place = call->place};
    return weir_error_set(&error);
}

// Runs on a thread of the library's or the driver's, which sets `in_call` meanwhile.
static weir_status run_call(void *user)
{
    struct wp_call *call = user;
    if (atomic_load(&wp_over))
        return WEIR_ERROR_HOST_CALL;
    const PyGILState_STATE state = PyGILState_Ensure();
    in_call = true;
    PyObject *result = PyObject_CallObject(call->function, call->arguments);
    in_call = false;
    const weir_status status = result ? WEIR_OK : note_exception(call);
    Py_XDECREF(result);
    if (!call->kept) {
        unlink_call(call);
        wp_drop_later(&call->later); // what it has may end objects, which this thread must not
    }
    PyGILState_Release(state);
    return status;
}

static struct wp_call *new_call(struct wp_device *device, PyObject *function, PyObject *arguments,
                                struct wp_place place)
{
    if (!PyCallable_Check(function)) {
        PyErr_Format(PyExc_TypeError, "function is %R; it is something that can be called",
                     function);
        return NULL;
    }
    struct wp_call *call = calloc(1, sizeof *call);
    if (!call) {
        PyErr_NoMemory();
        return NULL;
    }
    Py_INCREF(function);
    Py_XINCREF(arguments);
    call->later.drop = drop_call;
    call->function = function;
    call->arguments = arguments;
    call->place = place;
    call->next = device->calls;
    call->link = &device->calls;
    if (call->next)
        call->next->link = &call->next;
    device->calls = call;
    return call;
}

static void end_call(struct wp_call *call)
{
    unlink_call(call);
    drop_call(&call->later);
}

void wp_calls_drop(struct wp_device *device)
{
    while (device->calls)
        end_call(device->calls);
}

static PyObject *queue_host_call(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    struct wp_queue *queue =
        usable(self, count, 1, PY_SSIZE_T_MAX, "host_call(function, *arguments)");
    PyObject *rest = queue ? PyTuple_New(count - 1) : NULL;
    for (Py_ssize_t i = 1; rest && i < count; i++) {
        Py_INCREF(arguments[i]);
        PyTuple_SetItem(rest, i - 1, arguments[i]);
    }
    if (!rest)
        return NULL;
    WP_HERE(place);
    struct wp_call *call = new_call(queue->child.device, arguments[0], rest, place);
    Py_DECREF(rest);
    if (!call)
        return NULL;
    if (queue->child.device->captures >
        0) { // perhaps this queue's: then it stays until the device closes
        call->kept = true;
        queue->child.device->submits_free = true;
    }
    weir_status status;
    wp_child_hold(&queue->child);
    WP_UNLOCKED(status =
                    weir_queue_host_call_at(queue->child.handle, run_call, call, WP_AT(place)));
    wp_child_let(&queue->child);
    if (status != WEIR_OK)
        end_call(call);
    return wp_none(status);
}

// Later.
static _Atomic(struct wp_later *) laters;

static int drop_pending(void *unused)
{
    (void)unused;
    wp_drop_now();
    return 0;
}

void wp_drop_later(struct wp_later *later)
{
    struct wp_later *next = atomic_load(&laters);
    do
        later->next = next;
    while (!atomic_compare_exchange_weak(&laters, &next, later));
    if (!next && !atomic_load(&wp_over))
        Py_AddPendingCall(drop_pending,
                          NULL); // where its list is full, the next object's creation does it
}

void wp_drop_now(void)
{
    struct wp_later *list = atomic_load(&laters) ? atomic_exchange(&laters, NULL) : NULL;
    while (list) {
        struct wp_later *next = list->next;
        list->drop(list);
        list = next;
    }
}

// Events.
PyObject *wp_event_new(struct weir_event value)
{
    struct event *event = PyObject_New(struct event, wp_event_type);
    if (event)
        event->event = value;
    return (PyObject *)event;
}

static PyObject *event_sync(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"timeout", NULL};
    PyObject *timeout = NULL;
    struct sync sync = {.event = &((struct event *)self)->event};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O:sync", names, &timeout))
        return NULL;
    return run_sync(&sync, timeout);
}

static PyObject *event_done(PyObject *self, void *unused)
{
    (void)unused;
    WP_HERE(place);
    const weir_status status = weir_event_query_at(((struct event *)self)->event, WP_AT(place));
    return status < 0 ? wp_raise(status) : PyBool_FromLong(status == WEIR_OK);
}

static PyObject *event_time(PyObject *self, void *unused)
{
    (void)unused;
    uint64_t time_ns;
    WP_HERE(place);
    const weir_status status =
        weir_event_time_ns_at(((struct event *)self)->event, &time_ns, WP_AT(place));
    return status == WEIR_OK ? PyLong_FromUnsignedLongLong(time_ns) : wp_raise(status);
}

static PyObject *event_fd(PyObject *self, PyObject *unused)
{
    (void)unused;
    int descriptor;
    WP_HERE(place);
    const weir_status status =
        weir_event_fd_at(((struct event *)self)->event, &descriptor, WP_AT(place));
    return status == WEIR_OK ? PyLong_FromLong(descriptor) : wp_raise(status);
}

// The end of an `await`: the sync, which cannot wait any more, at the line of the await.
static PyObject *finish_await(PyObject *state, PyObject *unused)
{
    (void)unused;
    PyObject *event;
    Py_ssize_t file;
    int line;
    if (!PyArg_ParseTuple(state, "Oni", &event, &file, &line))
        return NULL;
    return wp_none(weir_event_sync_at(((struct event *)event)->event, 0, (const char *)file, line));
}
static PyMethodDef finish_await_method = {"finish", finish_await, METH_NOARGS, NULL};

static PyObject *event_await(PyObject *self)
{
    WP_HERE(place);
    PyObject *descriptor = event_fd(self, NULL);
    PyObject *state =
        descriptor ? Py_BuildValue("(Oni)", self, (Py_ssize_t)place.file, place.line) : NULL;
    PyObject *finish = state ? PyCFunction_NewEx(&finish_await_method, state, NULL) : NULL;
    PyObject *coroutine = finish ? wp_helper("readable", "OO", descriptor, finish) : NULL;
    PyObject *iterator = coroutine ? PyObject_CallMethod(coroutine, "__await__", NULL) : NULL;
    Py_XDECREF(descriptor);
    Py_XDECREF(state);
    Py_XDECREF(finish);
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

// Types.
static PyMethodDef queue_methods[] = {
    WP_CHILD_METHODS,
    {"copy", WP_FAST(queue_copy),
     "copy($self, dst, src, /)\n--\n\nCopies a buffer, or a part of one, to another of the same "
     "shape, or of as many contiguous bytes. Rows of parts go as 2-D and 3-D copies. "
     "Asynchronous.\n\nRaises InvalidError for other shapes, types or overlapping ranges; the "
     "queue's first failure."},
    {"fill", WP_FAST(queue_fill),
     "fill($self, dst, value, /)\n--\n\nFills a buffer or a part with a number of its type, or a "
     "pattern of 1, 2, 4, 8 or 16 bytes. Asynchronous."},
    {"upload", WP_FAST(queue_upload),
     "upload($self, dst, array, /)\n--\n\nCopies a contiguous array of as many bytes to a buffer "
     "or part, in the queue's order, and blocks until that is done."},
    {"download", WP_FAST(queue_download),
     "download($self, array, src, /)\n--\n\nCopies a buffer or part to a contiguous array of as "
     "many bytes, in the queue's order, and blocks until that is done."},
    {"record", queue_record, METH_NOARGS,
     "record($self)\n--\n\nAn event that is complete when everything submitted before has "
     "finished."},
    {"wait", queue_wait, METH_O,
     "wait($self, event, /)\n--\n\nLater work of this queue waits for the event, or for all work "
     "so far of another queue, on the device. The host does not wait."},
    {"sync", WP_KEYED(queue_sync),
     "sync($self, timeout=None)\n--\n\nWaits on the host for everything submitted so far; timeout "
     "in seconds, 0 polls.\n\nRaises Timeout; the queue's first failure."},
    {"flush", queue_flush, METH_NOARGS, "flush($self)\n--\n\nHands submitted work to the device."},
    {"recover", queue_recover, METH_NOARGS,
     "recover($self)\n--\n\nWaits for the rest of a failed queue's work and clears its failure."},
    {"host_call", WP_FAST(queue_host_call),
     "host_call($self, function, /, *arguments)\n--\n\nRuns the function on a thread of Weir's "
     "after all earlier work of the queue; later work waits until it has returned. It may submit "
     "work, but not wait. What it raises fails the queue with HostCallError, whose __cause__ it "
     "is."},
    {"capture", WP_KEYED(wp_queue_capture),
     "capture($self, label=None)\n--\n\nCaptures what is submitted to the queue, and to queues "
     "that wait for it, as a graph:\n\n    with queue.capture() as capture:\n        queue.copy(a, "
     "b)\n    capture.graph.launch(queue)"},
    {"__cuda_stream__", queue_cuda_stream, METH_NOARGS, "(0, handle) of the queue's CUDA stream."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef queue_getters[] = {
    {"native", queue_native, NULL,
     "The CUstream or cl_command_queue as an int, for torch.cuda.ExternalStream and others.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef queue_members[] = {WP_CHILD_MEMBERS, {NULL, 0, 0, 0, NULL}};
static PyType_Slot queue_slots[] = {
    WP_SLOT(Py_tp_dealloc, wp_child_dealloc),
    WP_SLOT(Py_tp_repr, wp_child_repr),
    {Py_tp_methods, queue_methods},
    {Py_tp_getset, queue_getters},
    {Py_tp_members, queue_members},
    {Py_tp_doc, "An in-order stream of work; queues overlap. Made by device.queue()."},
    {0, NULL},
};
PyType_Spec wp_queue_spec = {"weir.Queue", sizeof(struct wp_queue), 0, WP_TYPE_FLAGS, queue_slots};

static PyMethodDef event_methods[] = {
    {"sync", WP_KEYED(event_sync),
     "sync($self, timeout=None)\n--\n\nWaits on the host until the event is complete; timeout in "
     "seconds, 0 polls.\n\nRaises Timeout; the first failure that the event depends on."},
    {"fd", event_fd, METH_NOARGS,
     "fd($self)\n--\n\nA new eventfd that becomes readable when the event is complete; the caller "
     "closes it."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef event_getters[] = {
    {"done", event_done, NULL,
     "Whether everything before the event has finished. Raises its failure.", NULL},
    {"time_ns", event_time, NULL,
     "When the device reached the event, in nanoseconds on a timeline of the device; of queues "
     "with timing=True.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot event_slots[] = {
    WP_SLOT(Py_tp_dealloc, wp_free),
    WP_SLOT(Py_tp_repr, event_repr),
    WP_SLOT(Py_am_await, event_await),
    {Py_tp_methods, event_methods},
    {Py_tp_getset, event_getters},
    {Py_tp_doc,
     "A point in the order of a queue. Made by queue.record(); `await event` waits in asyncio."},
    {0, NULL},
};
PyType_Spec wp_event_spec = {"weir.Event", sizeof(struct event), 0, WP_TYPE_FLAGS, event_slots};
