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
PyAPI_FUNC(int) PyObject_GetBuffer(PyObject *object, Py_buffer *view, int flags);
PyAPI_FUNC(int) PyBuffer_IsContiguous(const Py_buffer *view, char order);
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
// Sets weir.InvalidError with a sentence that has no counterpart in the library. Returns NULL.
PyObject *wp_refuse(const char *format, ...);
// The library's text; the same with its C names as those of Python. New references.
PyObject *wp_text(const char *text);
PyObject *wp_python_text(const char *text);

// None, or the exception of a status.
static inline PyObject *wp_none(weir_status status)
{
    return status == WEIR_OK ? Py_BuildValue("") : wp_raise(status);
}

// The result of what weir._help has by that name, whose arguments `format` describes as Py_BuildValue()
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

// The same; the object, a runtime's or a device's, is not destroyed meanwhile.
#define WP_HELD(object, statement) \
    do {                           \
        wp_hold(object);           \
        WP_UNLOCKED(statement);    \
        wp_let(object);            \
    } while (0)

// Runs a call that submits without the interpreter's lock. What the program closes meanwhile is
// destroyed after it.
#define WP_SUBMIT_UNLOCKED(statement) \
    do {                              \
        wp_submits++;                 \
        WP_UNLOCKED(statement);       \
        if (--wp_submits == 0)        \
            wp_end_postponed();       \
    } while (0)
extern uint32_t wp_submits; // that run
void wp_end_postponed(void);

// Runs a call that submits: without the interpreter's lock where the driver may call Python.
#define WP_SUBMIT(queue, statement)                               \
    do {                                                          \
        if (((struct wp_device *)(queue)->owner)->submits_free) { \
            WP_SUBMIT_UNLOCKED(statement);                        \
        } else {                                                  \
            statement;                                            \
        }                                                         \
    } while (0)

// Submits by `function`, which has `_at`, and returns None or an exception.
#define WP_RETURN_SUBMIT(queue, function, ...)                                                 \
    do {                                                                                       \
        weir_status wp_status;                                                                 \
        WP_HERE(wp_place);                                                                     \
        WP_SUBMIT(queue, wp_status = function((queue)->handle, __VA_ARGS__, WP_AT(wp_place))); \
        return wp_none(wp_status);                                                             \
    } while (0)

// Objects: runtimes, their devices, and what devices have. A program may drop or close them in any
// order: an object's handle is destroyed when it is closed and nothing needs it any more.
struct wp_object {
    PyObject_HEAD struct wp_kind *kind;
    void *handle;               // NULL once it is destroyed
    PyObject *label;            // str, or NULL
    struct wp_object *owner;    // the device, or a device's runtime; a reference
    struct wp_object *children; // whose handles are not destroyed yet
    struct wp_object *next;     // of the owner's children, or of the runtimes
    struct wp_object **link;    // NULL: it is in no list, and has no handle of its own
    uint32_t
        users;   // calls without the lock, views of its memory: it is not destroyed before they end
    bool closed; // by the program
};

// A type of the extension. Its tables are made of what the stubs say: see stubs.py.
struct wp_kind {
    const char *noun; // "queue"
    // Destroys the object's handle; NULL for types that have none.
    weir_status (*destroy)(struct wp_object *object, struct wp_place place);
    PyType_Spec spec;
    PyTypeObject *type; // of the module, once that is made
};
extern struct wp_kind wp_block_kind, wp_runtime_kind, wp_device_kind, wp_buffer_kind,
    wp_access_kind, wp_pool_kind, wp_queue_kind, wp_event_kind, wp_program_kind, wp_kernel_kind,
    wp_launcher_kind, wp_argument_kind, wp_graph_kind, wp_comm_kind;

