// The program's line, from the address that a call returns to. What an address is, is found once: the first time takes
// milliseconds, since debug information is read. A library that wraps OpenCL gives no line that tells the user anything, so
// the frames above it are looked at, on each call; for Python, the interpreter's.
//
// Debug information is read by libdw, which is opened when the first line is asked for: without it a place is
// "library(function+0x1f)".
#define _GNU_SOURCE // dladdr
#include <dlfcn.h>
#include <execinfo.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/names.h"
#include "layers/opencl/layer.h"

enum {
    FRAMES = 48,
    MOST = 1 << 16, // addresses that are kept
    SKIPS = 64,
};

// Its lock is taken with none of the layer's held, and with an interpreter's held.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct weir_names *texts; // NULL: out of memory

static const char *keep_text(const char *text)
{
    return texts ? weir_names_keep(texts, text) : NULL;
}

// Paths below the working directory are told from there, as a compiler tells them.
static const char *keep_path(const char *path)
{
    static char directory[PATH_MAX];
    static size_t length;
    if (length == 0)
        length = getcwd(directory, sizeof directory) ? strlen(directory) : 1;
    if (length > 1 && strncmp(path, directory, length) == 0 && path[length] == '/')
        path += length + 1;
    return keep_text(path);
}

// What wraps OpenCL: names of libraries, of packages of Python and of headers, without their ends.

static const char *skips[SKIPS] = {
    "libOpenCL",
    "libweir_opencl_layer",
    "libclblast",
    "libclBLAS",
    "libclFFT",
    "libafopencl",
    "libopencv_core",
    "libavutil",
    "_cl",
    "pyopencl",
    "opencl.hpp",
    "cl2.hpp",
    "cl.hpp",
};

// `names` are separated by ':'.
static void add_skips(const char *names)
{
    size_t count = 0;
    while (count < SKIPS && skips[count])
        count++;
    for (; *names; names += strcspn(names, ":") + (names[strcspn(names, ":")] != '\0')) {
        char *name = strndup(names, strcspn(names, ":"));
        if (name && *name && count + 1 < SKIPS)
            skips[count++] = name;
        else
            free(name);
    }
}

static bool is_skipped_name(const char *name, size_t size)
{
    for (size_t i = 0; i < SKIPS && skips[i]; i++) {
        const size_t length = strlen(skips[i]);
        if (size >= length && strncmp(name, skips[i], length) == 0 &&
            (size == length || name[length] == '.' || name[length] == '-'))
            return true;
    }
    return false;
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_skipped_file(const char *path)
{
    const char *base = base_of(path);
    return is_skipped_name(base, strlen(base));
}

// libdw, as <elfutils/libdwfl.h> and <elfutils/libdw.h> declare it: the functions that are used.

typedef struct Dwfl Dwfl;
typedef struct Dwfl_Module Dwfl_Module;
typedef struct Dwfl_Line Dwfl_Line;
typedef struct Dwarf_Files Dwarf_Files;

typedef struct {
    void *address;
    void *unit;
    void *abbreviation;
    long padding;
} Dwarf_Die;

typedef struct {
    unsigned code;
    unsigned form;
    unsigned char *value;
    void *unit;
} Dwarf_Attribute;

struct callbacks {
    void *find_elf;
    void *find_debuginfo;
    void *section_address;
    char **debuginfo_path;
};

enum {
    TAG_INLINED = 0x1d,
    AT_CALL_FILE = 0x58,
    AT_CALL_LINE = 0x59,
};

#define LIBDW(X)                                                                 \
    X(Dwfl *, dwfl_begin, (const struct callbacks *))                            \
    X(void, dwfl_report_begin_add, (Dwfl *))                                     \
    X(int, dwfl_linux_proc_report, (Dwfl *, pid_t))                              \
    X(int, dwfl_report_end, (Dwfl *, void *, void *))                            \
    X(Dwfl_Module *, dwfl_addrmodule, (Dwfl *, uint64_t))                        \
    X(Dwfl_Line *, dwfl_module_getsrc, (Dwfl_Module *, uint64_t))                \
    X(const char *, dwfl_lineinfo,                                               \
      (Dwfl_Line *, uint64_t *, int *, int *, uint64_t *, uint64_t *))           \
    X(Dwarf_Die *, dwfl_module_addrdie, (Dwfl_Module *, uint64_t, uint64_t *))   \
    X(int, dwarf_getscopes, (Dwarf_Die *, uint64_t, Dwarf_Die **))               \
    X(int, dwarf_getscopes_die, (Dwarf_Die *, Dwarf_Die **))                     \
    X(int, dwarf_tag, (Dwarf_Die *))                                             \
    X(Dwarf_Attribute *, dwarf_attr, (Dwarf_Die *, unsigned, Dwarf_Attribute *)) \
    X(int, dwarf_formudata, (Dwarf_Attribute *, uint64_t *))                     \
    X(int, dwarf_getsrcfiles, (Dwarf_Die *, Dwarf_Files **, size_t *))           \
    X(const char *, dwarf_filesrc, (Dwarf_Files *, size_t, uint64_t *, uint64_t *))

static struct {
#define FIELD(result, name, parameters) result(*name) parameters;
    LIBDW(FIELD)
#undef FIELD
    Dwfl *all; // NULL: there is no libdw
} dw;

// Debug information that is not installed is not fetched.
static int find_nothing(void)
{
    return -1;
}

static void open_libdw(void)
{
    static struct callbacks callbacks;
    const char *urls = getenv("DEBUGINFOD_URLS");
    void *library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr,
                "weir: OpenCL layer: lines of the program are not known without libdw.so.1; "
                "install libdw1\n");
        return;
    }
    bool found = true;
