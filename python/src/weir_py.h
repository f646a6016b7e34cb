// What the sources of the extension share: objects, errors, the caller's line, the interpreter's lock.
//
// The extension uses the limited API of Python 3.10, so that one file serves every later version. It is
// loaded by the main interpreter only (module.c refuses others), so its state is static. Except where a
// comment says otherwise, every function is called with the interpreter's lock held.
#ifndef WEIR_PYTHON_WEIR_PY_H
#define WEIR_PYTHON_WEIR_PY_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
#include <structmember.h>

#include <weir/weir.h>

// The buffer protocol is in the limited API from 3.11 on. 3.10 has the same functions, layout and numbers.
#ifndef Py_bf_getbuffer
#define Py_bf_getbuffer 1
#define Py_bf_releasebuffer 2
typedef struct {
    void *buf;
    PyObject *obj;
    Py_ssize_t len;
    Py_ssize_t itemsize;
    int readonly;
    int ndim;
    char *format;
    Py_ssize_t *shape;
    Py_ssize_t *strides;
    Py_ssize_t *suboffsets;
    void *internal;
} Py_buffer;
#define PyBUF_WRITABLE 0x0001
#define PyBUF_FORMAT 0x0004
#define PyBUF_ND 0x0008
#define PyBUF_STRIDES (0x0010 | PyBUF_ND)
#define PyBUF_C_CONTIGUOUS (0x0020 | PyBUF_STRIDES)
PyAPI_FUNC(int) PyObject_GetBuffer(PyObject *object, Py_buffer *view, int flags);
PyAPI_FUNC(void) PyBuffer_Release(Py_buffer *view);
#endif

// --- The caller -------------------------------------------------------------------------------------

// The line of Python that called, as the library wants it. `file` is never freed.
struct wp_place {
    const char *file; // NULL where no Python code calls
    int line;
};
struct wp_place wp_here(void);
// For calls with `_at`: WP_HERE(place) declares it, and WP_AT(place) are the last two arguments.
#define WP_HERE(place) const struct wp_place place = wp_here()
#define WP_AT(place) (place).file, (place).line

// --- Errors -----------------------------------------------------------------------------------------

// Sets the exception of a status that is not WEIR_OK, with the thread's error detail. Returns NULL.
PyObject *wp_raise(weir_status status);
// The exception's class of a status: weir.Error or one below it. Borrowed.
PyObject *wp_error_type(weir_status status);
// Sets weir.InvalidError with a sentence that has no counterpart in the library. Returns NULL.
PyObject *wp_refuse(const char *format, ...);
// The library's text with its C names as those of Python. New reference.
PyObject *wp_text(const char *text);

// None, or the exception of a status.
static inline PyObject *wp_none(weir_status status)
{
    if (status != WEIR_OK)
        return wp_raise(status);
    Py_INCREF(Py_None);
    return Py_None;
}

// --- The interpreter's lock -------------------------------------------------------------------------

// Runs a statement that may block without the interpreter's lock.
#define WP_UNLOCKED(statement)                         \
    do {                                               \
        PyThreadState *wp_saved = PyEval_SaveThread(); \
        statement;                                     \
        PyEval_RestoreThread(wp_saved);                \
    } while (0)

// Waits by `step`, which waits for at most `timeout_ns`, until it returns anything but WEIR_TIMEOUT or
// `seconds` have passed (None: no limit). The lock is released meanwhile, and signals are looked for: true
// with the last status, or false with an exception, such as KeyboardInterrupt.
typedef weir_status (*wp_step)(void *user, uint64_t timeout_ns);
bool wp_wait(PyObject *seconds, wp_step step, void *user, weir_status *out_status);

// --- Objects ----------------------------------------------------------------------------------------

struct wp_runtime {
    PyObject_HEAD weir_runtime *handle; // NULL once it is closed
    bool closed;      // by the program; devices that cannot close yet keep the handle
    uint32_t devices; // that are open
};

