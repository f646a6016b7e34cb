// Programs, kernels, launches and their arguments, graphs.
#include "weir_py.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

PyTypeObject *wp_program_type, *wp_kernel_type, *wp_launcher_type, *wp_argument_type,
    *wp_graph_type, *wp_capture_type;

// Programs.
WP_KIND(program);

// The bundle that a shared library defines under a name: "FILE:SYMBOL". The library stays loaded.
static const struct weir_bundle *load_bundle(const char *text)
{
    const char *colon = strrchr(text, ':');
    char *file = colon ? strdup(text) : NULL;
    if (file)
        file[colon - text] = '\0';
    void *library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    const struct weir_bundle *bundle = library ? dlsym(library, colon + 1) : NULL;
    free(file);
    if (!bundle)
        wp_refuse("bundle is '%s'; it is 'FILE:SYMBOL', a shared library made of what `weir "
                  "kernels build` writes: %s",
                  text, colon ? dlerror() : "there is no ':'");
    return bundle;
}

PyObject *wp_device_program(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"source",       "file",  "bundle", "options", "cuda_source",
                            "cuda_options", "exact", "fast",   "label",   NULL};
    struct wp_device *device = (struct wp_device *)self;
    struct weir_program_params params = {.struct_size = sizeof params};
    PyObject *path = Py_None, *text = NULL, *label = NULL;
    const char *bundle = NULL;
    int exact = 0, fast = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|z$OzzzzppO:program", names,
                                     &params.source, &path, &bundle, &params.options,
                                     &params.cuda_source, &params.cuda_options, &exact, &fast,
                                     &label) ||
        !wp_device_usable(device) || !wp_label(label, &params.label) ||
        (bundle && !(params.bundle = load_bundle(bundle))) ||
        (path != Py_None && !(text = wp_helper("read", "O", path))))
        return NULL;
    params.exact = exact;
    params.fast = fast;
    if (text)
        params.source = PyBytes_AsString(text);
    weir_program *handle = NULL;
    weir_status status;
    WP_HERE(place);
    device->users++;
    WP_UNLOCKED(status = weir_program_create_at(device->handle, &params, &handle, WP_AT(place)));
    device->users--;
    Py_XDECREF(text);
    return status == WEIR_OK
               ? (PyObject *)wp_child_new(wp_program_type, &program_kind, device, handle, label)
               : wp_raise(status);
}

// Kernels.
WP_KIND(kernel);

static PyObject *program_kernel(PyObject *self, PyObject *name)
{
    struct wp_child *program = (struct wp_child *)self;
    const char *text;
    weir_kernel *handle;
    if (!wp_child_usable(program) || !wp_label(name, &text))
        return NULL;
    WP_HERE(place);
    const weir_status status = weir_kernel_create_at(program->handle, text, &handle, WP_AT(place));
    return status == WEIR_OK ? (PyObject *)wp_child_new(wp_kernel_type, &kernel_kind,
                                                        program->device, handle, name)
                             : wp_raise(status);
}

static PyObject *kernel_figure(PyObject *self, void *what)
{
    struct wp_child *kernel = (struct wp_child *)self;
    if (!wp_child_usable(kernel))
        return NULL;
    const struct weir_kernel_info *info = weir_kernel_get_info(kernel->handle);
    const struct weir_kernel_signature *signature = weir_kernel_get_signature(kernel->handle);
    switch (*(const char *)what) {
    case 'm':
        return PyLong_FromUnsignedLong(info->max_block_items);
    case 'p':
        return PyLong_FromUnsignedLong(info->preferred_block_items);
    case 'l':
        return PyLong_FromUnsignedLongLong(info->local_bytes);
    default:
        break;
    }
    PyObject *parameters = PyTuple_New(signature->parameter_count);
    for (uint32_t i = 0; parameters && i < signature->parameter_count; i++) {
        const struct weir_parameter *parameter = weir_signature_parameter(signature, i);
        PyTuple_SetItem(parameters, i,
                        PyUnicode_FromFormat("%s %s", parameter->type_name, parameter->name));
    }
    return parameters;
}

