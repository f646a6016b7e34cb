// The module: its initialisation, exceptions, the caller's line.
#include "weir_py.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// The caller.
// File names are kept for the process, once each: the library keeps their addresses. A small cache
// by code object, of which it has a reference, finds them.
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

// Errors.
static PyObject *helpers; // the module weir._help

PyObject *wp_text(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *wp_helper(const char *name, const char *format, ...)
{
    char list[32];
    snprintf(list, sizeof list, "(%s)", format);
    va_list values;
    va_start(values, format);
    PyObject *arguments = Py_VaBuildValue(list, values);
    va_end(values);
    PyObject *function = arguments ? PyObject_GetAttrString(helpers, name) : NULL;
    PyObject *result = function ? PyObject_CallObject(function, arguments) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(arguments);
    return result;
}

PyObject *wp_python_text(const char *text)
{
    return wp_helper("python_text", "O&", wp_text, text);
}

// Raises the exception of a status with that text and the parts of `*error`.
static PyObject *raise_error(weir_status status, const struct weir_error *error, const char *text)
{
    PyObject *raised =
        wp_helper("error", "sO&O&O&O&O&LO&O&i", weir_status_name(status), wp_text, text, wp_text,
                  error->message, wp_text, error->object, wp_text, error->native_call, wp_text,
                  error->native_name, (long long)error->native_code, wp_text, error->remedy,
                  wp_text, error->file ? error->file : "", error->line);
    if (raised)
        PyErr_SetObject((PyObject *)Py_TYPE(raised), raised);
    Py_XDECREF(raised);
    return NULL;
}

PyObject *wp_raise(weir_status status)
{
    static const struct weir_error none;
    const bool known = weir_last_error()->status == status;
    return raise_error(status, known ? weir_last_error() : &none,
                       known ? weir_last_error_text() : weir_status_text(status));
}

PyObject *wp_refuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    PyObject *text = PyUnicode_FromFormatV(format, arguments);
    va_end(arguments);
    WP_HERE(place);
    struct weir_error error = {.file = place.file, .line = place.line};
    const char *message = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (message) {
        snprintf(error.message, sizeof error.message, "%s", message);
        raise_error(WEIR_ERROR_INVALID, &error, message);
    }
    Py_XDECREF(text);
    return NULL;
}

static PyObject *refuse(PyObject *Py_UNUSED(module), PyObject *text)
{
    return wp_refuse("%U", text);
}

int wp_to_ns(PyObject *object, void *out)
{
    const double seconds = object == Py_None ? INFINITY : PyFloat_AsDouble(object);
    if (PyErr_Occurred())
        return 0;
    *(uint64_t *)out = seconds >= 0 && seconds < 1.8e10 ? (uint64_t)(seconds * 1e9) : WEIR_FOREVER;
    return seconds >= 0 ||
           wp_refuse("timeout is %R; it is a number of seconds, 0 to poll, or None for no limit",
                     object);
}

int wp_to_limit(PyObject *object, void *out)
{
    return wp_to_ns(object, out) &&
           (*(uint64_t *)out != WEIR_FOREVER ||
            wp_refuse("timeout is %R; that of a communicator is a number of seconds, or 0 for the "
                      "configuration's",
                      object));
}

// The module.
// Objects of a runtime or a device have the first one as their base.
static struct wp_kind *const kinds[] = {
    &wp_block_kind,    &wp_runtime_kind,  &wp_device_kind, &wp_buffer_kind,  &wp_access_kind,
    &wp_pool_kind,     &wp_queue_kind,    &wp_event_kind,  &wp_program_kind, &wp_kernel_kind,
    &wp_launcher_kind, &wp_argument_kind, &wp_graph_kind,  &wp_comm_kind,
};

static bool make_type(PyObject *module, struct wp_kind *kind)
{
    PyObject *bases = kind->destroy ? PyTuple_Pack(1, wp_block_kind.type) : NULL;
    if (kind->destroy && !bases)
        return false;
    kind->type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &kind->spec, bases);
    Py_XDECREF(bases);
    return kind->type && (kind == &wp_block_kind || PyModule_AddType(module, kind->type) == 0);
}

static int execute(PyObject *module)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        PyErr_SetString(PyExc_ImportError, "weir cannot be used in a subinterpreter; import it in "
                                           "the main interpreter, or start a process");
        return -1;
    }
    place_files = place_files ? place_files : PyDict_New();
    if (!place_files || !(helpers = PyImport_ImportModule("weir._help")) ||
        !(place_folder = PyObject_GetAttrString(helpers, "FOLDER")))
        return -1;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!make_type(module, kinds[i]))
            return -1;
    return PyModule_AddStringConstant(module, "__version__", weir_version());
}

static PyMethodDef methods[] = {
    FUNCTIONS{"_alive", wp_alive, METH_NOARGS, NULL},
    {"_end", wp_end, METH_NOARGS, NULL},
    {"_refuse", refuse, METH_O, NULL},
    {0},
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