#define FIND(result, name, parameters)          \
    *(void **)&dw.name = dlsym(library, #name); \
    found = found && dw.name;
    LIBDW(FIND)
#undef FIND
    callbacks.find_elf = dlsym(library, "dwfl_linux_proc_find_elf");
    callbacks.find_debuginfo = dlsym(library, "dwfl_standard_find_debuginfo");
    if (urls && *urls)
        *(int (**)(void)) & callbacks.find_debuginfo = find_nothing;
    if (found && callbacks.find_elf && callbacks.find_debuginfo)
        dw.all = dw.dwfl_begin(&callbacks);
}

// Modules that were loaded since are added.
static Dwfl_Module *module_at(uint64_t address)
{
    static bool opened;
    if (!opened) {
        opened = true;
        open_libdw();
    }
    if (!dw.all)
        return NULL;
    Dwfl_Module *module = dw.dwfl_addrmodule(dw.all, address);
    if (module)
        return module;
    dw.dwfl_report_begin_add(dw.all);
    const bool reported = dw.dwfl_linux_proc_report(dw.all, getpid()) == 0;
    dw.dwfl_report_end(dw.all, NULL, NULL);
    return reported ? dw.dwfl_addrmodule(dw.all, address) : NULL;
}

static bool number_of(Dwarf_Die *die, unsigned name, uint64_t *out)
{
    Dwarf_Attribute attribute;
    return dw.dwarf_attr(die, name, &attribute) && dw.dwarf_formudata(&attribute, out) == 0;
}

// The scopes of an address, from the innermost outwards; those of dwarf_getscopes() go on where an inlined function was written.
static int find_scopes(Dwarf_Die *unit, uint64_t address, Dwarf_Die **out_scopes)
{
    Dwarf_Die *scopes = NULL;
    *out_scopes = NULL;
    const int count = dw.dwarf_getscopes(unit, address, &scopes) > 0
                          ? dw.dwarf_getscopes_die(scopes, out_scopes)
                          : 0;
    free(scopes);
    return count;
}

// The line at which a function of a wrapper's header was inlined, the innermost outside of such headers.
static bool find_inlined(Dwfl_Module *module, uint64_t address, struct place *out)
{
    uint64_t bias = 0;
    Dwarf_Die *unit = dw.dwfl_module_addrdie(module, address, &bias);
    Dwarf_Die *scopes = NULL;
    Dwarf_Files *files = NULL;
    size_t file_count = 0;
    bool found = false;
    const int count = unit ? find_scopes(unit, address - bias, &scopes) : 0;
    if (count > 0 && dw.dwarf_getsrcfiles(unit, &files, &file_count) == 0) {
        for (int i = 0; i < count && !found; i++) {
            uint64_t file;
            uint64_t line;
            if (dw.dwarf_tag(&scopes[i]) != TAG_INLINED ||
                !number_of(&scopes[i], AT_CALL_FILE, &file) ||
                !number_of(&scopes[i], AT_CALL_LINE, &line) || file >= file_count)
                continue;
            const char *path = dw.dwarf_filesrc(files, file, NULL, NULL);
            found = path && !is_skipped_file(path);
            if (found)
                *out = (struct place){keep_path(path), line < INT_MAX ? (int)line : 0};
        }
    }
    free(scopes);
    return found;
}