// Defines wp_NOUN_kind: the type weir.NAME, whose objects are of type `struct_type`, with further
// slots.
#define WP_TYPE(noun, name, struct_type, destroy, flags, ...)             \
    static PyMethodDef noun##_methods[] = {METHODS_##name{0}};            \
    static PyGetSetDef noun##_getters[] = {GETTERS_##name{0}};            \
    static PyType_Slot noun##_slots[] = {{Py_tp_doc, DOC_##name},         \
                                         {Py_tp_methods, noun##_methods}, \
                                         {Py_tp_getset, noun##_getters},  \
                                         __VA_ARGS__,                     \
                                         {0, NULL}};                      \
    struct wp_kind wp_##noun##_kind = {                                   \
        #noun, destroy, {"weir." #name, sizeof(struct_type), 0, flags, noun##_slots}, NULL}
// Only the functions of the module make objects.
#define WP_FLAGS (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE)
// The same for an object of a device: weir_NOUN, destroyed by weir_NOUN_destroy_at().
#define WP_CHILD_TYPE(noun, name, struct_type, ...)                                    \
    static weir_status destroy_##noun(struct wp_object *object, struct wp_place place) \
    {                                                                                  \
        weir_##noun *handle = object->handle;                                          \
        weir_##noun##_destroy_at(&handle, WP_AT(place));                               \
        return WEIR_OK;                                                                \
    }                                                                                  \
    WP_TYPE(noun, name, struct_type, destroy_##noun, WP_FLAGS, __VA_ARGS__)
// A slot that is a function; C has no conversion of its address to the slot's void *.
#define WP_SLOT(slot, function)             \
    {                                       \
        slot, (void *)(uintptr_t)(function) \
    }
// Makes an object of a kind with its handle, or raises the status of the handle's creation.
void *wp_made(weir_status status, struct wp_kind *kind, struct wp_object *owner, void *handle,
              const char *label);
void wp_close(struct wp_object *object, struct wp_place place);
void wp_dealloc(PyObject *self);
// Around a call without the lock, or as long as a view of its memory lives.
void wp_hold(struct wp_object *object);
void wp_let(struct wp_object *object);
// Whether it can be used, else false with an exception.
bool wp_usable(const struct wp_object *object);
// `object` as a usable one of a kind, or NULL with an exception that names the argument.
void *wp_of(PyObject *object, const struct wp_kind *kind, const char *argument);
// The dealloc of types with nothing to drop, and the end of others'.
void wp_free(PyObject *self);

struct wp_device {
    struct wp_object object;
    struct wp_call *calls; // of the host, that may still run
    uint32_t captures;     // that have begun
    bool submits_free;     // submits release the lock: the driver may call Python in a graph
};

// Drops the calls of a device that has ended, which cannot run any more.
void wp_drop_calls(struct wp_device *device);

// How many runtimes there are, and a list of the devices that are not closed.
PyObject *wp_alive(PyObject *module, PyObject *unused);
// From then on no thread of the library's calls Python.
PyObject *wp_end(PyObject *module, PyObject *unused);
extern atomic_bool wp_over;

// Elements and buffers.
// A type of elements. `format` is that of the buffer protocol; its last letter and `size` identify
// the type.
struct wp_dtype {
    const char *name;   // "float32"
    const char *code;   // "f4"
    const char *format; // "f"
    weir_scalar scalar; // OTHER: complex numbers, bfloat16, which the host has as uint16
    weir_element element;
    uint32_t size;          // bytes
    weir_datatype datatype; // of collectives; 0: they have no such elements
};

// The type that `object` names: "float32", "f4", numpy.float32, numpy.dtype("f4"), torch.float32,
// float, …; a converter of arguments, as those below.
int wp_to_dtype(PyObject *object, void *out);
int wp_to_placement(PyObject *object, void *out); // weir_placement
int wp_to_bytes(PyObject *object, void *out);     // size_t
int wp_to_ns(PyObject *object, void *out); // seconds, None: WEIR_FOREVER, to uint64_t nanoseconds
int wp_to_limit(PyObject *object, void *out);  // the same, but never WEIR_FOREVER
int wp_to_stream(PyObject *object, void *out); // void *: a native handle
int wp_to_color(PyObject *object, void *out);  // int32_t: of a communicator's part
// Stores a number as a scalar of the device, in the first bytes of `out`. False with an exception
// that says what `what` is.
bool wp_pack(weir_scalar scalar, PyObject *number, const char *what, uint64_t *out);

enum {
    WP_DIMENSIONS = 8, // maximum
};

// A buffer, or a part of one: then `base` is the whole one, and has the handle.
struct wp_buffer {
    struct wp_object object;
    struct wp_buffer *base; // NULL: it is whole
    const struct wp_dtype *dtype;
    const char *placement; // "device", "host", "managed"
    size_t offset;         // bytes, of the first element
    size_t size;           // bytes of its elements
    bool dense;            // they are contiguous
    bool pooled;
    struct wp_object *freed; // NULL, or the queue on which the pool gets it when it is destroyed
    int dimensions;
    Py_ssize_t shape[WP_DIMENSIONS];
    Py_ssize_t strides[WP_DIMENSIONS]; // bytes
};

// `object` as a usable buffer or part of one, or NULL with an exception that names the argument.
struct wp_buffer *wp_buffer_of(PyObject *object, const char *argument);
// The same where only contiguous memory will do.
struct wp_buffer *wp_dense_of(PyObject *object, const char *argument);
// The whole buffer, which has the handle.
static inline struct wp_object *wp_whole(const struct wp_buffer *buffer)
{
    const struct wp_buffer *whole = buffer->base ? buffer->base : buffer;
    return (struct wp_object *)(uintptr_t)whole;
}
static inline weir_buffer *wp_handle(const struct wp_buffer *buffer)
{
    return wp_whole(buffer)->handle;
}
// Gets an array's memory, contiguous and of elements that fit the buffer's; false with an
// exception.
bool wp_array_of(PyObject *object, const struct wp_buffer *buffer, bool writable, Py_buffer *out);

// Waits for all work of the device, whether it fails or not; false with an exception, such as
// KeyboardInterrupt.
bool wp_device_wait(struct wp_object *device);

// Later.
// Something that is to be dropped with the interpreter's lock, from a thread that may hold locks of
// the library.
struct wp_later {
    struct wp_later *next;
    void (*drop)(struct wp_later *later);
};
void wp_drop_later(struct wp_later *later); // any thread, with or without the lock
void wp_drop_now(void);

#include "python/stubs.h" // of weir/__init__.pyi: stubs.py

// Methods that call the library once, by what the stubs say of them. Their arguments are `a`, and
// `place` is the caller's line.
#define WP_METHOD(name, run, ...)          \
    FUNCTION_##name                        \
    {                                      \
        struct name a = DEFAULTS_##name;   \
        weir_status status;                \
        if (!READ_##name(&a))              \
            return NULL;                   \
        WP_HERE(place);                    \
        (void)place;                       \
        run(a.self, status = __VA_ARGS__); \
        return RESULT_##name;              \
    }
// The same for what has its line from elsewhere: the value of an expression.
#define WP_RETURN(name, ...)                         \
    FUNCTION_##name                                  \
    {                                                \
        struct name a = DEFAULTS_##name;             \
        return READ_##name(&a) ? __VA_ARGS__ : NULL; \
    }
// The same; the call gives a value of a type.
#define WP_VALUE(name, type, ...)                                         \
    FUNCTION_##name                                                       \
    {                                                                     \
        struct name a = DEFAULTS_##name;                                  \
        type result = 0;                                                  \
        if (!READ_##name(&a))                                             \
            return NULL;                                                  \
        WP_HERE(place);                                                   \
        (void)place;                                                      \
        const weir_status status = __VA_ARGS__;                           \
        return status == WEIR_OK ? int_OBJECT(result) : wp_raise(status); \
    }
// The parameters of a function of the library.
#define WP_PARAMS(type, ...) (&(struct type){.struct_size = sizeof(struct type), __VA_ARGS__})

// An attribute of objects of a type, and one of an object that has to be open.
#define WP_GET_OF(name, type, value)                                         \
    PyObject *get_##name(PyObject *object, void *Py_UNUSED(unused))          \
    {                                                                        \
        const struct type *self = (const struct type *)(const void *)object; \
        return OBJECT_##name(value);                                         \
    }
#define WP_GET(name, value)                                                      \
    PyObject *get_##name(PyObject *object, void *Py_UNUSED(unused))              \
    {                                                                            \
        const struct wp_object *self = (const struct wp_object *)(void *)object; \
        return wp_usable(self) ? OBJECT_##name(value) : NULL;                    \
    }
// A value as an object, by its type in the stubs.
#define bool_OBJECT(value) PyBool_FromLong((value) != 0)
#define int_OBJECT(value)                   \
    _Generic((value), int32_t               \
             : PyLong_FromLong, int64_t     \
             : PyLong_FromLongLong, default \
             : PyLong_FromUnsignedLongLong)(value)

#endif
