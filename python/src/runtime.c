// Runtimes and devices, and what all objects of a device have in common: which object owns
// which, and when the native object ends. A program may drop its objects in any order, or close a device while
// arrays still show the memory of its buffers: each native object is destroyed when the last thing
// that needs it has gone.
#include "weir_py.h"

#include <string.h>

#include <weir/check.h>

PyTypeObject *wp_runtime_type, *wp_device_type;
static PyTypeObject *info_type, *limits_type;
static struct wp_device *devices; // all that are open

void wp_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

bool wp_label(PyObject *object, const char **out_text)
{
    *out_text = NULL;
    if (!object || object == Py_None)
        return true;
    if (!PyUnicode_Check(object)) {
        wp_refuse("label is %R; it is a str", object);
        return false;
    }
    *out_text = PyUnicode_AsUTF8AndSize(object, NULL);
    return *out_text;
}

// Objects of a device.
struct wp_child *wp_child_new(PyTypeObject *type, const struct wp_kind *kind,
                              struct wp_device *device, void *handle, PyObject *label)
{
    wp_drop_now();
    struct wp_child *child = (struct wp_child *)PyType_GenericAlloc(type, 0);
    if (!child) {
        struct wp_child doomed = {.handle = handle};
        kind->destroy(&doomed, wp_here());
        return NULL;
    }
    child->kind = kind;
    child->handle = handle;
    child->label = label && label != Py_None ? label : NULL;
    Py_XINCREF(child->label);
    Py_INCREF(device);
    child->device = device;
    child->next = device->children;
    child->link = &device->children;
    if (child->next)
        child->next->link = &child->next;
    device->children = child;
    return child;
}

// Destroys the handle if nothing uses it any more.
static void settle(struct wp_child *child, struct wp_place place)
{
    if (!child->closed || child->users || !child->link)
        return;
    if (child->next)
        child->next->link = child->link;
    *child->link = child->next;
    child->link = NULL;
    child->kind->destroy(child, place);
    child->handle = NULL;
    wp_device_settle(child->device);
}

void wp_child_close(struct wp_child *child, struct wp_place place)
{
    child->closed = true;
    settle(child, place);
}

void wp_child_hold(struct wp_child *child)
{
    Py_INCREF(child);
    child->users++;
}

void wp_child_let(struct wp_child *child)
{
    child->users--;
    settle(child, (struct wp_place){NULL, 0});
    Py_DECREF(child);
}

void wp_child_dealloc(PyObject *self)
{
    struct wp_child *child = (struct wp_child *)self;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (child->device)
        wp_child_close(child, wp_here());
    Py_XDECREF(child->device);
    Py_XDECREF(child->label);
    PyErr_Restore(type, value, traceback);
    wp_free(self);
}

PyObject *wp_child_close_method(PyObject *self, PyObject *unused)
{
    (void)unused;
    wp_child_close((struct wp_child *)self, wp_here());
    Py_RETURN_NONE;
}

PyObject *wp_child_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (!wp_child_usable((struct wp_child *)self))
        return NULL;
    Py_INCREF(self);
    return self;
}

PyObject *wp_child_exit(PyObject *self, PyObject *arguments)
{
    return wp_child_close_method(self, arguments);
}

bool wp_child_usable(struct wp_child *child)
{
    if (!child->closed)
        return true;
    wp_refuse("the %s %R is closed", child->kind->name, child->label ? child->label : Py_None);
    return false;
}

void *wp_child_of(PyObject *object, PyTypeObject *type, const char *argument)
{
    if (Py_TYPE(object) != type) {
        PyObject *name = PyObject_GetAttrString((PyObject *)type, "__name__");
        PyErr_Format(PyExc_TypeError, "%s is %R; it is a weir.%S", argument, object,
                     name ? name : Py_None);
        Py_XDECREF(name);
        return NULL;
    }
    return wp_child_usable((struct wp_child *)object) ? object : NULL;
}

PyObject *wp_child_repr(PyObject *self)
{
    const struct wp_child *child = (struct wp_child *)self;
    return PyUnicode_FromFormat("<weir %s %R%s>", child->kind->name,
                                child->label ? child->label : Py_None,
                                child->closed ? ", closed" : "");
}

