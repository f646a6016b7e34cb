// Runtimes and devices, and what all objects have in common: which object owns which, and when the
// native object ends. A program may drop its objects in any order, or close a device while arrays
// still show the memory of its buffers.
#include "weir_py.h"

#include <string.h>

#include <weir/check.h>

static struct wp_object *runtimes; // whose handles are not destroyed yet
uint32_t wp_submits;
static bool postponed; // an object was closed meanwhile

struct runtime {
    struct wp_object object;
    size_t told; // findings that were taken
};

// Objects.
void wp_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

void *wp_made(weir_status status, struct wp_kind *kind, struct wp_object *owner, void *handle,
              const char *label)
{
    if (status != WEIR_OK)
        return wp_raise(status);
    wp_drop_now();
    PyObject *text = label ? wp_text(label) : NULL;
    struct wp_object *object = (struct wp_object *)PyType_GenericAlloc(kind->type, 0);
    if (!object) {
        struct wp_object doomed = {.handle = handle};
        WEIR_IGNORE(kind->destroy(&doomed, wp_here()));
        Py_XDECREF(text);
        return NULL;
    }
    struct wp_object **list = owner ? &owner->children : &runtimes;
    const PyObject head = object->ob_base;
    *object = (struct wp_object){.ob_base = head,
                                 .kind = kind,
                                 .handle = handle,
                                 .label = text,
                                 .owner = owner,
                                 .next = *list,
                                 .link = list};
    Py_XINCREF(owner);
    if (object->next)
        object->next->link = &object->next;
    *list = object;
    return object;
}

// Destroys the handle of an object that is closed and that nothing needs any more, and then its
// owner's in the same way. The first failure.
static weir_status settle(struct wp_object *object, struct wp_place place)
{
    if (!object->closed || object->users || object->children || !object->link)
        return WEIR_OK;
    object->users++; // it is not destroyed a second time meanwhile
    const weir_status status = object->handle ? object->kind->destroy(object, place) : WEIR_OK;
    object->handle = NULL;
    if (object->next)
        object->next->link = object->link;
    *object->link = object->next;
    object->link = NULL;
    const weir_status next = object->owner ? settle(object->owner, place) : WEIR_OK;
    return status != WEIR_OK ? status : next;
}

// Closes it; it is destroyed now, unless something needs it.
static void end(struct wp_object *object, struct wp_place place)
{
    object->closed = true;
    const weir_status status = settle(object, place);
    if (status != WEIR_OK && status != WEIR_ERROR_FORKED) {
        wp_raise(status);
        PyErr_WriteUnraisable(NULL);
    }
}

// A submit of another thread may use the object: it is destroyed after that.
void wp_close(struct wp_object *object, struct wp_place place)
{
    object->closed = true;
    if (wp_submits > 0)
        postponed = true;
    else
        end(object, place);
}

// Destroys one object of the list, or of theirs, that only waits for submits. Destroying may run
// Python, which changes the lists.
static bool end_one(struct wp_object *list)
{
    for (struct wp_object *object = list; object; object = object->next) {
        if (end_one(object->children))
            return true;
        if (object->closed && !object->users && !object->children) {
            Py_INCREF(object);
            end(object, (struct wp_place){NULL, 0});
            Py_DECREF(object);
            return true;
        }
    }
    return false;
}

void wp_end_postponed(void)
{
    while (wp_submits == 0 && postponed)
        postponed = end_one(runtimes);
}

void wp_hold(struct wp_object *object)
{
    Py_INCREF(object);
    object->users++;
}

void wp_let(struct wp_object *object)
{
    object->users--;
    if (object->closed)
        wp_close(object, (struct wp_place){NULL, 0});
    Py_DECREF(object);
}

void wp_dealloc(PyObject *self)
{
    struct wp_object *object = (struct wp_object *)self;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    end(object, wp_here()); // no submit uses what nothing refers to
    Py_XDECREF(object->owner);
    Py_XDECREF(object->label);
    PyErr_Restore(type, value, traceback);
    wp_free(self);
}

bool wp_usable(const struct wp_object *object)
{
    if (!object->closed)
        return true;
    wp_refuse(object->label ? "the %s %R is closed" : "the %s is closed", object->kind->noun,
              object->label);
    return false;
}

void *wp_of(PyObject *object, const struct wp_kind *kind, const char *argument)
{
    if (Py_TYPE(object) != kind->type)
        return PyErr_Format(PyExc_TypeError, "%s is %R; it is a %s", argument, object,
                            kind->spec.name);
    return !kind->destroy || wp_usable((struct wp_object *)object) ? object : NULL;
}

WP_GET_OF(_Child_label, wp_object, Py_BuildValue("O", self->label ? self->label : Py_None))
WP_GET_OF(_Child_device, wp_object, Py_BuildValue("O", self->owner))
WP_GET_OF(Device_runtime, wp_object, Py_BuildValue("O", self->owner))
WP_GET_OF(_Block_closed, wp_object, self->closed)

PyObject *block_close(PyObject *self, PyObject *Py_UNUSED(unused))
{
    wp_close((struct wp_object *)self, wp_here());
    Py_RETURN_NONE;
}

