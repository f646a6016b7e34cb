// The module: its initialisation, exceptions, the caller's line, waits that signals interrupt.
#include "weir_py.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// --- The caller -------------------------------------------------------------------------------------

// File names are kept for the process, once each: the library keeps their addresses. A small cache by code
// object, of which it has a reference, finds them.
struct place_entry {
    PyObject *code;
    const char *file;
    bool own; // code of this package, whose caller is meant
};
static struct place_entry place_cache[256];
static PyObject *place_files;  // dict: name -> itself, whose UTF-8 text lives as long as it
static PyObject *place_folder; // str: the package's folder with its last '/'

static const struct place_entry *place_entry(PyObject *code)
{
    struct place_entry *entry = &place_cache[((uintptr_t)code >> 5 ^ (uintptr_t)code >> 13) & 255];
    if (entry->code == code)
        return entry;
    PyObject *name = PyObject_GetAttrString(code, "co_filename");
    PyObject *kept = name ? PyDict_GetItemWithError(place_files, name) : NULL;
    if (name && !kept && !PyErr_Occurred() && PyDict_SetItem(place_files, name, name) == 0)
        kept = PyDict_GetItemWithError(place_files, name);
    const char *file = kept ? PyUnicode_AsUTF8AndSize(kept, NULL) : NULL;
    const int own = file ? PyUnicode_Tailmatch(kept, place_folder, 0, PY_SSIZE_T_MAX, -1) : 0;
    Py_XDECREF(name);
    if (!file || own < 0) {
        PyErr_Clear();
        return NULL;
    }
    PyObject *old = entry->code;
    Py_INCREF(code);
    *entry = (struct place_entry){.code = code, .file = file, .own = own};
    Py_XDECREF(old);
    return entry;
}

struct wp_place wp_here(void)
{
    struct wp_place place = {NULL, 0};
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    while (frame) {
        PyObject *code = (PyObject *)PyFrame_GetCode(frame);
        const struct place_entry *entry = place_entry(code);
        Py_DECREF(code);
        const bool own = entry && entry->own;
        if (entry && !own)
            place = (struct wp_place){entry->file, PyFrame_GetLineNumber(frame)};
        PyObject *back = own ? PyObject_GetAttrString((PyObject *)frame, "f_back") : NULL;
        Py_DECREF(frame);
        if (back == Py_None)
            Py_CLEAR(back);
        frame = (PyFrameObject *)back;
    }
    return place;
}

// --- Errors -----------------------------------------------------------------------------------------

// The exceptions: the status, the name, the built-in one that it is as well, and when it is raised.
static struct error_class {
    weir_status status;
    const char *name;
    PyObject **also;
    const char *text;
    PyObject *type;
} error_classes[] = {
    {WEIR_OK, "weir.Error", &PyExc_Exception,
     "What Weir refuses or reports, with its first cause.\n\nAttributes: status "
     "(\"WEIR_ERROR_INVALID\"), "
     "message, object (the label), native_call, native_name, native_code (the driver's), remedy, "
     "file and "
     "line (of the first cause).",
     NULL},
    {WEIR_TIMEOUT, "weir.Timeout", &PyExc_TimeoutError, "A wait's time passed.", NULL},
    {WEIR_NOT_READY, "weir.NotReadyError", NULL, "What was asked for is not complete yet.", NULL},
    {WEIR_ERROR_INVALID, "weir.InvalidError", &PyExc_ValueError,
     "An argument breaks the call's contract.", NULL},
    {WEIR_ERROR_OUT_OF_MEMORY, "weir.OutOfMemoryError", &PyExc_MemoryError,
     "Memory of the host or of the device is exhausted.", NULL},
    {WEIR_ERROR_UNSUPPORTED, "weir.UnsupportedError", NULL, "The device does not support it.",
     NULL},
    {WEIR_ERROR_NOT_FOUND, "weir.NotFoundError", &PyExc_LookupError, "Nothing has that name.",
     NULL},
    {WEIR_ERROR_CONFIG, "weir.ConfigError", NULL, "The configuration is wrong.", NULL},
    {WEIR_ERROR_MODULE, "weir.ModuleError", NULL, "No listed backend or plugin can be used.", NULL},
    {WEIR_ERROR_NO_DEVICE, "weir.NoDeviceError", NULL, "No device matches.", NULL},
    {WEIR_ERROR_BUILD, "weir.BuildError", NULL, "Device code does not build.", NULL},
    {WEIR_ERROR_EXPIRED, "weir.ExpiredError", NULL, "It is no longer known.", NULL},
    {WEIR_ERROR_DEVICE, "weir.DeviceError", NULL, "The driver reported an error.", NULL},
    {WEIR_ERROR_DEVICE_LOST, "weir.DeviceLostError", NULL, "The device is lost.", NULL},
    {WEIR_ERROR_HOST_CALL, "weir.HostCallError", NULL,
     "A function of queue.host_call() raised; __cause__ is what it raised.", NULL},
    {WEIR_ERROR_FORKED, "weir.ForkedError", NULL, "The process was forked after Weir was used.",
     NULL},
    {WEIR_ERROR_IO, "weir.FileError", NULL, "A file cannot be read or written.", NULL},
    {WEIR_ERROR_SYSTEM, "weir.SystemCallError", NULL, "The operating system refused a request.",
     NULL},
    {WEIR_ERROR_COMM, "weir.CommError", NULL, "A collective failed between ranks.", NULL},
};
enum {
    ERROR_CLASSES = sizeof error_classes / sizeof error_classes[0],
};

