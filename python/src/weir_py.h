// What the sources of the extension share: objects, errors, the caller's line, the interpreter's
// lock.
//
// The extension uses the limited API of Python 3.10, so that one file serves every later version.
// It is loaded by the main interpreter only (module.c refuses others), so its state is static.
// Except where a comment says otherwise, every function is called with the interpreter's lock held.
#ifndef WEIR_PYTHON_WEIR_PY_H
#define WEIR_PYTHON_WEIR_PY_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
#include <stdatomic.h>
#include <structmember.h>

#include <weir/weir.h>

// The buffer protocol is in the limited API from 3.11 on. 3.10 has the same functions, layout and
// numbers.
#ifndef Py_bf_getbuffer
#define Py_bf_getbuffer 1
#endif
#ifndef PyBUF_WRITABLE
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

// The caller.
// The line of Python that called, as the library wants it. `file` is never freed.
struct wp_place {
    const char *file; // NULL where no Python code calls
    int line;
};
struct wp_place wp_here(void);
// For calls with `_at`: WP_HERE(place) declares it, and WP_AT(place) are the last two arguments.
#define WP_HERE(place) const struct wp_place place = wp_here()
#define WP_AT(place) (place).file, (place).line

// Errors.
// Sets the exception of a status that is not WEIR_OK, with the thread's error detail. Returns NULL.
PyObject *wp_raise(weir_status status);
// Whether the exception that is set is one of that class of weir's.
bool wp_raised(const char *name);
// Sets weir.InvalidError with a sentence that has no counterpart in the library. Returns NULL.
PyObject *wp_refuse(const char *format, ...);
// The library's text; the same with its C names as those of Python. New references.
PyObject *wp_text(const char *text);
PyObject *wp_python_text(const char *text);

// None, or the exception of a status.
static inline PyObject *wp_none(weir_status status)
{
    if (status != WEIR_OK)
        return wp_raise(status);
    Py_INCREF(Py_None);
    return Py_None;
}

// The result of a function of weir._help, whose arguments `format` describes as Py_BuildValue()
// does.
PyObject *wp_helper(const char *name, const char *format, ...);

// The interpreter's lock.
// Runs a statement that may block without the interpreter's lock.
#define WP_UNLOCKED(statement)                         \
    do {                                               \
        PyThreadState *wp_saved = PyEval_SaveThread(); \
        statement;                                     \
        PyEval_RestoreThread(wp_saved);                \
    } while (0)

// Waits by `step`, which waits for at most `timeout_ns`, until it returns anything but WEIR_TIMEOUT
// or `seconds` have passed (None: no limit). The lock is released meanwhile, and signals are looked
// for: true with the last status, or false with an exception, such as KeyboardInterrupt.
typedef weir_status (*wp_step)(void *user, uint64_t timeout_ns);
bool wp_wait(PyObject *seconds, wp_step step, void *user, weir_status *out_status);

// The result of a method of a child whose call may block.
#define WP_RETURN_UNLOCKED(child, call) \
    do {                                \
        weir_status wp_status;          \
        wp_child_hold(child);           \
        WP_UNLOCKED(wp_status = call);  \
        wp_child_let(child);            \
        return wp_none(wp_status);      \
    } while (0)

// Objects.
struct wp_runtime {
    PyObject_HEAD weir_runtime *handle; // NULL once it is closed
    bool closed;             // by the program; devices that cannot close yet keep the handle
    uint32_t devices;        // that are open
    struct wp_runtime *next; // of those that are open
    size_t told;             // findings that were taken
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
};

// Defines NOUN_kind, the kind of objects of the type weir_NOUN.
#define WP_KIND(noun)                                                         \
    static void destroy_##noun(struct wp_child *child, struct wp_place place) \
    {                                                                         \
        weir_##noun *handle = child->handle;                                  \
        weir_##noun##_destroy_at(&handle, WP_AT(place));                      \
    }                                                                         \
    static const struct wp_kind noun##_kind = {#noun, destroy_##noun}