// Runtimes.
PyObject *wp_open(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    (void)module;
    static char *names[] = {"config", "text", "backend", "plugins", "module_path", NULL};
    struct weir_open_params params = {.struct_size = sizeof params};
    PyObject *config = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O$zzzz:open", names, &config,
                                     &params.config_text, &params.backend, &params.plugins,
                                     &params.module_path))
        return NULL;
    PyObject *path = NULL;
    if (config != Py_None && !PyUnicode_FSConverter(config, &path))
        return NULL;
    params.config_path = path ? PyBytes_AsString(path) : NULL;
    weir_runtime *handle = NULL;
    weir_status status;
    WP_HERE(place);
    WP_UNLOCKED(status = weir_open_at(&params, &handle, WP_AT(place)));
    Py_XDECREF(path);
    if (status != WEIR_OK)
        return wp_raise(status);
    struct wp_runtime *runtime = (struct wp_runtime *)PyType_GenericAlloc(wp_runtime_type, 0);
    if (runtime) {
        runtime->handle = handle;
        wp_findings_watch(runtime);
    } else {
        WEIR_IGNORE(weir_close_at(&handle, WP_AT(place)));
    }
    return (PyObject *)runtime;
}

static bool runtime_usable(const struct wp_runtime *runtime)
{
    if (runtime->handle && !runtime->closed)
        return true;
    wp_refuse("the runtime is closed");
    return false;
}

static weir_status settle_runtime(struct wp_runtime *runtime)
{
    weir_runtime *handle = runtime->handle;
    weir_status status = WEIR_OK;
    if (!runtime->closed || runtime->devices > 0 || !handle)
        return status;
    wp_findings_end(runtime);
    runtime->handle = NULL;
    WP_HERE(place);
    WP_UNLOCKED(status = weir_close_at(&handle, WP_AT(place)));
    return status;
}

static PyObject *device_close(PyObject *self, PyObject *unused);

static PyObject *runtime_close(PyObject *self, PyObject *unused)
{
    struct wp_runtime *runtime = (struct wp_runtime *)self;
    for (struct wp_device *device = devices; device;) {
        if (device->runtime != runtime || device->closed) {
            device = device->next;
            continue;
        }
        PyObject *result = device_close((PyObject *)device, unused);
        if (!result)
            return NULL;
        Py_DECREF(result);
        device = devices; // the list may have changed meanwhile
    }
    runtime->closed = true;
    return wp_none(settle_runtime(runtime));
}

static PyObject *runtime_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (!runtime_usable((struct wp_runtime *)self))
        return NULL;
    Py_INCREF(self);
    return self;
}

static PyObject *runtime_device(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"select", "label", "default_timing", NULL};
    struct wp_runtime *runtime = (struct wp_runtime *)self;
    struct weir_device_params params = {.struct_size = sizeof params};
    PyObject *select = Py_None;
    int timing = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O$zp:device", names, &select,
                                     &params.label, &timing) ||
        !runtime_usable(runtime))
        return NULL;
    params.default_timing = timing;
    PyObject *text = select == Py_None ? NULL : PyObject_Str(select);
    if (select != Py_None && (!text || !(params.select = PyUnicode_AsUTF8AndSize(text, NULL)))) {
        Py_XDECREF(text);
        return NULL;
    }
    struct wp_device *device = (struct wp_device *)PyType_GenericAlloc(wp_device_type, 0);
    weir_status status = WEIR_ERROR_OUT_OF_MEMORY;
    if (device) {
        Py_INCREF(runtime);
        device->runtime = runtime;
        runtime->devices++; // keeps it open meanwhile
        WP_HERE(place);
        WP_UNLOCKED(
            status = weir_device_open_at(runtime->handle, &params, &device->handle, WP_AT(place)));
        if (status != WEIR_OK)
            runtime->devices--;
    }
    Py_XDECREF(text);
    if (status != WEIR_OK) {
        Py_XDECREF(device);
        return device ? wp_raise(status) : NULL;
    }
    device->next = devices;
    device->link = &devices;
    if (device->next)
        device->next->link = &device->next;
    devices = device;
    return (PyObject *)device;
}

static PyObject *info(const struct weir_device_info *described)
{
    PyObject *made = PyStructSequence_New(info_type);
    if (!made)
        return NULL;
    PyStructSequence_SetItem(made, 0, wp_text(described->name));
    PyStructSequence_SetItem(made, 1, wp_text(described->platform));
    PyStructSequence_SetItem(made, 2, wp_text(described->driver));
    PyStructSequence_SetItem(made, 3, PyLong_FromUnsignedLongLong(described->memory_bytes));
    return made;
}