PyObject *wp_error_type(weir_status status)
{
    for (size_t i = 1; i < ERROR_CLASSES; i++) {
        if (error_classes[i].status == status)
            return error_classes[i].type;
    }
    return error_classes[0].type;
}

static bool make_errors(PyObject *module)
{
    for (size_t i = 0; i < ERROR_CLASSES; i++) {
        struct error_class *made = &error_classes[i];
        PyObject *bases = i == 0       ? PyTuple_Pack(1, *made->also)
                          : made->also ? PyTuple_Pack(2, error_classes[0].type, *made->also)
                                       : PyTuple_Pack(1, error_classes[0].type);
        made->type = bases ? PyErr_NewExceptionWithDoc(made->name, made->text, bases, NULL) : NULL;
        Py_XDECREF(bases);
        if (!made->type || PyModule_AddObjectRef(module, made->name + 5, made->type) != 0)
            return false;
    }
    return true;
}

// The library's functions as Python has them. Others are NOUN.VERB: weir_queue_recover() is queue.recover().
static const char *const python_names[][2] = {
    {"in", "weir.In"},
    {"out", "weir.Out"},
    {"inout", "weir.InOut"},
    {"whole_in", "weir.In"},
    {"whole_out", "weir.Out"},
    {"whole_inout", "weir.InOut"},
    {"local", "weir.Local"},
    {"upload", "queue.upload"},
    {"download", "queue.download"},
    {"open", "weir.open"},
    {"close", "runtime.close"},
    {"host_begin", "buffer.host"},
    {"host_end", "access.end"},
    {"device_open", "runtime.device"},
    {"queue_create", "device.queue"},
    {"queue_wrap", "device.wrap_queue"},
    {"queue_launch", "kernel[grid, block]"},
    {"queue_launch_count", "kernel[count]"},
    {"queue_graph", "graph.launch"},
    {"buffer_create", "device.buffer"},
    {"buffer_wrap", "device.wrap"},
    {"dlpack_import", "device.from_dlpack"},
    {"dlpack_export", "buffer.__dlpack__"},
    {"program_create", "device.program"},
    {"kernel_create", "program.kernel"},
    {"pool_create", "device.pool"},
    {"pool_free", "buffer.free"},
    {"capture_begin", "queue.capture"},
    {"capture_end", "queue.capture"},
};

// Appends the name that stands for weir_`name`.
static void put_name(char *out, size_t size, const char *name, size_t length)
{
    const size_t used = strlen(out);
    for (size_t i = 0; i < sizeof python_names / sizeof python_names[0]; i++) {
        if (strlen(python_names[i][0]) == length && memcmp(python_names[i][0], name, length) == 0) {
            snprintf(out + used, size - used, "%s", python_names[i][1]);
            return;
        }
    }
    const bool ends = length > 8 && memcmp(name + length - 8, "_destroy", 8) == 0;
    snprintf(out + used, size - used, "%.*s%s", (int)(ends ? length - 8 : length), name,
             ends ? ".close" : "");
    char *line = ends ? NULL : strchr(out + used, '_');
    if (line)
        *line = '.';
}