static PyObject *kernel_suggest(PyObject *self, PyObject *arguments)
{
    struct wp_child *kernel = (struct wp_child *)self;
    Py_ssize_t local = 0;
    uint32_t items = 0;
    if (!PyArg_ParseTuple(arguments, "|n:suggest_block", &local) || !wp_child_usable(kernel))
        return NULL;
    const weir_status status =
        weir_kernel_suggest_block(kernel->handle, local < 0 ? SIZE_MAX : (size_t)local, &items);
    return status == WEIR_OK ? PyLong_FromUnsignedLong(items) : wp_raise(status);
}

// Arguments.
struct argument {
    PyObject_HEAD struct wp_buffer *buffer; // NULL: local memory
    weir_access access;
    size_t size;
};

static PyObject *range(PyObject *object, weir_access access, const char *name)
{
    struct wp_buffer *buffer = wp_dense_of(object, name);
    struct argument *argument = buffer ? PyObject_New(struct argument, wp_argument_type) : NULL;
    if (!argument)
        return NULL;
    Py_INCREF(object);
    argument->buffer = buffer;
    argument->access = access;
    return (PyObject *)argument;
}

PyObject *wp_in(PyObject *module, PyObject *buffer)
{
    (void)module;
    return range(buffer, WEIR_ACCESS_READ, "the argument of In()");
}

PyObject *wp_out(PyObject *module, PyObject *buffer)
{
    (void)module;
    return range(buffer, WEIR_ACCESS_WRITE, "the argument of Out()");
}

PyObject *wp_inout(PyObject *module, PyObject *buffer)
{
    (void)module;
    return range(buffer, WEIR_ACCESS_READ_WRITE, "the argument of InOut()");
}

PyObject *wp_local(PyObject *module, PyObject *bytes)
{
    (void)module;
    const size_t size = PyLong_AsSize_t(bytes);
    struct argument *argument =
        PyErr_Occurred() ? NULL : PyObject_New(struct argument, wp_argument_type);
    if (argument) {
        argument->buffer = NULL;
        argument->size = size;
    }
    return (PyObject *)argument;
}

static void argument_dealloc(PyObject *self)
{
    Py_XDECREF(((struct argument *)self)->buffer);
    wp_free(self);
}

static PyObject *argument_repr(PyObject *self)
{
    static const char *const names[] = {"", "In", "Out", "InOut"};
    const struct argument *argument = (struct argument *)self;
    return argument->buffer
               ? PyUnicode_FromFormat("%s(%R)", names[argument->access], argument->buffer)
               : PyUnicode_FromFormat("Local(%zu)", argument->size);
}

enum {
    MOST_ARGUMENTS = 64,
    VECTOR_WORDS = 128, // for all vectors of a launch
};

struct arguments {
    struct weir_argument list[MOST_ARGUMENTS];
    uint64_t words[VECTOR_WORDS];
    size_t used;
};

static bool put_range(const struct argument *argument, const struct weir_parameter *parameter,
                      struct weir_argument *out)
{
    if (!argument->buffer) {
        *out = weir_local(argument->size);
        return true;
    }
    const struct wp_buffer *buffer = wp_buffer_of((PyObject *)argument->buffer, parameter->name);
    if (!buffer)
        return false;
    const weir_scalar element = parameter->element, scalar = buffer->dtype->scalar;
    // Integers of one size are one type here, and bytes are any.
    const bool alike = element == WEIR_SCALAR_OTHER || scalar == WEIR_SCALAR_OTHER ||
                       element == scalar || buffer->dtype->size == 1 ||
                       (element <= WEIR_SCALAR_U64 && scalar <= WEIR_SCALAR_U64 &&
                        (element + 1) / 2 == (scalar + 1) / 2);
    *out = weir__argument_range(wp_handle(buffer), buffer->offset, buffer->size, argument->access);
    return alike || wp_refuse("the parameter '%s' is %s, and its argument %R has %s elements",
                              parameter->name, parameter->type_name, buffer, buffer->dtype->name);
}

