// Programs, kernels, launches and their arguments, graphs.
#include "weir_py.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

// Programs.
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
    if (colon && !file)
        PyErr_NoMemory();
    else if (!bundle)
        wp_refuse("bundle is '%s'; it is 'FILE:SYMBOL', a shared library made of what `weir "
                  "kernels build` writes: %s",
                  text, colon ? dlerror() : "there is no ':'");
    return bundle;
}

FUNCTION_Device_program
{
    struct Device_program a = DEFAULTS_Device_program;
    const struct weir_bundle *bundle = NULL;
    PyObject *text = NULL;
    weir_status status;
    if (!READ_Device_program(&a) || (a.bundle && !(bundle = load_bundle(a.bundle))) ||
        (a.file != Py_None && !(text = wp_helper("read", "O", a.file))))
        return NULL;
    WP_HERE(place);
    WP_HELD(a.self,
            status = weir_program_create_at(
                a.self->handle,
                WP_PARAMS(weir_program_params, .source = text ? PyBytes_AsString(text) : a.source,
                          .bundle = bundle, .options = a.options, .cuda_source = a.cuda_source,
                          .cuda_options = a.cuda_options, .exact = a.exact, .fast = a.fast,
                          .label = a.label),
                &a.result, WP_AT(place)));
    Py_XDECREF(text);
    return RESULT_Device_program;
}

WP_METHOD(Program_kernel, WP_HELD,
          weir_kernel_create_at(a.self->handle, a.name, &a.result, WP_AT(place)))
WP_CHILD_TYPE(program, Program, struct wp_object, {0, NULL});

// Kernels.
static PyObject *parameters_of(const struct weir_kernel_signature *signature)
{
    PyObject *parameters = PyTuple_New(signature->parameter_count);
    for (uint32_t i = 0; parameters && i < signature->parameter_count; i++) {
        const struct weir_parameter *parameter = weir_signature_parameter(signature, i);
        PyTuple_SetItem(parameters, i,
                        PyUnicode_FromFormat("%s %s", parameter->type_name, parameter->name));
    }
    return parameters;
}

WP_GET(Kernel_parameters, parameters_of(weir_kernel_get_signature(self->handle)))
WP_GET(Kernel_max_block_items, weir_kernel_get_info(self->handle)->max_block_items)
WP_GET(Kernel_preferred_block_items, weir_kernel_get_info(self->handle)->preferred_block_items)
WP_GET(Kernel_local_bytes, weir_kernel_get_info(self->handle)->local_bytes)
WP_VALUE(Kernel_suggest_block, uint32_t,
         weir_kernel_suggest_block(a.self->handle, a.local_bytes, &result))

// Arguments.
struct argument {
    PyObject_HEAD struct wp_buffer *buffer; // NULL: local memory
    weir_access access;
    size_t size;
};

// `buffer` NULL: local memory.
static PyObject *argument_new(struct wp_buffer *buffer, weir_access access, size_t size)
{
    struct argument *argument =
        PyErr_Occurred() ? NULL : PyObject_New(struct argument, wp_argument_kind.type);
    if (!argument)
        return NULL;
    Py_XINCREF(buffer);
    argument->buffer = buffer;
    argument->access = access;
    argument->size = size;
    return (PyObject *)argument;
}