PyObject *wp_text(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    char out[2048] = "";
    for (const char *at = text; *at;) {
        const char *found = strstr(at, "weir_");
        const size_t length = found ? strspn(found + 5, letters) : 0;
        const size_t used = strlen(out);
        const size_t plain = found ? (size_t)(found - at) : strlen(at);
        snprintf(out + used, sizeof out - used, "%.*s", (int)plain, at);
        at += plain;
        if (!found)
            break;
        if (length > 0 && found[5 + length] == '(')
            put_name(out, sizeof out, found + 5, length);
        else
            snprintf(out + strlen(out), sizeof out - strlen(out), "%.*s", (int)length + 5, found);
        at += 5 + length;
    }
    return PyUnicode_DecodeUTF8(out, (Py_ssize_t)strlen(out), "replace");
}

// Sets an attribute, and takes the value.
static bool set(PyObject *object, const char *name, PyObject *value)
{
    const int status = value ? PyObject_SetAttrString(object, name, value) : -1;
    Py_XDECREF(value);
    return status == 0;
}

// Raises an exception of that class and text with the attributes of `*error`. Takes `text`.
static PyObject *raise_error(weir_status status, const struct weir_error *error, PyObject *text)
{
    PyObject *type = wp_error_type(status);
    PyObject *raised = text ? PyObject_CallFunctionObjArgs(type, text, NULL) : NULL;
    Py_XDECREF(text);
    PyObject *cause = status == WEIR_ERROR_HOST_CALL ? wp_call_cause(error) : NULL;
    Py_XINCREF(cause);
    if (raised && cause)
        PyException_SetCause(raised, cause);
    if (raised && set(raised, "status", wp_text(weir_status_name(status))) &&
        set(raised, "message", wp_text(error->message)) &&
        set(raised, "object", wp_text(error->object)) &&
        set(raised, "native_call", wp_text(error->native_call)) &&
        set(raised, "native_name", wp_text(error->native_name)) &&
        set(raised, "native_code", PyLong_FromLongLong(error->native_code)) &&
        set(raised, "remedy", wp_text(error->remedy)) &&
        set(raised, "file", wp_text(error->file ? error->file : "")) &&
        set(raised, "line", PyLong_FromLong(error->line)))
        PyErr_SetObject(type, raised);
    Py_XDECREF(raised);
    return NULL;
}

PyObject *wp_raise(weir_status status)
{
    static const struct weir_error none;
    const struct weir_error *error = weir_last_error();
    const bool known = error->status == status;
    return raise_error(status, known ? error : &none,
                       wp_text(known ? weir_last_error_text() : weir_status_text(status)));
}

PyObject *wp_refuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    PyObject *text = PyUnicode_FromFormatV(format, arguments);
    va_end(arguments);
    WP_HERE(place);
    struct weir_error error = {.status = WEIR_ERROR_INVALID,
                               .file = place.file,
                               .line = place.line};
    const char *message = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (message)
        strncat(error.message, message, sizeof error.message - 1);
    return raise_error(WEIR_ERROR_INVALID, &error, text);
}

// --- Waits ------------------------------------------------------------------------------------------

#define SLICE_NS WEIR_MS(50) // the longest time until a signal is seen

bool wp_wait(PyObject *seconds, wp_step step, void *user, weir_status *out_status)
{
    uint64_t left_ns = WEIR_FOREVER;
    if (seconds && seconds != Py_None) {
        const double value = PyFloat_AsDouble(seconds);
        if (value == -1.0 && PyErr_Occurred())
            return false;
        if (!(value >= 0))
            return wp_refuse(
                "timeout is %R; it is a number of seconds, 0 to poll, or None for no limit",
                seconds);
        if (value < 1.8e10)
            left_ns = (uint64_t)(value * 1e9);
    }
    for (;;) {
        const uint64_t slice_ns = left_ns < SLICE_NS ? left_ns : SLICE_NS;
        WP_UNLOCKED(*out_status = step(user, slice_ns));
        if (PyErr_CheckSignals() != 0)
            return false;
        if (left_ns != WEIR_FOREVER)
            left_ns -= slice_ns;
        if (*out_status != WEIR_TIMEOUT || left_ns == 0)
            return true;
    }
}

// --- The module -------------------------------------------------------------------------------------

static PyObject *at_exit(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    wp_close_all();
    Py_RETURN_NONE;
}
static PyMethodDef at_exit_method = {"_at_exit", at_exit, METH_NOARGS, NULL};