PyObject *block_enter(PyObject *self, PyObject *Py_UNUSED(unused))
{
    if (!wp_usable((struct wp_object *)self))
        return NULL;
    Py_INCREF(self);
    return self;
}

PyObject *block_exit(PyObject *self, PyObject *Py_UNUSED(arguments))
{
    return PyObject_CallMethod(self, "close", NULL);
}

static PyObject *block_repr(PyObject *self)
{
    const struct wp_object *object = (struct wp_object *)self;
    const char *closed = object->closed ? ", closed" : "";
    return object->label
               ? PyUnicode_FromFormat("<weir %s %R%s>", object->kind->noun, object->label, closed)
               : PyUnicode_FromFormat("<weir %s%s>", object->kind->noun, closed);
}

WP_TYPE(block, _Block, struct wp_object, NULL, WP_FLAGS | Py_TPFLAGS_BASETYPE,
        WP_SLOT(Py_tp_dealloc, wp_dealloc), WP_SLOT(Py_tp_repr, block_repr));

// Runtimes.
FUNCTION_open
{
    struct open a = DEFAULTS_open;
    PyObject *path = NULL;
    weir_runtime *handle = NULL;
    weir_status status;
    if (!READ_open(&a) || (a.config != Py_None && !PyUnicode_FSConverter(a.config, &path)))
        return NULL;
    WP_HERE(place);
    WP_UNLOCKED(status = weir_open_at(WP_PARAMS(weir_open_params,
                                                .config_path = path ? PyBytes_AsString(path) : NULL,
                                                .config_text = a.text, .backend = a.backend,
                                                .plugins = a.plugins, .module_path = a.module_path),
                                      &handle, WP_AT(place)));
    Py_XDECREF(path);
    return wp_made(status, &wp_runtime_kind, NULL, handle, NULL);
}

// The first of the owner's objects, or of the runtimes, that the program has not closed; a reference.
static struct wp_object *open_child(struct wp_object *list)
{
    while (list && list->closed)
        list = list->next;
    Py_XINCREF(list);
    return list;
}

PyObject *runtime_close(PyObject *self, PyObject *unused)
{
    struct wp_object *runtime = (struct wp_object *)self;
    for (struct wp_object *device; (device = open_child(runtime->children));) {
        PyObject *result = device_close((PyObject *)device, unused);
        Py_DECREF(device);
        if (!result)
            return NULL;
        Py_DECREF(result);
    }
    runtime->closed = true;
    return wp_none(settle(runtime, wp_here()));
}

static PyObject *use(const struct weir_check_use *use)
{
    return Py_BuildValue("{s:s,s:s,s:s,s:s,s:i}", "operation", use->operation, "queue", use->queue,
                         "kernel", use->kernel, "file", use->file, "line", use->line);
}