static bool put_vector(PyObject *values, const struct weir_parameter *parameter,
                       struct arguments *arguments, struct weir_argument *out)
{
    const size_t size =
        parameter->width == 3 ? parameter->size / 4 : parameter->size / parameter->width;
    char *bytes = (char *)(arguments->words + arguments->used);
    const size_t words = (parameter->size + 7) / 8;
    if (PyTuple_Size(values) != (Py_ssize_t)parameter->width ||
        words > VECTOR_WORDS - arguments->used)
        return wp_refuse("the parameter '%s' is %s, and its argument is %R", parameter->name,
                         parameter->type_name, values);
    arguments->used += words;
    for (uint32_t i = 0; i < parameter->width; i++) {
        uint64_t bits;
        if (!wp_pack(parameter->element, PyTuple_GetItem(values, i), parameter->name, &bits))
            return false;
        memcpy(bytes + i * size, &bits, size);
    }
    *out = weir__argument_vector(parameter->element, bytes, size, parameter->width);
    return true;
}

// One argument that is no range: a number, a tuple for a vector, bytes for a structure, or None.
static bool put_value(PyObject *object, const struct weir_parameter *parameter,
                      struct arguments *arguments, struct weir_argument *out)
{
    if (object == Py_None) {
        *out = weir_null();
        return true;
    }
    if (parameter->kind != WEIR_PARAMETER_VALUE)
        return wp_refuse(
            "the parameter '%s' is %s, and its argument is %R; pass weir.In(buffer), "
            "weir.Out(buffer) or weir.InOut(buffer), which tell what the kernel does with it, or "
            "weir.Local(bytes)",
            parameter->name, parameter->type_name, object);
    if (PyBytes_Check(object)) {
        *out = weir_value(PyBytes_AsString(object), (size_t)PyBytes_Size(object));
        return true;
    }
    if (parameter->width > 1 && PyTuple_Check(object))
        return put_vector(object, parameter, arguments, out);
    uint64_t bits;
    if (!wp_pack(parameter->scalar, object, parameter->name, &bits))
        return false;
    *out = weir__argument_scalar(parameter->scalar, &bits, parameter->size);
    return true;
}

// Reads the objects of `tuple` from `first` on as the kernel's arguments; false with an exception.
static bool read_arguments(struct wp_child *kernel, PyObject *tuple, Py_ssize_t first,
                           struct arguments *arguments)
{
    const struct weir_kernel_signature *signature = weir_kernel_get_signature(kernel->handle);
    const Py_ssize_t count = PyTuple_Size(tuple) - first;
    arguments->used = 0;
    if (count != (Py_ssize_t)signature->parameter_count || count > MOST_ARGUMENTS) {
        PyObject *parameters = kernel_figure((PyObject *)kernel, "t");
        wp_refuse("the kernel '%s' got %zd arguments, and has the parameters %R", signature->name,
                  count, parameters ? parameters : Py_None);
        Py_XDECREF(parameters);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *object = PyTuple_GetItem(tuple, first + i);
        const struct weir_parameter *parameter = weir_signature_parameter(signature, (uint32_t)i);
        if (Py_TYPE(object) == wp_argument_type
                ? !put_range((struct argument *)object, parameter, &arguments->list[i])
                : !put_value(object, parameter, arguments, &arguments->list[i]))
            return false;
    }
    return true;
}

// Launches.
// A kernel with its grid and block, or with a count of work-items.
struct launcher {
    PyObject_HEAD struct wp_child *kernel;
    struct weir_extent grid, block;
    size_t count;
    bool counted;
};

static bool read_extent(PyObject *object, const char *name, struct weir_extent *out)
{
    uint32_t values[3] = {0, 1, 1};
    const bool many = PyTuple_Check(object);
    const Py_ssize_t count = many ? PyTuple_Size(object) : 1;
    bool fits = count >= 1 && count <= 3;
    for (Py_ssize_t i = 0; fits && i < count; i++) {
        const Py_ssize_t value =
            PyNumber_AsSsize_t(many ? PyTuple_GetItem(object, i) : object, PyExc_OverflowError);
        fits = value >= 0 && value <= UINT32_MAX;
        values[i] = (uint32_t)value;
    }
    *out = weir_dim(values[0], values[1], values[2]);
    if (fits)
        return true;
    PyErr_Clear();
    return wp_refuse("%s is %R; it is an int, or a tuple of at most three", name, object);
}