static bool register_exit(PyObject *module)
{
    PyObject *function = PyCFunction_NewEx(&at_exit_method, module, NULL);
    PyObject *atexit = PyImport_ImportModule("atexit");
    PyObject *result =
        function && atexit ? PyObject_CallMethod(atexit, "register", "O", function) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(atexit);
    Py_XDECREF(result);
    return result;
}

static const struct {
    PyType_Spec *spec;
    PyTypeObject **type;
} types[] = {
    {&wp_runtime_spec, &wp_runtime_type},   {&wp_device_spec, &wp_device_type},
    {&wp_buffer_spec, &wp_buffer_type},     {&wp_access_spec, &wp_access_type},
    {&wp_pool_spec, &wp_pool_type},         {&wp_queue_spec, &wp_queue_type},
    {&wp_event_spec, &wp_event_type},       {&wp_program_spec, &wp_program_type},
    {&wp_kernel_spec, &wp_kernel_type},     {&wp_launcher_spec, &wp_launcher_type},
    {&wp_argument_spec, &wp_argument_type}, {&wp_graph_spec, &wp_graph_type},
    {&wp_capture_spec, &wp_capture_type},
};

// The folder of the package, whose own frames are no callers.
static bool find_folder(PyObject *module)
{
    PyObject *file = PyObject_GetAttrString(module, "__file__");
    if (!file) {
        PyErr_Clear();
        place_folder = PyUnicode_FromString("/weir/");
        return place_folder;
    }
    const Py_ssize_t slash = PyUnicode_FindChar(file, '/', 0, PyUnicode_GetLength(file), -1);
    place_folder = slash < 0 ? NULL : PyUnicode_Substring(file, 0, slash + 1);
    Py_DECREF(file);
    return place_folder;
}

static int execute(PyObject *module)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        PyErr_SetString(PyExc_ImportError, "weir cannot be used in a subinterpreter; import it in "
                                           "the main interpreter, or start a "
                                           "process");
        return -1;
    }
    place_files = place_files ? place_files : PyDict_New();
    if (!place_files || !find_folder(module) || !make_errors(module) || !wp_runtime_types(module) ||
        !register_exit(module))
        return -1;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        *types[i].type = (PyTypeObject *)PyType_FromModuleAndSpec(module, types[i].spec, NULL);
        if (!*types[i].type || PyModule_AddType(module, *types[i].type) != 0)
            return -1;
    }
    return PyModule_AddStringConstant(module, "__version__", weir_version());
}

static PyMethodDef methods[] = {
    {"open", WP_KEYED(wp_open),
     "open(config=None, *, text=None, backend=None, plugins=None, module_path=None)\n--\n\n"
     "Opens a runtime: one configuration and the modules that it names.\n\n"
     "config is the path of an INI file, \"\" for none; None takes $WEIR_CONFIG, else the "
     "defaults. text is INI "
     "text in its place. backend (\"opencl\"), plugins (\"check, trace\") and module_path (folders "
     "with ':' "
     "between them) go before the environment and the file.\n\n"
     "Raises ConfigError with the file, the line and the nearest name; ModuleError if no listed "
     "backend can be "
     "used, with every reason."},
    {"findings", wp_findings, METH_NOARGS,
     "findings()\n--\n\nWhat the plugin check has found since the last call, in all runtimes: a "
     "list of "
     "weir.Finding."},
    {"_open_runtimes", wp_open_runtimes, METH_NOARGS, NULL},
    {"In", wp_in, METH_O, "In(buffer)\n--\n\nA launch's argument that the kernel only reads."},
    {"Out", wp_out, METH_O,
     "Out(buffer)\n--\n\nA launch's argument that the kernel overwrites without reading its old "
     "contents."},
    {"InOut", wp_inout, METH_O,
     "InOut(buffer)\n--\n\nA launch's argument that the kernel reads and writes."},
    {"Local", wp_local, METH_O,
     "Local(bytes)\n--\n\nLocal memory of each block, for a __local pointer."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    WP_SLOT(Py_mod_exec, execute),
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "weir._weir", .m_size = 0,
    .m_methods = methods,  .m_slots = slots,
};

PyMODINIT_FUNC PyInit__weir(void);
PyMODINIT_FUNC PyInit__weir(void)
{
    return PyModuleDef_Init(&definition);
}