// What the plugin check has found in a runtime, from that number on: a list of dicts.
static PyObject *findings_from(const struct wp_object *runtime, size_t first)
{
    PyObject *list = PyList_New(0);
    struct weir_check_finding finding;
    for (size_t i = first; list && i < weir_check_count(runtime->handle); i++) {
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

// Gives weir._help what the runtime has found since the last time. False with an exception.
static bool give_findings(struct runtime *runtime)
{
    PyObject *list = findings_from(&runtime->object, runtime->told);
    runtime->told += list ? (size_t)PyList_Size(list) : 0;
    PyObject *done = list ? wp_helper("found", "N", list) : NULL;
    Py_XDECREF(done);
    return done;
}

FUNCTION_findings
{
    (void)self;
    for (struct wp_object *runtime = runtimes; runtime; runtime = runtime->next)
        if (runtime->handle && !give_findings((struct runtime *)runtime))
            return NULL;
    return wp_helper("take_found", "");
}

static weir_status destroy_runtime(struct wp_object *object, struct wp_place place)
{
    weir_runtime *handle = object->handle;
    weir_status status;
    if (object->link && !give_findings((struct runtime *)object))
        PyErr_WriteUnraisable(NULL);
    if (runtimes == object && !object->next)
        Py_XDECREF(wp_helper("show_untold", ""));
    object->handle = NULL; // weir.findings() of another thread passes it over
    WP_UNLOCKED(status = weir_close_at(&handle, WP_AT(place)));
    return status;
}

static PyObject *info(const struct weir_device_info *described)
{
    return wp_helper("DeviceInfo", "O&O&O&K", wp_text, described->name, wp_text,
                     described->platform, wp_text, described->driver, described->memory_bytes);
}

static PyObject *devices(const struct wp_object *runtime)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < weir_device_count(runtime->handle); i++) {
        struct weir_device_info described;
        const weir_status status = weir_device_describe(runtime->handle, i, &described);
        PyObject *item = status == WEIR_OK ? info(&described) : wp_raise(status);
        if (!item || PyList_Append(list, item) != 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

WP_GET(Runtime_devices, devices(self))
WP_GET(Runtime_findings, findings_from(self, 0))
WP_GET(Runtime_report, weir_load_report_text(weir_runtime_report(self->handle)))
WP_GET(Runtime_backend, weir_runtime_backend(self->handle))

static PyObject *runtime_repr(PyObject *self)
{
    const struct wp_object *runtime = (struct wp_object *)self;
    if (runtime->closed)
        return block_repr(self);
    unsigned count = 0;
    for (const struct wp_object *device = runtime->children; device; device = device->next)
        count++;
    return PyUnicode_FromFormat("<weir runtime on %s, %u open devices>",
                                weir_runtime_backend(runtime->handle), count);
}

FUNCTION_Runtime_device
{
    struct Runtime_device a = DEFAULTS_Runtime_device;
    weir_status status = WEIR_OK;
    if (!READ_Runtime_device(&a))
        return NULL;
    PyObject *text = a.select == Py_None ? NULL : PyObject_Str(a.select);
    const char *select = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    WP_HERE(place);
    if (!PyErr_Occurred())
        WP_HELD(a.self, status = weir_device_open_at(a.self->handle,
                                                     WP_PARAMS(weir_device_params, .select = select,
                                                               .label = a.label,
                                                               .default_timing = a.default_timing),
                                                     &a.result, WP_AT(place)));
    Py_XDECREF(text);
    return PyErr_Occurred() ? NULL : RESULT_Runtime_device;
}

WP_RETURN(Runtime__push, (weir_region_push(a.self->handle, a.name, a.number), wp_none(WEIR_OK)))
WP_RETURN(Runtime__pop, (weir_region_pop(a.self->handle), wp_none(WEIR_OK)))
WP_RETURN(Runtime_region, wp_helper("region", "OsO", self, a.name, a.number))

WP_TYPE(runtime, Runtime, struct runtime, destroy_runtime, WP_FLAGS,
        WP_SLOT(Py_tp_repr, runtime_repr));

// Devices.
static weir_status destroy_device(struct wp_object *object, struct wp_place place)
{
    weir_device *handle = object->handle;
    weir_status status;
    WP_UNLOCKED(status = weir_device_close_at(&handle, WP_AT(place)));
    wp_drop_calls((struct wp_device *)object);
    return status;
}

PyObject *device_close(PyObject *self, PyObject *Py_UNUSED(unused))
{
    struct wp_object *device = (struct wp_object *)self;
    if (device->closed)
        Py_RETURN_NONE;
    if (!wp_device_wait(device)) // signals interrupt it, and not the native close
        return NULL;
    device->closed = true;
    device->users++; // so that the children's ends do not close it
    WP_HERE(place);
    for (struct wp_object *child; (child = open_child(device->children));) {
        wp_close(child, place);
        Py_DECREF(child);
    }
    device->users--;
    if (device->children && wp_submits == 0 &&
        PyErr_ResourceWarning(self, 1, "the device stays open until arrays of %s %R have gone",
                              device->children->kind->noun,
                              device->children->label ? device->children->label : Py_None) != 0)
        return NULL;
    return wp_none(settle(device, place));
}

static PyObject *extent(struct weir_extent value)
{
    return Py_BuildValue("(III)", value.x, value.y, value.z);
}

#define tuple_OBJECT(value) extent(value)

static PyObject *limits_of(const struct weir_limits *limits)
{
    Py_ssize_t at = 0;
#define COUNT(name, type, text) +1
#define SET(name, type, text) PyTuple_SetItem(values, at++, type##_OBJECT(limits->name));
    PyObject *values = PyTuple_New(0 FIELDS_Limits(COUNT));
    if (values) {
        FIELDS_Limits(SET)
    }
#undef COUNT
#undef SET
    if (!PyErr_Occurred())
        return wp_helper("limits", "N", values);
    Py_XDECREF(values);
    return NULL;
}

WP_GET(Device_limits, limits_of(weir_device_limits(self->handle)))
WP_GET(Device_info, info(weir_device_get_info(self->handle)))
WP_METHOD(Device_trim, WP_HELD, weir_device_trim(a.self->handle))

static PyObject *device_repr(PyObject *self)
{
    const struct wp_object *device = (struct wp_object *)self;
    if (device->closed)
        return block_repr(self);
    const struct weir_device_info *described = weir_device_get_info(device->handle);
    return PyUnicode_FromFormat("<weir device '%s' of %s>", described->name, described->platform);
}

WP_TYPE(device, Device, struct wp_device, destroy_device, WP_FLAGS,
        WP_SLOT(Py_tp_repr, device_repr));

// The end of the interpreter.
atomic_bool wp_over;

PyObject *wp_alive(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    PyObject *list = PyList_New(0);
    Py_ssize_t count = 0;
    for (struct wp_object *runtime = runtimes; list && runtime; runtime = runtime->next, count++)
        for (struct wp_object *device = runtime->children; list && device; device = device->next)
            if (!device->closed && PyList_Append(list, (PyObject *)device) != 0)
                Py_CLEAR(list);
    return list ? Py_BuildValue("nN", count, list) : NULL;
}

PyObject *wp_end(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    wp_drop_now();
    atomic_store(&wp_over, true);
    return wp_helper("show_untold", "");
}