static PyObject *kernel_launcher(PyObject *self, PyObject *key)
{
    const bool counted = !PyTuple_Check(key);
    struct launcher form = {.counted = counted};
    if (!wp_child_usable((struct wp_child *)self))
        return NULL;
    if (counted) {
        form.count = PyLong_AsSize_t(key);
        if (PyErr_Occurred()) {
            PyErr_Clear();
            return wp_refuse(
                "%R is no number of work-items; launch with kernel[count](queue, ...) or "
                "kernel[grid, block](queue, ...)",
                key);
        }
    } else if (PyTuple_Size(key) != 2) {
        return wp_refuse(
            "%R is not a grid and a block: kernel[grid, block], each an int or a tuple", key);
    } else if (!read_extent(PyTuple_GetItem(key, 0), "grid", &form.grid) ||
               !read_extent(PyTuple_GetItem(key, 1), "block", &form.block)) {
        return NULL;
    }
    struct launcher *launcher = PyObject_New(struct launcher, wp_launcher_type);
    if (!launcher)
        return NULL;
    form.ob_base = launcher->ob_base;
    form.kernel = (struct wp_child *)self;
    *launcher = form;
    Py_INCREF(self);
    return (PyObject *)launcher;
}

static void launcher_dealloc(PyObject *self)
{
    Py_DECREF(((struct launcher *)self)->kernel);
    wp_free(self);
}

static PyObject *launcher_call(PyObject *self, PyObject *tuple, PyObject *keywords)
{
    const struct launcher *launcher = (struct launcher *)self;
    struct arguments arguments;
    const Py_ssize_t count = PyTuple_Size(tuple);
    if (count < 1 || (keywords && PyDict_Size(keywords) > 0))
        return PyErr_Format(
            PyExc_TypeError,
            "kernel[grid, block](queue, *arguments) has a queue first, and no keywords");
    struct wp_queue *queue = wp_child_of(PyTuple_GetItem(tuple, 0), wp_queue_type, "queue");
    if (!queue || !wp_child_usable(launcher->kernel) ||
        !read_arguments(launcher->kernel, tuple, 1, &arguments))
        return NULL;
    weir_kernel *kernel = launcher->kernel->handle;
    const size_t given = (size_t)count - 1;
    weir_status status;
    WP_HERE(place);
    if (launcher->counted)
        WP_SUBMIT(queue, status,
                  weir_queue_launch_count_at(queue->child.handle, kernel, launcher->count,
                                             arguments.list, given, WP_AT(place)));
    else if (weir_kernel_get_signature(kernel)->grid_barrier)
        WP_SUBMIT(queue, status,
                  weir_queue_launch_cooperative_at(queue->child.handle, kernel, launcher->grid,
                                                   launcher->block, arguments.list, given,
                                                   WP_AT(place)));
    else
        WP_SUBMIT(queue, status,
                  weir_queue_launch_at(queue->child.handle, kernel, launcher->grid, launcher->block,
                                       arguments.list, given, WP_AT(place)));
    return wp_none(status);
}

// Graphs.
WP_KIND(graph);

struct capture {
    PyObject_HEAD struct wp_queue *queue;
    PyObject *label;
    PyObject *graph; // once it has ended
    bool active;
};

PyObject *wp_queue_capture(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"label", NULL};
    PyObject *label = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O:capture", names, &label) ||
        !wp_child_usable((struct wp_child *)self))
        return NULL;
    struct capture *capture = (struct capture *)PyType_GenericAlloc(wp_capture_type, 0);
    if (!capture)
        return NULL;
    Py_INCREF(self);
    Py_INCREF(label);
    capture->queue = (struct wp_queue *)self;
    capture->label = label;
    return (PyObject *)capture;
}