#define RANGE(name, access)                                                                    \
    FUNCTION_##name                                                                            \
    {                                                                                          \
        (void)self;                                                                            \
        return argument_new(wp_dense_of(arguments, "the argument of " #name "()"), access, 0); \
    }
RANGE(In, WEIR_ACCESS_READ)
RANGE(Out, WEIR_ACCESS_WRITE)
RANGE(InOut, WEIR_ACCESS_READ_WRITE)
#undef RANGE
WP_RETURN(Local, argument_new(NULL, WEIR_ACCESS_READ_WRITE, PyLong_AsSize_t(a.bytes)))

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

WP_TYPE(argument, Argument, struct argument, NULL, WP_FLAGS,
        WP_SLOT(Py_tp_dealloc, argument_dealloc), WP_SLOT(Py_tp_repr, argument_repr));

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
static bool read_arguments(const struct wp_object *kernel, PyObject *tuple, Py_ssize_t first,
                           struct arguments *arguments)
{
    const struct weir_kernel_signature *signature = weir_kernel_get_signature(kernel->handle);
    const Py_ssize_t count = PyTuple_Size(tuple) - first;
    arguments->used = 0;
    if (count != (Py_ssize_t)signature->parameter_count || count > MOST_ARGUMENTS) {
        PyObject *parameters = parameters_of(signature);
        wp_refuse("the kernel '%s' got %zd arguments, and has the parameters %R", signature->name,
                  count, parameters ? parameters : Py_None);
        Py_XDECREF(parameters);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *object = PyTuple_GetItem(tuple, first + i);
        const struct weir_parameter *parameter = weir_signature_parameter(signature, (uint32_t)i);
        if (Py_TYPE(object) == wp_argument_kind.type
                ? !put_range((struct argument *)object, parameter, &arguments->list[i])
                : !put_value(object, parameter, arguments, &arguments->list[i]))
            return false;
    }
    return true;
}

// Launches.
// A kernel with its grid and block, or with a count of work-items.
struct launcher {
    PyObject_HEAD struct wp_object *kernel;
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
    if (!wp_usable((struct wp_object *)self))
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
    struct launcher *launcher = PyObject_New(struct launcher, wp_launcher_kind.type);
    if (!launcher)
        return NULL;
    form.ob_base = launcher->ob_base;
    form.kernel = (struct wp_object *)self;
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
    struct wp_object *queue = wp_of(PyTuple_GetItem(tuple, 0), &wp_queue_kind, "queue");
    if (!queue || !wp_usable(launcher->kernel) ||
        !read_arguments(launcher->kernel, tuple, 1, &arguments))
        return NULL;
    weir_kernel *kernel = launcher->kernel->handle;
    const size_t given = (size_t)count - 1;
    if (launcher->counted)
        WP_RETURN_SUBMIT(queue, weir_queue_launch_count_at, kernel, launcher->count, arguments.list,
                         given);
    if (weir_kernel_get_signature(kernel)->grid_barrier)
        WP_RETURN_SUBMIT(queue, weir_queue_launch_cooperative_at, kernel, launcher->grid,
                         launcher->block, arguments.list, given);
    WP_RETURN_SUBMIT(queue, weir_queue_launch_at, kernel, launcher->grid, launcher->block,
                     arguments.list, given);
}

WP_TYPE(launcher, Launcher, struct launcher, NULL, WP_FLAGS,
        WP_SLOT(Py_tp_dealloc, launcher_dealloc), WP_SLOT(Py_tp_call, launcher_call));
WP_CHILD_TYPE(kernel, Kernel, struct wp_object, WP_SLOT(Py_mp_subscript, kernel_launcher));

// Graphs.
FUNCTION_Queue__begin_capture
{
    struct Queue__begin_capture a = DEFAULTS_Queue__begin_capture;
    if (!READ_Queue__begin_capture(&a))
        return NULL;
    WP_HERE(place);
    const weir_status status = weir_capture_begin_at(a.self->handle, WP_AT(place));
    ((struct wp_device *)a.self->owner)->captures += status == WEIR_OK;
    return wp_none(status);
}

FUNCTION_Queue__end_capture
{
    struct Queue__end_capture a = DEFAULTS_Queue__end_capture;
    struct wp_object *queue = (struct wp_object *)self;
    weir_status status;
    ((struct wp_device *)queue->owner)->captures--;
    if (queue->closed) // which dropped the capture
        Py_RETURN_NONE;
    if (!READ_Queue__end_capture(&a))
        return NULL;
    if (a.drop) { // an exception goes on, or the program has dropped the capture
        WEIR_IGNORE(weir_capture_cancel(queue->handle));
        Py_RETURN_NONE;
    }
    WP_HERE(place);
    WP_HELD(queue, status = weir_capture_end_at(queue->handle,
                                                WP_PARAMS(weir_graph_params, .label = a.label),
                                                &a.result, WP_AT(place)));
    return RESULT_Queue__end_capture;
}

WP_RETURN(Queue_capture, wp_helper("Capture", "Oz", self, a.label))

FUNCTION_Graph_launch
{
    struct Graph_launch a = DEFAULTS_Graph_launch;
    if (!READ_Graph_launch(&a))
        return NULL;
    WP_RETURN_SUBMIT(a.queue, weir_queue_graph_at, a.self->handle);
}

WP_GET(Graph_node_count, weir_graph_node_count(self->handle))
WP_CHILD_TYPE(graph, Graph, struct wp_object, {0, NULL});