static PyObject *runtime_devices(PyObject *self, void *unused)
{
    (void)unused;
    const struct wp_runtime *runtime = (struct wp_runtime *)self;
    PyObject *list = runtime_usable(runtime) ? PyList_New(0) : NULL;
    const size_t count = list ? weir_device_count(runtime->handle) : 0;
    for (size_t i = 0; i < count; i++) {
        struct weir_device_info described;
        const weir_status status = weir_device_describe(runtime->handle, i, &described);
        PyObject *item = status == WEIR_OK ? info(&described) : wp_raise(status);
        if (!item || PyList_Append(list, item) != 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
        if (!list)
            return NULL;
    }
    return list;
}

static PyObject *runtime_backend(PyObject *self, void *unused)
{
    (void)unused;
    const struct wp_runtime *runtime = (struct wp_runtime *)self;
    return runtime_usable(runtime) ? wp_text(weir_runtime_backend(runtime->handle)) : NULL;
}

static PyObject *runtime_report(PyObject *self, void *unused)
{
    (void)unused;
    const struct wp_runtime *runtime = (struct wp_runtime *)self;
    return runtime_usable(runtime)
               ? wp_text(weir_load_report_text(weir_runtime_report(runtime->handle)))
               : NULL;
}

static PyObject *use(const struct weir_check_use *use)
{
    return Py_BuildValue("{s:s,s:s,s:s,s:s,s:i}", "operation", use->operation, "queue", use->queue,
                         "kernel", use->kernel, "file", use->file, "line", use->line);
}

PyObject *wp_runtime_findings(const struct wp_runtime *runtime)
{
    PyObject *list = PyList_New(0);
    const size_t count = list ? weir_check_count(runtime->handle) : 0;
    for (size_t i = 0; list && i < count; i++) {
        struct weir_check_finding finding;
        if (weir_check_get(runtime->handle, i, &finding) != WEIR_OK)
            break;
        PyObject *item =
            Py_BuildValue("{s:s,s:K,s:s,s:n,s:n,s:O,s:O&,s:O&,s:z,s:N,s:N}", "kind",
                          weir_check_kind_name(finding.kind), "count",
                          (unsigned long long)finding.count, "buffer", finding.buffer, "offset",
                          (Py_ssize_t)finding.offset, "size", (Py_ssize_t)finding.size, "hint",
                          finding.kind >= WEIR_CHECK_FIRST_HINT ? Py_True : Py_False, "message",
                          wp_python_text, finding.message, "remedy", wp_python_text, finding.remedy,
                          "suppression", finding.suppression, "first", use(&finding.first),
                          "second", use(&finding.second));
        if (!item || PyList_Append(list, item) != 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *runtime_findings(PyObject *self, void *unused)
{
    (void)unused;
    const struct wp_runtime *runtime = (struct wp_runtime *)self;
    return runtime_usable(runtime) ? wp_runtime_findings(runtime) : NULL;
}

static PyObject *runtime_repr(PyObject *self)
{
    const struct wp_runtime *runtime = (struct wp_runtime *)self;
    if (!runtime->handle || runtime->closed)
        return PyUnicode_FromString("<weir runtime, closed>");
    return PyUnicode_FromFormat("<weir runtime on %s, %u open devices>",
                                weir_runtime_backend(runtime->handle), runtime->devices);
}

static void runtime_dealloc(PyObject *self)
{
    struct wp_runtime *runtime = (struct wp_runtime *)self;
    runtime->closed = true;
    WEIR_IGNORE(settle_runtime(runtime));
    wp_free(self);
}

static PyMethodDef runtime_methods[] = {
    {"device", WP_KEYED(runtime_device),
     "device($self, select=None, *, label=None, default_timing=False)\n--\n\nOpens a "
     "device.\n\nselect is its index, or part of its name; None takes the configuration's, else "
     "the first. default_timing gives times to events of the device's default queues.\n\nRaises "
     "NoDeviceError with the list of devices; DeviceError with the driver's error."},
    {"close", runtime_close, METH_NOARGS,
     "close($self)\n--\n\nWaits for all work, and closes the runtime's devices and the runtime. A "
     "device with arrays that show its memory is closed when these have gone, and the runtime "
     "after it."},
    {"__enter__", runtime_enter, METH_NOARGS, NULL},
    {"__exit__", runtime_close, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef runtime_getters[] = {
    {"devices", runtime_devices, NULL,
     "The devices of the backend, open or not: a list of DeviceInfo.", NULL},
    {"findings", runtime_findings, NULL,
     "What the plugin `check` found so far: a list of dicts with kind, message, remedy, hint, "
     "first and second (file, line, operation, queue).",
     NULL},
    {"backend", runtime_backend, NULL, "The name of the backend (\"opencl\").", NULL},
    {"report", runtime_report, NULL, "Which modules were tried, and why some are not used: text.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef runtime_members[] = {
    {"closed", T_BOOL, offsetof(struct wp_runtime, closed), READONLY, "Whether it was closed."},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot runtime_slots[] = {
    WP_SLOT(Py_tp_dealloc, runtime_dealloc),
    WP_SLOT(Py_tp_repr, runtime_repr),
    {Py_tp_methods, runtime_methods},
    {Py_tp_getset, runtime_getters},
    {Py_tp_members, runtime_members},
    {Py_tp_doc, "A configuration and the chain of modules that it names. Made by weir.open()."},
    {0, NULL},
};
PyType_Spec wp_runtime_spec = {"weir.Runtime", sizeof(struct wp_runtime), 0, WP_TYPE_FLAGS,
                               runtime_slots};

// Devices.
bool wp_device_usable(struct wp_device *device)
{
    if (!device->closed)
        return true;
    wp_refuse("the device is closed");
    return false;
}

// Closes the native device if that is possible.
static weir_status settle_device(struct wp_device *device)
{
    weir_device *handle = device->handle;
    if (!device->closed || device->children || device->users || !handle)
        return WEIR_OK;
    weir_status status;
    Py_INCREF(device);
    device->handle = NULL;
    WP_HERE(place);
    WP_UNLOCKED(status = weir_device_close_at(&handle, WP_AT(place)));
    if (device->next)
        device->next->link = device->link;
    *device->link = device->next;
    wp_calls_drop(device);
    if (!devices)
        wp_calls_forget();
    device->runtime->devices -= status == WEIR_OK;
    const weir_status closed = settle_runtime(device->runtime);
    Py_DECREF(device);
    return status != WEIR_OK ? status : closed;
}

void wp_device_settle(struct wp_device *device)
{
    const weir_status status = settle_device(device);
    if (status != WEIR_OK) {
        wp_raise(status);
        PyErr_WriteUnraisable((PyObject *)device);
    }
}

static PyObject *device_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct wp_device *device = (struct wp_device *)self;
    if (device->closed)
        Py_RETURN_NONE;
    if (!wp_device_wait(device)) // signals interrupt it, and not the native close
        return NULL;
    device->closed = true;
    device->users++; // so that the children's ends do not close it
    WP_HERE(place);
    for (struct wp_child *child = device->children, *next; child; child = next) {
        next = child->next;
        wp_child_close(child, place);
    }
    device->users--;
    if (device->children &&
        PyErr_ResourceWarning(self, 1, "the device stays open until arrays of %s %R have gone",
                              device->children->kind->name,
                              device->children->label ? device->children->label : Py_None) != 0)
        return NULL;
    return wp_none(settle_device(device));
}

static PyObject *device_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (!wp_device_usable((struct wp_device *)self))
        return NULL;
    Py_INCREF(self);
    return self;
}

static PyObject *extent(struct weir_extent value)
{
    return Py_BuildValue("(III)", value.x, value.y, value.z);
}

// The fields of struct weir_limits: name, how it becomes an object, meaning.
#define U(value) PyLong_FromUnsignedLongLong(value)
#define B(value) PyBool_FromLong((value) != 0)
#define I(value) PyLong_FromLong(value)
#define E(value) extent(value)
#define LIMITS(X)                                                                       \
    X(memory_bytes, U, "bytes of the device")                                           \
    X(max_buffer_bytes, U, "bytes of the largest buffer")                               \
    X(argument_alignment_bytes, U, "offsets of launch arguments that are always valid") \
    X(unified_memory, B, "device and host share one memory")                            \
    X(host_in_kernels, B, "\"host\" buffers may be launch arguments")                   \
    X(max_block_items, U, "work-items in a block")                                      \
    X(max_block, E, "work-items in a block, per dimension")                             \
    X(max_grid, E, "blocks, per dimension")                                             \
    X(max_local_bytes, U, "bytes of local memory of a block")                           \
    X(compute_units, U, "compute units")                                                \
    X(concurrent_kernels, U, "kernels that may run at once")                            \
    X(copy_engines_to_device, U, "copies to the device that may run at once")           \
    X(copy_engines_to_host, U, "copies to the host that may run at once")               \
    X(priority_lowest, I, "a queue's lowest priority")                                  \
    X(priority_highest, I, "a queue's highest priority")                                \
    X(timing_resolution_ns, U, "nanoseconds")                                           \
    X(timing_history, U, "timed records of a queue that are kept; 0: no times")         \
    X(native, B, "native handles, streams and DLPack of device memory work")            \
    X(cuda_source, B, "programs are compiled from CUDA C++")                            \
    X(printf_to_log, B, "what kernels print goes to the log")                           \
    X(managed_memory, B, "\"managed\" buffers work")                                    \
    X(byte_offsets, B, "offsets of arguments need only the parameter's alignment")      \
    X(device_addresses, B, "kernels may use addresses")                                 \
    X(max_constant_bytes, U, "bytes of a __constant argument")                          \
    X(collectives, U, "1: collectives by the host, 2: by the device, 0: none")
#define FIELD(name, kind, text) {#name, text},
static PyStructSequence_Field limits_fields[] = {LIMITS(FIELD){NULL, NULL}};
#undef FIELD
static PyStructSequence_Desc limits_description = {
    "weir.Limits", "What a device can do; 0 or False: not supported.", limits_fields,
    sizeof limits_fields / sizeof limits_fields[0] - 1};
static PyStructSequence_Field info_fields[] = {
    {"name", "the device's name"},
    {"platform", "the driver's platform"},
    {"driver", "the driver's version in its own words"},
    {"memory_bytes", "bytes of the device"},
    {NULL, NULL},
};
static PyStructSequence_Desc info_description = {"weir.DeviceInfo",
                                                 "A device, which need not be open.", info_fields,
                                                 4};

bool wp_runtime_types(PyObject *module)
{
    info_type = PyStructSequence_NewType(&info_description);
    limits_type = PyStructSequence_NewType(&limits_description);
    return info_type && limits_type && PyModule_AddType(module, info_type) == 0 &&
           PyModule_AddType(module, limits_type) == 0;
}

static PyObject *device_limits(PyObject *self, void *unused)
{
    (void)unused;
    struct wp_device *device = (struct wp_device *)self;
    PyObject *made = wp_device_usable(device) ? PyStructSequence_New(limits_type) : NULL;
    if (!made)
        return NULL;
    const struct weir_limits *limits = weir_device_limits(device->handle);
    Py_ssize_t at = 0;
#define SET(name, kind, text) PyStructSequence_SetItem(made, at++, kind(limits->name));
    LIMITS(SET)
#undef SET
    if (PyErr_Occurred())
        Py_CLEAR(made);
    return made;
}
#undef U
#undef B
#undef I
#undef E

static PyObject *device_info(PyObject *self, void *unused)
{
    (void)unused;
    struct wp_device *device = (struct wp_device *)self;
    return wp_device_usable(device) ? info(weir_device_get_info(device->handle)) : NULL;
}

static PyObject *device_trim(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct wp_device *device = (struct wp_device *)self;
    if (!wp_device_usable(device))
        return NULL;
    weir_status status;
    device->users++;
    WP_UNLOCKED(status = weir_device_trim(device->handle));
    device->users--;
    wp_device_settle(device);
    return wp_none(status);
}

static PyObject *device_repr(PyObject *self)
{
    const struct wp_device *device = (struct wp_device *)self;
    if (device->closed)
        return PyUnicode_FromString("<weir device, closed>");
    const struct weir_device_info *described = weir_device_get_info(device->handle);
    return PyUnicode_FromFormat("<weir device '%s' of %s>", described->name, described->platform);
}

static void device_dealloc(PyObject *self)
{
    struct wp_device *device = (struct wp_device *)self;
    device->closed = true;
    Py_INCREF(self); // settle_device() takes and drops a reference
    WEIR_IGNORE(settle_device(device));
    Py_XDECREF(device->runtime);
    wp_free(self);
}

static PyMethodDef device_methods[] = {
    {"queue", WP_KEYED(wp_device_queue),
     "queue($self, label=None, *, priority=0, timing=False)\n--\n\nA queue. priority is between "
     "limits.priority_lowest and limits.priority_highest; timing gives times to its events."},
    {"wrap_queue", WP_KEYED(wp_device_wrap_queue),
     "wrap_queue($self, stream, *, label=None, timing=False)\n--\n\nA queue of a stream that "
     "exists: a CUDA stream or command queue by its handle, or an object with __cuda_stream__, "
     "cuda_stream (torch) or ptr (CuPy). It must outlive the queue's work."},
    {"buffer", WP_KEYED(wp_device_buffer),
     "buffer($self, shape, dtype='uint8', placement='device', *, label=None)\n--\n\nA buffer, "
     "contents undefined. shape is a number of elements, bytes by default, or a tuple; placement "
     "'device', 'host' (pinned) or 'managed'.\n\nRaises InvalidError with the limit; "
     "OutOfMemoryError."},
    {"wrap", WP_KEYED(wp_device_wrap),
     "wrap($self, array, *, label=None)\n--\n\nA 'host' buffer of the memory of a contiguous array "
     "that can be written, without a copy. The array lives until no work uses the buffer."},
    {"from_dlpack", WP_KEYED(wp_device_from_dlpack),
     "from_dlpack($self, tensor, *, queue=None, label=None)\n--\n\nA buffer of a tensor's memory "
     "(torch, cupy, jax, numpy), without a copy. queue, for tensors in device memory, waits for "
     "the work that writes the tensor."},
    {"pool", WP_KEYED(wp_device_pool),
     "pool($self, limit_bytes=0, placement='device', *, label=None)\n--\n\nA pool of buffers; "
     "limit_bytes 0: the device's."},
    {"program", WP_KEYED(wp_device_program),
     "program($self, source=None, *, file=None, bundle=None, options=None, cuda_source=None, "
     "cuda_options=None, exact=False, fast=False, label=None)\n--\n\nDevice code: OpenCL C as text "
     "or of a file, CUDA C++ beside it, or a bundle, 'FILE.so:SYMBOL', of `weir kernels "
     "build`.\n\nRaises BuildError with the compiler's log."},
    {"sync", WP_KEYED(wp_device_sync),
     "sync($self, timeout=None)\n--\n\nWaits on the host for everything submitted so far to the "
     "device's queues; timeout in seconds.\n\nRaises Timeout; the first failure."},
    {"trim", device_trim, METH_NOARGS,
     "trim($self)\n--\n\nReturns cached memory to the driver. May wait for the whole device."},
    {"close", device_close, METH_NOARGS,
     "close($self)\n--\n\nWaits for all work, destroys the device's objects and closes it. Where "
     "an array still shows the memory of a buffer, the native device is closed when that has "
     "gone."},
    {"__enter__", device_enter, METH_NOARGS, NULL},
    {"__exit__", device_close, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef device_getters[] = {
    {"limits", device_limits, NULL, "What the device can do: a weir.Limits.", NULL},
    {"info", device_info, NULL, "Its name, platform, driver and memory: a weir.DeviceInfo.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef device_members[] = {
    {"runtime", T_OBJECT, offsetof(struct wp_device, runtime), READONLY, "The device's runtime."},
    {"closed", T_BOOL, offsetof(struct wp_device, closed), READONLY, "Whether it was closed."},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot device_slots[] = {
    WP_SLOT(Py_tp_dealloc, device_dealloc),
    WP_SLOT(Py_tp_repr, device_repr),
    {Py_tp_methods, device_methods},
    {Py_tp_getset, device_getters},
    {Py_tp_members, device_members},
    {Py_tp_doc, "An opened device. Made by runtime.device()."},
    {0, NULL},
};
PyType_Spec wp_device_spec = {"weir.Device", sizeof(struct wp_device), 0, WP_TYPE_FLAGS,
                              device_slots};

atomic_bool wp_over;

static struct wp_device *first_open(void)
{
    struct wp_device *device = devices;
    while (device && device->closed)
        device = device->next;
    return device;
}

void wp_close_all(void)
{
    wp_drop_now();
    for (struct wp_device *device; (device = first_open());) {
        Py_INCREF(device);
        PyObject *result = device_close((PyObject *)device, NULL);
        // A tensor of others' that lives on keeps its device.
        if (!result && !wp_raised("ForkedError") && !wp_raised("InvalidError"))
            PyErr_WriteUnraisable((PyObject *)device);
        PyErr_Clear();
        Py_XDECREF(result);
        device->closed = true; // also where a signal came first
        Py_DECREF(device);
    }
    wp_drop_now();
    atomic_store(&wp_over, true);
}