static PyObject *capture_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct capture *capture = (struct capture *)self;
    if (capture->active || !wp_child_usable(&capture->queue->child))
        return capture->active ? wp_refuse("the capture has begun already") : NULL;
    WP_HERE(place);
    const weir_status status = weir_capture_begin_at(capture->queue->child.handle, WP_AT(place));
    if (status != WEIR_OK)
        return wp_raise(status);
    capture->active = true;
    capture->queue->child.device->captures++;
    Py_INCREF(self);
    return self;
}

static PyObject *capture_exit(PyObject *self, PyObject *arguments)
{
    struct capture *capture = (struct capture *)self;
    struct wp_child *queue = &capture->queue->child;
    struct weir_graph_params params = {.struct_size = sizeof params};
    weir_graph *handle = NULL;
    if (!capture->active)
        Py_RETURN_NONE;
    capture->active = false;
    queue->device->captures--;
    if (queue->closed) // which dropped the capture
        Py_RETURN_NONE;
    if (PyTuple_Size(arguments) > 0 && PyTuple_GetItem(arguments, 0) != Py_None)
        return wp_none(weir_capture_cancel(queue->handle));
    if (!wp_label(capture->label, &params.label))
        return NULL;
    weir_status status;
    WP_HERE(place);
    wp_child_hold(queue);
    WP_UNLOCKED(status = weir_capture_end_at(queue->handle, &params, &handle, WP_AT(place)));
    wp_child_let(queue);
    if (status != WEIR_OK)
        return wp_raise(status);
    capture->graph =
        (PyObject *)wp_child_new(wp_graph_type, &graph_kind, queue->device, handle, capture->label);
    if (!capture->graph)
        return NULL;
    Py_RETURN_NONE;
}

static void capture_dealloc(PyObject *self)
{
    struct capture *capture = (struct capture *)self;
    if (capture->active) {
        capture->queue->child.device->captures--;
        if (!capture->queue->child.closed)
            WEIR_IGNORE(weir_capture_cancel(capture->queue->child.handle));
    }
    Py_XDECREF(capture->queue);
    Py_XDECREF(capture->label);
    Py_XDECREF(capture->graph);
    wp_free(self);
}

static PyObject *graph_launch(PyObject *self, PyObject *object)
{
    struct wp_child *graph = (struct wp_child *)self;
    struct wp_queue *queue =
        wp_child_usable(graph) ? wp_child_of(object, wp_queue_type, "queue") : NULL;
    weir_status status;
    if (!queue)
        return NULL;
    WP_HERE(place);
    WP_SUBMIT(queue, status, weir_queue_graph_at(queue->child.handle, graph->handle, WP_AT(place)));
    return wp_none(status);
}

static PyObject *graph_node_count(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(weir_graph_node_count(((struct wp_child *)self)->handle));
}

// Types.
static PyMemberDef child_members[] = {WP_CHILD_MEMBERS, {NULL, 0, 0, 0, NULL}};