struct wp_device {
    PyObject_HEAD weir_device *handle; // NULL once it is closed
    struct wp_runtime *runtime;
    struct wp_child *children;
    struct wp_device *next; // of all open devices
    struct wp_device **link;
    struct wp_call *calls; // Python functions that were submitted and have not run
    uint32_t users;        // calls without the lock
    uint32_t captures;     // that have begun
    bool closed;           // by the program
    bool submits_free;     // submits release the lock: the driver may call Python in a graph
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

// The dealloc of types with nothing to drop, and the end of others'.
void wp_free(PyObject *self);
// Text of the label for params, or NULL.
bool wp_label(PyObject *object, const char **out_text);

// Entries of a table of methods.
#define WP_FAST(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL
#define WP_KEYED(function) (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS
// close(), `with` and the label, which all children have.
#define WP_CHILD_METHODS                                                                          \
    {"close", wp_child_close_method, METH_NOARGS,                                                 \
     "close($self)\n--\n\nDestroys the object; work that was submitted still runs. Never waits. " \
     "A "                                                                                         \
     "second "                                                                                    \
     "call does nothing."},                                                                       \
        {"__enter__", wp_child_enter, METH_NOARGS, NULL},                                         \
    {                                                                                             \
        "__exit__", wp_child_exit, METH_VARARGS, NULL                                             \
    }
#define WP_CHILD_MEMBERS                                                                           \
    {"label", T_OBJECT, offsetof(struct wp_child, label), READONLY, "The label, or None."},        \
        {"device", T_OBJECT, offsetof(struct wp_child, device), READONLY, "The object's device."}, \
    {                                                                                              \
        "closed", T_BOOL, offsetof(struct wp_child, closed), READONLY, "Whether it was closed."    \
    }

// Types, and what creates them in the order of the table in module.c.
extern PyTypeObject *wp_runtime_type, *wp_device_type, *wp_buffer_type, *wp_access_type,
    *wp_pool_type, *wp_queue_type, *wp_event_type, *wp_program_type, *wp_kernel_type,
    *wp_launcher_type, *wp_argument_type, *wp_graph_type, *wp_capture_type;
extern PyType_Spec wp_runtime_spec, wp_device_spec, wp_buffer_spec, wp_access_spec, wp_pool_spec,
    wp_queue_spec, wp_event_spec, wp_program_spec, wp_kernel_spec, wp_launcher_spec,
    wp_argument_spec, wp_graph_spec, wp_capture_spec;
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
// Waits for all work and closes what can be closed: when the interpreter ends. From then on no
// thread of the library's calls Python.
void wp_close_all(void);
extern atomic_bool wp_over;

PyObject *wp_runtime_findings(const struct wp_runtime *runtime); // a list
// weir.findings(); see findings.c.
void wp_findings_watch(struct wp_runtime *runtime);
void wp_findings_end(struct wp_runtime *runtime); // before it closes
PyObject *wp_findings(PyObject *module, PyObject *unused);
PyObject *wp_open_runtimes(PyObject *module, PyObject *unused); // how many

// Elements and buffers.
// A type of elements. `format` is that of the buffer protocol; its last letter and `size` identify
// the type.
struct wp_dtype {
    const char *name;
    const char *format;
    weir_scalar scalar; // OTHER: complex numbers
    weir_element element;
    uint32_t size; // bytes
};

// The type that `object` names: "float32", "f4", numpy.float32, numpy.dtype("f4"), torch.float32,
// float, … NULL with an exception.
const struct wp_dtype *wp_dtype_of(PyObject *object);
// Stores a number as a scalar of the device, in the first bytes of `out`. False with an exception
// that says what `what` is.
bool wp_pack(weir_scalar scalar, PyObject *number, const char *what, uint64_t *out);

enum {
    WP_DIMENSIONS = 8, // maximum
};

// A buffer, or a part of one: then `base` is the whole one, and the handle is its.
struct wp_buffer {
    struct wp_child child;
    struct wp_buffer *base; // NULL: it is whole
    const struct wp_dtype *dtype;
    const char *placement; // "device", "host", "managed"
    size_t offset;         // bytes, of the first element
    size_t size;           // bytes of its elements
    bool dense;            // they are contiguous
    bool pooled;
    int dimensions;
    Py_ssize_t shape[WP_DIMENSIONS];
    Py_ssize_t strides[WP_DIMENSIONS]; // bytes
};

// `object` as a usable buffer or part of one, or NULL with an exception that names the argument.
struct wp_buffer *wp_buffer_of(PyObject *object, const char *argument);
// The same where only contiguous memory will do.
struct wp_buffer *wp_dense_of(PyObject *object, const char *argument);
static inline weir_buffer *wp_handle(const struct wp_buffer *buffer)
{
    return (buffer->base ? buffer->base : buffer)->child.handle;
}
// A buffer of a shape and a type for a handle that `make` creates. See the methods of Device and
// Pool.
PyObject *wp_buffer_new(struct wp_device *device, PyObject *shape, PyObject *dtype, PyObject *label,
                        const char *placement,
                        weir_status (*make)(void *user, size_t size, weir_buffer **out),
                        void *user);
// Gets an array's memory, contiguous and of elements that fit the buffer's; false with an
// exception.
bool wp_array_of(PyObject *object, const struct wp_buffer *buffer, bool writable, Py_buffer *out);

PyObject *wp_device_buffer(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *wp_device_wrap(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *wp_device_from_dlpack(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *wp_device_pool(PyObject *self, PyObject *arguments, PyObject *keywords);

// Queues and events.
struct wp_queue {
    struct wp_child child;
};

// Runs a call that submits: without the interpreter's lock where the driver may call Python.
#define WP_SUBMIT(queue, status, call)             \
    do {                                           \
        if ((queue)->child.device->submits_free) { \
            wp_child_hold(&(queue)->child);        \
            WP_UNLOCKED(status = call);            \
            wp_child_let(&(queue)->child);         \
        } else {                                   \
            status = call;                         \
        }                                          \
    } while (0)

PyObject *wp_device_queue(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *wp_device_wrap_queue(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *wp_event_new(struct weir_event event);
// Waits for all work of the device, whether it fails or not; false with an exception, such as
// KeyboardInterrupt.
bool wp_device_wait(struct wp_device *device);
PyObject *wp_device_sync(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *wp_queue_capture(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *wp_device_program(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *wp_in(PyObject *module, PyObject *buffer);
PyObject *wp_out(PyObject *module, PyObject *buffer);
PyObject *wp_inout(PyObject *module, PyObject *buffer);
PyObject *wp_local(PyObject *module, PyObject *bytes);

// The exception of a function that the library called and that the error is about; NULL if it is
// not known. Borrowed.
PyObject *wp_call_cause(const struct weir_error *error);
void wp_calls_forget(void);                   // those exceptions
void wp_calls_drop(struct wp_device *device); // its functions that have not run and cannot any more

// Later.
// Something that is to be dropped with the interpreter's lock, from a thread that may hold locks of
// the library.
struct wp_later {
    struct wp_later *next;
    void (*drop)(struct wp_later *later);
};
void wp_drop_later(struct wp_later *later); // any thread, with or without the lock
void wp_drop_now(void);

#endif
