// Calls are told apart by the object that they come from: Weir's libraries and modules, drivers and
// what those bring along have locks of their own, which say nothing about the program's order.
//
// The last call of a function may be a jump, which leaves the address of the function's own caller: a
// program's callback that ends with pthread_mutex_unlock() seems to be called by a driver. So the calling
// instruction counts too: a library that locks calls the function by its name, and the callback by a pointer.
//
// _dl_find_object() (glibc 2.35) takes no lock, which dladdr() does: a thread may hold the dynamic
// linker's and wait for one of the program's.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "locks/parts.h"

// struct dl_find_object of newer C libraries: what is read of it stands first.
union found {
    struct {
        unsigned long long flags;
        void *begin, *end;
        struct link_map *map;
    } object;
    char room[256];
};

typedef int find_function(void *address, union found *out_found);

// The beginnings of the names of files whose calls are not the program's.
static const char *const others[] = {
    // Weir
    "libweir.so",
    "libweir_",
    "weir_cuda.so",
    "weir_opencl.so",
    "weir_null.so",
    "weir_check.so",
    "weir_fault.so",
    "weir_perturb.so",
    "weir_sim.so",
    "weir_trace.so",
    "weir_local.so",
    "weir_mpi.so",
    // OpenCL
    "libOpenCL",
    "libpocl",
    "libLLVM",
    "libclang",
    "libintelocl",
    "libcpu_device",
    "libtask_executor",
    "libcl_logger",
    "libOclCpu",
    "libigdrcl",
    "libigc",
    "libamdocl",
    "libhsa-runtime",
    "libMesaOpenCL",
    "libRusticlOpenCL",
    // CUDA
    "libcuda.so",
    "libcudart",
    "libcupti",
    "libnccl",
    "libnvidia-",
    "libnvrtc",
    // MPI
    "libmpi",
    "libmca_",
    "libopen-pal",
    "libopen-rte",
    "libpmix",
    "libprrte",
    "libhwloc",
    "libuc",
    "libfabric",
};

static find_function *find;

static const char *more; // what the environment adds: names, separated by ':'

static bool idle =
    true; // until the constructor, and where the thread sanitizer has the same functions

__attribute__((constructor)) static void look_for_find(void)
{
    *(void **)&find = dlsym(RTLD_DEFAULT, "_dl_find_object");
    more = getenv("WEIR_LOCKS_OTHERS");
    idle = !find || dlsym(RTLD_DEFAULT, "__tsan_init");
}

static bool is_added(const char *name)
{
    size_t used;
    for (const char *at = more; at && *at; at += used + (at[used] == ':')) {
        used = strcspn(at, ":");
        if (used && strncmp(name, at, used) == 0)
            return true;
    }
    return false;
}

static bool is_other(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strncmp(name, others[i], strlen(others[i])) == 0)
            return true;
    return is_added(name);
}

_Atomic uintptr_t locks_places[LOCKS_PLACES];

static bool find_object(const void *address, union found *out_found)
{
    return find && find((void *)(uintptr_t)address, out_found) == 0;
}

#ifdef __x86_64__

static bool is_within(const union found *found, const unsigned char *address, size_t size)
{
    const unsigned char *begin = found->object.begin, *end = found->object.end;
    return address >= begin && address < end && size <= (size_t)(end - address);
}

static const unsigned char *relative(const unsigned char *next)
{
    int32_t distance;
    memcpy(&distance, next - sizeof distance, sizeof distance);
    return next + distance;
}

// Whether the pointer, of another object, leads to this library.
static bool leads_here(const union found *object, const unsigned char *slot)
{
    union found found, own;
    void *function;
    if (!is_within(object, slot, sizeof function))
        return false;
    memcpy(&function, slot, sizeof function);
    return find_object(function, &found) && find_object((const void *)locks_places, &own) &&
           found.object.map == own.object.map;
}

// An entry of a procedure linkage table: endbr64 or not, bnd or not, a jump by a slot.
static bool entry_leads_here(const union found *object, const unsigned char *entry)
{
    static const unsigned char landing[] = {0xf3, 0x0f, 0x1e, 0xfa};
    if (!is_within(object, entry, 16))
        return false;
    if (memcmp(entry, landing, sizeof landing) == 0)
        entry += sizeof landing;
    if (*entry == 0xf2)
        entry++;
    return entry[0] == 0xff && entry[1] == 0x25 && leads_here(object, relative(entry + 6));
}

// Whether the instruction before `next` calls a function of this library by its name.
static bool calls_by_name(const union found *object, const unsigned char *next)
{
    if (!is_within(object, next - 6, 6))
        return false;
    if (next[-6] == 0xff && next[-5] == 0x15)
        return leads_here(object, relative(next));
    return next[-5] == 0xe8 && entry_leads_here(object, relative(next));
}

#else

static bool calls_by_name(const union found *object, const unsigned char *next)
{
    (void)object;
    (void)next;
    return true;
}

#endif

bool locks_can_tell(const void *code)
{
    union found found;
    return !idle && find_object(code, &found) && is_other(found.object.map->l_name);
}

// Code that belongs to no object was made by the program.
static bool look_at(const void *address)
{
    union found found;
    return !find_object(address, &found) || !is_other(found.object.map->l_name) ||
           !calls_by_name(&found, address);
}

bool locks_look_at(const void *address)
{
    const uintptr_t number = (uintptr_t)address;
    if (idle)
        return false;
    const bool is_program = look_at(address);
    atomic_store_explicit(locks_place_of(number), number << 1 | is_program, memory_order_relaxed);
    return is_program;
}

// An object has gone, and another one may come to its place.
static void forget_callers(void)
{
    for (size_t i = 0; i < LOCKS_PLACES; i++)
        atomic_store_explicit(&locks_places[i], 0, memory_order_relaxed);
}

LOCKS_EXPORTED int dlclose(void *object)
{
    const int error = LOCKS_REAL(dlclose)(object);
    forget_callers();
    return error;
}