static PyMethodDef program_methods[] = {
    WP_CHILD_METHODS,
    {"kernel", program_kernel, METH_O,
     "kernel($self, name, /)\n--\n\nThe kernel of that name.\n\nRaises NotFoundError with the "
     "nearest name."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot program_slots[] = {
    WP_SLOT(Py_tp_dealloc, wp_child_dealloc),
    WP_SLOT(Py_tp_repr, wp_child_repr),
    {Py_tp_methods, program_methods},
    {Py_tp_members, child_members},
    {Py_tp_doc, "Device code. Made by device.program()."},
    {0, NULL},
};
PyType_Spec wp_program_spec = {"weir.Program", sizeof(struct wp_child), 0, WP_TYPE_FLAGS,
                               program_slots};

static PyMethodDef kernel_methods[] = {
    WP_CHILD_METHODS,
    {"suggest_block", kernel_suggest, METH_VARARGS,
     "suggest_block($self, local_bytes=0, /)\n--\n\nA number of work-items for the kernel's "
     "blocks."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef kernel_getters[] = {
    {"parameters", kernel_figure, NULL, "The parameters as the source has them: a tuple of str.",
     "t"},
    {"max_block_items", kernel_figure, NULL, "Work-items in a block, at most.", "m"},
    {"preferred_block_items", kernel_figure, NULL, "Blocks should be multiples of it.", "p"},
    {"local_bytes", kernel_figure, NULL, "Bytes of local memory that the kernel declares.", "l"},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot kernel_slots[] = {
    WP_SLOT(Py_tp_dealloc, wp_child_dealloc),
    WP_SLOT(Py_tp_repr, wp_child_repr),
    WP_SLOT(Py_mp_subscript, kernel_launcher),
    {Py_tp_methods, kernel_methods},
    {Py_tp_getset, kernel_getters},
    {Py_tp_members, child_members},
    {Py_tp_doc, "A function of a program. kernel[grid, block](queue, *arguments) launches it: grid "
                "is a number of blocks and block one of work-items, each an int or a tuple of up "
                "to three. kernel[count](queue, *arguments) takes at least so many work-items. "
                "Arguments are In(buffer), Out(buffer), InOut(buffer), Local(bytes), numbers, "
                "tuples for vectors, bytes for structures and None. Made by program.kernel()."},
    {0, NULL},
};
PyType_Spec wp_kernel_spec = {"weir.Kernel", sizeof(struct wp_child), 0, WP_TYPE_FLAGS,
                              kernel_slots};

static PyType_Slot launcher_slots[] = {
    WP_SLOT(Py_tp_dealloc, launcher_dealloc),
    WP_SLOT(Py_tp_call, launcher_call),
    {Py_tp_doc, "A kernel with its grid and block; call it to launch it. May be kept."},
    {0, NULL},
};
PyType_Spec wp_launcher_spec = {"weir.Launcher", sizeof(struct launcher), 0, WP_TYPE_FLAGS,
                                launcher_slots};

static PyType_Slot argument_slots[] = {
    WP_SLOT(Py_tp_dealloc, argument_dealloc),
    WP_SLOT(Py_tp_repr, argument_repr),
    {Py_tp_doc, "An argument of a launch. Made by In(), Out(), InOut(), Local()."},
    {0, NULL},
};
PyType_Spec wp_argument_spec = {"weir.Argument", sizeof(struct argument), 0, WP_TYPE_FLAGS,
                                argument_slots};

static PyMethodDef capture_methods[] = {
    {"__enter__", capture_enter, METH_NOARGS, NULL},
    {"__exit__", capture_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef capture_members[] = {
    {"graph", T_OBJECT, offsetof(struct capture, graph), READONLY,
     "The graph, after the block; else None."},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot capture_slots[] = {
    WP_SLOT(Py_tp_dealloc, capture_dealloc),
    {Py_tp_methods, capture_methods},
    {Py_tp_members, capture_members},
    {Py_tp_doc, "A block whose submits become a graph. Made by queue.capture()."},
    {0, NULL},
};
PyType_Spec wp_capture_spec = {"weir.Capture", sizeof(struct capture), 0, WP_TYPE_FLAGS,
                               capture_slots};

static PyMethodDef graph_methods[] = {
    WP_CHILD_METHODS,
    {"launch", graph_launch, METH_O,
     "launch($self, queue, /)\n--\n\nSubmits the whole graph as one operation of the queue."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef graph_getters[] = {
    {"node_count", graph_node_count, NULL, "The number of its nodes, which count from 0.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot graph_slots[] = {
    WP_SLOT(Py_tp_dealloc, wp_child_dealloc),
    WP_SLOT(Py_tp_repr, wp_child_repr),
    {Py_tp_methods, graph_methods},
    {Py_tp_getset, graph_getters},
    {Py_tp_members, child_members},
    {Py_tp_doc,
     "Work that was captured once, and is launched many times. Made by queue.capture()."},
    {0, NULL},
};
PyType_Spec wp_graph_spec = {"weir.Graph", sizeof(struct wp_child), 0, WP_TYPE_FLAGS, graph_slots};