// Addresses.

enum how {
    HOW_PLACE,  // it has a place
    HOW_SKIP,   // it is of a wrapper, whose place it has
    HOW_PYTHON, // the same, called by Python
};

struct known {
    enum how how;
    struct place place;
};

struct address {
    struct object object;
    struct known known;
};

static struct place function_of(void *address, const Dl_info *info)
{
    char text[300];
    const char *file = info->dli_fname ? base_of(info->dli_fname) : "?";
    const char *from = info->dli_sname ? info->dli_saddr : info->dli_fbase;
    snprintf(text, sizeof text, "%.100s(%.150s+0x%zx)", file,
             info->dli_sname ? info->dli_sname : "",
             from ? (size_t)((const char *)address - from) : (size_t)0);
    return (struct place){keep_text(text), 0};
}

static bool is_python(const char *library)
{
    return strstr(library, ".cpython-") || strstr(library, ".abi3.");
}

static struct known look_at(void *address)
{
    struct known known = {.how = HOW_PLACE};
    Dl_info info = {0};
    int line = 0;
    dladdr(address, &info);
    known.place = function_of(address, &info);
    const char *library = info.dli_fname ? base_of(info.dli_fname) : "";
    if (is_python(library))
        known.how = HOW_PYTHON;
    else if (is_skipped_file(library))
        known.how = HOW_SKIP;
    if (known.how != HOW_PLACE && !is_python(library) &&
        is_skipped_name(library, strlen("libOpenCL")))
        return known;
    // The call is before the address that it returns to.
    const uint64_t inside = (uint64_t)(uintptr_t)address - 1;
    Dwfl_Module *module = module_at(inside);
    Dwfl_Line *source = module ? dw.dwfl_module_getsrc(module, inside) : NULL;
    const char *path = source ? dw.dwfl_lineinfo(source, NULL, &line, NULL, NULL, NULL) : NULL;
    if (!path)
        return known;
    known.place = (struct place){keep_path(path), line};
    if (known.how == HOW_PLACE && is_skipped_file(path) &&
        !find_inlined(module, inside, &known.place))
        known.how = HOW_SKIP;
    return known;
}

static struct known know(void *address)
{
    static uint32_t count;
    struct known known = {.how = HOW_PLACE};
    layer_lock();
    struct address *kept = (struct address *)object_find(OBJECT_ADDRESS, address);
    if (kept)
        known = kept->known;
    layer_unlock();
    if (kept)
        return known;
    pthread_mutex_lock(&lock);
    known = look_at(address);
    pthread_mutex_unlock(&lock);
    layer_lock();
    if (count < MOST && !object_find(OBJECT_ADDRESS, address) &&
        (kept = object_add(OBJECT_ADDRESS, address, sizeof *kept))) {
        kept->known = known;
        count++;
    }
    layer_unlock();
    return known;
}

// Python. Its functions are those of the process's interpreter. A wrapper may have released the interpreter's lock, which is
// taken for as long as the frames are read; threads that are not Python's have none.

#define PYTHON(X)                                              \
    X(int, Py_IsInitialized, (void))                           \
    X(void *, PyGILState_GetThisThreadState, (void))           \
    X(int, PyGILState_Ensure, (void))                          \
    X(void, PyGILState_Release, (int))                         \
    X(void *, PyEval_GetFrame, (void))                         \
    X(void *, PyFrame_GetBack, (void *))                       \
    X(void *, PyFrame_GetCode, (void *))                       \
    X(int, PyFrame_GetLineNumber, (void *))                    \
    X(void *, PyObject_GetAttrString, (void *, const char *))  \
    X(void *, PyMapping_GetItemString, (void *, const char *)) \
    X(const char *, PyUnicode_AsUTF8, (void *))                \
    X(void, PyErr_Fetch, (void **, void **, void **))          \
    X(void, PyErr_Restore, (void *, void *, void *))           \
    X(void, Py_IncRef, (void *))                               \
    X(void, Py_DecRef, (void *))