// An object of a device, which it keeps. Its structure begins with this.
struct wp_child {
    PyObject_HEAD const struct wp_kind *kind;
    void *handle;    // NULL once it is destroyed
    PyObject *label; // str, or NULL
    struct wp_device *device;
    struct wp_child *next; // of the device's list
    struct wp_child **link;
    uint32_t
        users;   // calls without the lock, views of its memory: it is not destroyed before they end
    bool closed; // by the program
};

struct wp_kind {
    const char *name;                                               // "queue"
    void (*destroy)(struct wp_child *child, struct wp_place place); // the handle
    void (*finish)(struct wp_child *child); // what else it holds; may be NULL
};

struct wp_device {
    PyObject_HEAD weir_device *handle; // NULL once it is closed
    struct wp_runtime *runtime;
    struct wp_child *children;
    struct wp_device *next; // of all open devices
    struct wp_device **link;
    uint32_t users;    // calls without the lock
    bool closed;       // by the program
    bool submits_free; // submits release the lock: the driver may call Python in a graph
};

// Makes an object of `type` for a handle, which it takes also when it fails.
struct wp_child *wp_child_new(PyTypeObject *type, const struct wp_kind *kind,
                              struct wp_device *device, void *handle, PyObject *label);
// Ends it for the program, and destroys the handle once nothing uses it.
void wp_child_close(struct wp_child *child, struct wp_place place);
void wp_child_dealloc(PyObject *self);
PyObject *wp_child_close_method(PyObject *self, PyObject *unused);
PyObject *wp_child_enter(PyObject *self, PyObject *unused);
PyObject *wp_child_exit(PyObject *self, PyObject *arguments);
PyObject *wp_child_repr(PyObject *self);
// Around a call without the lock, or as long as a view of its memory lives.
void wp_child_hold(struct wp_child *child);
void wp_child_let(struct wp_child *child);
// Whether it can be used, else false with an exception.
bool wp_child_usable(struct wp_child *child);
bool wp_device_usable(struct wp_device *device);
// Closes the native device once that is possible.
void wp_device_settle(struct wp_device *device);
// `object` as a usable child of `type`, or NULL with an exception that names the argument.
void *wp_child_of(PyObject *object, PyTypeObject *type, const char *argument);

// Text of the label for params, or NULL. `out_label` gets a borrowed reference, or NULL.
bool wp_label(PyObject *object, const char **out_text);

// close(), `with` and the label, which all children have.
#define WP_CHILD_METHODS                                                                       \
    {"close", wp_child_close_method, METH_NOARGS,                                              \
     "close()\n--\n\nDestroys the object; work that was submitted still runs. Never waits. A " \
     "second "                                                                                 \
     "call does nothing."},                                                                    \
        {"__enter__", wp_child_enter, METH_NOARGS, NULL},                                      \
    {                                                                                          \
        "__exit__", wp_child_exit, METH_VARARGS, NULL                                          \
    }
#define WP_CHILD_MEMBERS                                                                           \
    {"label", T_OBJECT, offsetof(struct wp_child, label), READONLY, "The label, or None."},        \
        {"device", T_OBJECT, offsetof(struct wp_child, device), READONLY, "The object's device."}, \
    {                                                                                              \
        "closed", T_BOOL, offsetof(struct wp_child, closed), READONLY, "Whether it was closed."    \
    }

// Types, and what creates them in the order of the table in module.c.
extern PyTypeObject *wp_runtime_type, *wp_device_type;
extern PyType_Spec wp_runtime_spec, wp_device_spec;
bool wp_runtime_types(PyObject *module); // DeviceInfo, Limits
// Only the functions of the module make objects.
#define WP_TYPE_FLAGS \
    (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE)
// A slot that is a function; C has no conversion of its address to the slot's void *.
#define WP_SLOT(slot, function)             \
    {                                       \
        slot, (void *)(uintptr_t)(function) \
    }

// weir.open().
PyObject *wp_open(PyObject *module, PyObject *arguments, PyObject *keywords);
// Waits for all work and closes what can be closed: when the interpreter ends.
void wp_close_all(void);

#endif