static struct {
#define FIELD(result, name, parameters) result(*name) parameters;
    PYTHON(FIELD)
#undef FIELD
    int (*ends)(void); // whether the interpreter is being ended; NULL: not known
    bool there;
} py;

static void find_python(void)
{
    py.there = true;
#define FIND(result, name, parameters)               \
    *(void **)&py.name = dlsym(RTLD_DEFAULT, #name); \
    py.there = py.there && py.name;
    PYTHON(FIND)
#undef FIND
    *(void **)&py.ends = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    if (!py.ends)
        *(void **)&py.ends = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
}

// Whether the frame's module is of a wrapper's package. Its path does not tell: a program may lie in a folder of that name.
static bool is_skipped_module(void *frame)
{
    void *globals = py.PyObject_GetAttrString(frame, "f_globals");
    void *module = globals ? py.PyMapping_GetItemString(globals, "__name__") : NULL;
    const char *name = module ? py.PyUnicode_AsUTF8(module) : NULL;
    const bool skipped = name && is_skipped_name(name, strlen(name));
    if (module)
        py.Py_DecRef(module);
    if (globals)
        py.Py_DecRef(globals);
    return skipped;
}

// The place of a frame, unless it is of a wrapper.
static bool place_of_frame(void *frame, struct place *out)
{
    void *code = py.PyFrame_GetCode(frame);
    void *name = code ? py.PyObject_GetAttrString(code, "co_filename") : NULL;
    const char *path = name ? py.PyUnicode_AsUTF8(name) : NULL;
    const bool found = path && path[0] != '<' && !is_skipped_module(frame);
    if (found) {
        pthread_mutex_lock(&lock);
        *out = (struct place){keep_path(path), py.PyFrame_GetLineNumber(frame)};
        pthread_mutex_unlock(&lock);
    }
    if (name)
        py.Py_DecRef(name);
    if (code)
        py.Py_DecRef(code);
    return found;
}

static bool place_in_python(struct place *out)
{
    void *error[3];
    bool found = false;
    if (!py.there || !py.ends || !py.Py_IsInitialized() || py.ends() ||
        !py.PyGILState_GetThisThreadState())
        return false;
    const int state = py.PyGILState_Ensure();
    py.PyErr_Fetch(&error[0], &error[1], &error[2]);
    void *frame = py.PyEval_GetFrame();
    if (frame)
        py.Py_IncRef(frame);
    for (int depth = 0; frame && !found && depth < FRAMES; depth++) {
        found = place_of_frame(frame, out);
        void *back = found ? NULL : py.PyFrame_GetBack(frame);
        py.Py_DecRef(frame);
        frame = back;
    }
    if (frame)
        py.Py_DecRef(frame);
    py.PyErr_Restore(error[0], error[1], error[2]);
    py.PyGILState_Release(state);
    return found;
}

// The first frame above `address` that is of no wrapper.
static struct place walk(void *address, struct place nearest)
{
    void *frames[FRAMES];
    struct place place;
    const int count = backtrace(frames, FRAMES);
    int i = 0;
    while (i < count && frames[i] != address)
        i++;
    for (i++; i < count; i++) {
        const struct known known = know(frames[i]);
        if (known.how == HOW_PYTHON && place_in_python(&place))
            return place;
        if (known.how == HOW_PLACE)
            return known.place;
    }
    return nearest;
}

const char *place_keep(const char *text)
{
    pthread_mutex_lock(&lock);
    const char *kept = keep_text(text);
    pthread_mutex_unlock(&lock);
    return kept ? kept : "";
}

struct place place_find(void *address)
{
    struct place place;
    const struct known known = know(address);
    if (known.how == HOW_PLACE)
        return known.place;
    if (known.how == HOW_PYTHON && place_in_python(&place))
        return place;
    return walk(address, known.place);
}

void place_init(void)
{
    const char *names = getenv("WEIR_OPENCL_SKIP");
    texts = weir_names_create();
    if (names)
        add_skips(names);
    find_python();
}
