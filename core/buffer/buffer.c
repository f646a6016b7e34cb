// Buffers, and the host's access to them.
#define _GNU_SOURCE // memfd_create
#include "core/buffer/buffer.h"

#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/object/program.h"
#include "core/queue/queue.h"
#include "core/support/memory.h"

// A view: what the host uses of a HOST buffer in debug mode, whose pages are open during accesses. It is a slot of a
// table that is never freed, since the handler of the fault reads it without a lock: what it says may be wrong only if
// the buffer changes at that moment.

enum {
    VIEWS = 1024
};

struct page {
    uint16_t reads; // open accesses
    uint16_t writes;
};

enum state {
    FREE,
    IN_USE,
    CLOSED, // the buffer is destroyed
    GONE,   // and so is the backend's part
};

struct weir__view {
    _Atomic(enum state) state;
    char *base;   // for the host
    void *memory; // for the backend
    size_t size;  // of both, in whole pages
    size_t page_bytes;
    struct page *pages;
    int open_count;
    bool always_open; // the system refused to close pages
    char name[256];   // "the HOST buffer 'frames', created at main.c:12"
    // ", which began at main.c:14": the first access that is open; and " at main.c:16", the last end.
    char opened[WEIR__PLACE_SIZE];
    char ended[WEIR__PLACE_SIZE];
};

static struct weir__view views[VIEWS];
static struct weir_lock lock = WEIR_LOCK_INITIALIZER(&weir__locks[WEIR__LOCK_DEBUG]);
static unsigned next_gone; // the views that are gone are used again in turn
static struct sigaction earlier;

// The fault: of an instruction that uses a view, so the C library's heap is not locked on this thread.

static void tell_fault(const struct weir__view *view, size_t offset)
{
    char text[768];
    const enum state state = atomic_load(&view->state);
    const struct page *page = state == IN_USE ? &view->pages[offset / view->page_bytes] : NULL;
    int length;
    if (state != IN_USE)
        length = snprintf(text, sizeof text,
                          "weir: error: the host uses byte %zu of %s, after its destruction; let "
                          "its pointer go with the buffer\n",
                          offset, view->name);
    else if (page->reads > 0)
        length = snprintf(text, sizeof text,
                          "weir: error: the host writes byte %zu of %s, during an access of "
                          "WEIR_ACCESS_READ%s; begin it with WEIR_ACCESS_WRITE or "
                          "WEIR_ACCESS_READ_WRITE\n",
                          offset, view->name, view->opened);
    else
        length = snprintf(text, sizeof text,
                          "weir: error: the host uses byte %zu of %s%s%s, while no access has it "
                          "open; call weir_host_begin() with that range first, and use its pointer "
                          "until weir_host_end()\n",
                          offset, view->name, view->ended[0] ? ", after weir_host_end()" : "",
                          view->ended);
    // Nothing is left to do if this fails.
    const size_t size = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    const ssize_t written = write(STDERR_FILENO, text, size);
    (void)written;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    const uintptr_t address = (uintptr_t)info->si_addr;
    for (size_t i = 0; i < VIEWS; i++) {
        const struct weir__view *view = &views[i];
        const uintptr_t base = (uintptr_t)view->base;
        if (atomic_load(&view->state) == FREE || address < base || address - base >= view->size)
            continue;
        tell_fault(view, address - base);
        sigaction(SIGSEGV, &earlier,
                  NULL); // the instruction faults again, for what was there before
        return;
    }
    if (earlier.sa_flags & SA_SIGINFO)
        earlier.sa_sigaction(signal, info, context);
    else if (earlier.sa_handler == SIG_DFL || earlier.sa_handler == SIG_IGN)
        sigaction(SIGSEGV, &earlier, NULL);
    else
        earlier.sa_handler(signal);
}

static void watch(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    action.sa_sigaction = on_fault;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &earlier);
}

// Views. With the lock held down to the next such line.

static struct weir__view *find_slot(void)
{
    for (size_t i = 0; i < VIEWS; i++)
        if (atomic_load(&views[i].state) == FREE)
            return &views[i];
    for (size_t i = 0; i < VIEWS; i++) {
        struct weir__view *view = &views[next_gone++ % VIEWS];
        if (atomic_load(&view->state) != GONE)
            continue;
        atomic_store(&view->state, FREE);
        munmap(view->base, view->size);
        return view;
    }
    return NULL;
}

static bool map(struct weir__view *view, size_t size)
{
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    if (size > SIZE_MAX / 2)
        return false;
    const size_t whole = (size + page_bytes - 1) / page_bytes * page_bytes;
    const int file = memfd_create("weir", MFD_CLOEXEC);
    if (file < 0)
        return false;
    void *memory = MAP_FAILED, *base = MAP_FAILED;
    struct page *pages = weir__allocate(whole / page_bytes * sizeof *pages);
    if (pages && ftruncate(file, (off_t)whole) == 0) {
        memory = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        base = mmap(NULL, whole, PROT_NONE, MAP_SHARED, file, 0);
    }
    close(file);
    if (memory != MAP_FAILED && base != MAP_FAILED) {
        view->base = base;
        view->memory = memory;
        view->size = whole;
        view->page_bytes = page_bytes;
        view->pages = pages;
        return true;
    }
    if (memory != MAP_FAILED)
        munmap(memory, whole);
    if (base != MAP_FAILED)
        munmap(base, whole);
    weir__release(pages);
    return false;
}

static int protection_of(const struct page *page)
{
    return page->writes > 0 ? PROT_READ | PROT_WRITE : page->reads > 0 ? PROT_READ : PROT_NONE;
}

// The pages from `first` to before `end` as their accesses want them. A system that refuses, such as
// at its limit of mappings, leaves the view open.
static void protect(struct weir__view *view, size_t first, size_t end)
{
    for (size_t i = first, begin = first; i < end && !view->always_open; i++) {
        const int protection = protection_of(&view->pages[i]);
        if (i + 1 < end && protection_of(&view->pages[i + 1]) == protection)
            continue;
        if (mprotect(view->base + begin * view->page_bytes, (i + 1 - begin) * view->page_bytes,
                     protection) != 0)
            view->always_open = true;
        begin = i + 1;
    }
    if (view->always_open)
        mprotect(view->base, view->size, PROT_READ | PROT_WRITE);
}

static void change(struct weir__view *view, size_t offset, size_t size, weir_access access,
                   int change)
{
    if (size == 0)
        return;
    const size_t first = offset / view->page_bytes;
    const size_t end = (offset + size - 1) / view->page_bytes + 1;
    for (size_t i = first; i < end; i++) {
        struct page *page = &view->pages[i];
        if (access & WEIR_ACCESS_READ && (change > 0 || page->reads > 0))
            page->reads = (uint16_t)(page->reads + change);
        if (access & WEIR_ACCESS_WRITE && (change > 0 || page->writes > 0))
            page->writes = (uint16_t)(page->writes + change);
    }
    protect(view, first, end);
}

// With the lock free from here on.

// NULL if the system or the limit of views refuses one. `*out_memory` is for the backend, until
// view_destroy().
static struct weir__view *view_create(size_t size, void **out_memory)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
    weir_lock_take(&lock);
    struct weir__view *view = find_slot();
    if (view && map(view, size)) {
        view->open_count = 0;
        view->always_open = false;
        view->name[0] = view->opened[0] = view->ended[0] = '\0';
        *out_memory = view->memory;
        atomic_store(&view->state, IN_USE);
    } else {
        view = NULL;
    }
    weir_lock_release(&lock);
    return view;
}

// The host begins (`by` 1) or ends (-1) an access. Opens the range, or closes what no other access has open. The range is
// inside the buffer.
static void view_access(struct weir__view *view, size_t offset, size_t size, weir_access access,
                        int by, const char *file, int line)
{
    weir_lock_take(&lock);
    if (by < 0)
        weir__place_text(view->ended, " at ", file, line, "");
    else if (view->open_count == 0)
        weir__place_text(view->opened, ", which began at ", file, line, "");
    if (by > 0 || view->open_count > 0)
        view->open_count += by;
    change(view, offset, size, access, by);
    weir_lock_release(&lock);
}

// The buffer is destroyed; the log is told of an access that has not ended.
static void view_close(struct weir__view *view)
{
    char message[640];
    weir_lock_take(&lock);
    const int open_count = view->open_count;
    snprintf(
        message, sizeof message,
        "%s is destroyed during a host access%s; call weir_host_end() with the same range before "
        "the work that needs the bytes",
        view->name, view->opened);
    atomic_store(&view->state, CLOSED);
    mprotect(view->base, view->size, PROT_NONE);
    weir_lock_release(&lock);
    if (open_count > 0)
        weir__log(WEIR_LOG_WARNING, "core", message);
}

// The backend does not use the memory any more. The addresses stay closed until their room is needed.
static void view_destroy(struct weir__view *view)
{
    weir_lock_take(&lock);
    munmap(view->memory, view->size);
    weir__release(view->pages);
    view->pages = NULL;
    // The pages go, the addresses stay.
    mmap(view->base, view->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
         -1, 0);
    atomic_store(&view->state, GONE);
    weir_lock_release(&lock);
}

size_t weir_buffer_size(const weir_buffer *buffer)
{
    return WEIR_IS_ALIVE(buffer) ? buffer->size : 0;
}

weir_placement weir_buffer_placement(const weir_buffer *buffer)
{
    return WEIR_IS_ALIVE(buffer) ? buffer->placement : WEIR_PLACE_DEVICE;
}

weir_status weir__buffer_check_size(weir_device *device, const char *label, size_t size)
{
    if (size == 0)
        return weir__invalid(label, "ask for one byte at least",
                             "a buffer of 0 bytes was asked for");
    if (size > device->limits.max_buffer_bytes)
        return weir__invalid(label, "split it into several buffers",
                             "a buffer of %zu bytes was asked for; the device's limit is %" PRIu64,
                             size, device->limits.max_buffer_bytes);
    return WEIR_OK;
}

static void trim(const struct weir_link *backend, weir_device *device)
{
    const struct weir_error cause = *weir_last_error();
    (void)backend->ops->device_trim(backend, device);
    weir__error_set(&cause);
}

// One link's create. A backend may keep memory of destroyed buffers: if there is none for a new one, it gives that back
// and is asked again. After a second refusal too, since a driver's pool may keep what it had got until then.
static weir_status create_in(const struct weir_link *link, weir_device *device, weir_buffer *buffer,
                             const struct weir_buffer_setup *setup, void **out_data,
                             void **out_pointer)
{
    const struct weir_error before = *weir_last_error();
    weir_status status =
        link->ops->buffer_create(link, device, buffer, setup, out_data, out_pointer);
    if (status != WEIR_ERROR_OUT_OF_MEMORY || link->next)
        return status;
    trim(link, device);
    status = link->ops->buffer_create(link, device, buffer, setup, out_data, out_pointer);
    if (status == WEIR_OK)
        weir__error_set(&before);
    else
        trim(link, device);
    return status;
}

weir_status weir__buffer_make(weir_device *device, const char *label,
                              const struct weir_buffer_setup *setup, bool internal,
                              weir_buffer **out_buffer)
{
    weir_status status = weir__buffer_check_size(device, label, setup->size);
    if (status < 0)
        return status;
    weir__device_reap(device);
    weir_buffer *buffer = weir__member_allocate(device, &weir__buffer_class, sizeof *buffer, label);
    if (!buffer)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a buffer object");
    buffer->size = setup->size;
    buffer->placement = setup->placement;
    buffer->member.internal = internal;
    atomic_init(&buffer->holders, 1);

    void *pointer = NULL;
    WEIR__CREATE_ALONG(status, device->chain, device->chain->count, buffer->member.object.data,
                       buffer, buffer, create_in(link, device, buffer, setup, slot, &pointer));
    if (status < 0) {
        weir__error_place(status, label, NULL, 0);
        weir__member_free(&buffer->member);
        return status;
    }
    buffer->pointer = pointer;
    weir__member_enlist(&buffer->member);
    *out_buffer = buffer;
    return WEIR_OK;
}

static weir_status check_placement(const weir_device *device, const char *label,
                                   weir_placement placement)
{
    if (placement == WEIR_PLACE_MANAGED && !device->limits.managed_memory)
        return weir__fail_at(
            NULL, 0, label, WEIR_ERROR_UNSUPPORTED,
            "use a DEVICE buffer and a HOST buffer, with copies between them, or "
            "ask limits.managed_memory first",
            "weir_buffer_create: device '%s' has no MANAGED memory that the host may "
            "use while the device works",
            device->info.name);
    if ((unsigned)placement > WEIR_PLACE_MANAGED)
        return weir__invalid(label, "use WEIR_PLACE_DEVICE, WEIR_PLACE_HOST or WEIR_PLACE_MANAGED",
                             "weir_buffer_create: %d is no placement", (int)placement);
    return WEIR_OK;
}

// A HOST buffer over memory of the library's, of which the host uses a view. A plugin that looks at host
// accesses takes such memory for the program's. False: nothing was created.
WEIR_COLD static bool make_viewed(weir_device *device, const char *label,
                                  const struct weir_buffer_setup *setup, weir_buffer **out_buffer,
                                  const char *file, int line)
{
    struct weir_buffer_setup wrapped = *setup;
    char place[WEIR__PLACE_SIZE];
    struct weir__view *view =
        weir__takes_notes(device) ? NULL : view_create(setup->size, &wrapped.user_pointer);
    const struct weir_error before = *weir_last_error();
    if (!view)
        return false;
    if (weir__buffer_make(device, label, &wrapped, false, out_buffer) < 0) {
        weir__error_set(&before);
        view_close(view);
        view_destroy(view);
        return false;
    }
    (*out_buffer)->view = view;
    weir_lock_take(&lock);
    snprintf(view->name, sizeof view->name, "the HOST buffer '%.63s'%s",
             weir__label_or_none((*out_buffer)->member.object.label),
             weir__place_text(place, ", created at ", file, line, ""));
    weir_lock_release(&lock);
    return true;
}

weir_status weir_buffer_create_at(weir_device *device, const struct weir_buffer_params *params,
                                  weir_buffer **out_buffer, const char *file, int line)
{
    struct weir_buffer_params known;
    WEIR_ENTER_FOR(file, line, out_buffer, device);
    WEIR_REQUIRE_AT(file, line, NULL, params);
    WEIR_READ_PARAMS(file, line, weir_buffer_params, params, &known);
    weir_status status = check_placement(device, params->label, params->placement);
    if (status < 0)
        return weir__placed(status, file, line);
    const struct weir_buffer_setup setup = {.struct_size = sizeof setup,
                                            .size = params->size,
                                            .placement = params->placement};
    if (!weir__debugging() || setup.placement != WEIR_PLACE_HOST ||
        !make_viewed(device, params->label, &setup, out_buffer, file, line))
        status = weir__buffer_make(device, params->label, &setup, false, out_buffer);
    WEIR_RETURN_CREATED(file, line, out_buffer, status);
}

weir_status weir_buffer_wrap_at(weir_device *device, const struct weir_wrap_params *params,
                                weir_buffer **out_buffer, const char *file, int line)
{
    struct weir_wrap_params known;
    WEIR_ENTER_FOR(file, line, out_buffer, device);
    WEIR_REQUIRE_AT(file, line, NULL, params);
    WEIR_READ_PARAMS(file, line, weir_wrap_params, params, &known);
    WEIR_REQUIRE_AT(file, line, params->label, params->pointer);
    if (params->size > UINTPTR_MAX - (uintptr_t)params->pointer)
        return weir__fail_at(file, line, params->label, WEIR_ERROR_INVALID,
                             "pass the memory's own size",
                             "weir_buffer_wrap: %zu bytes at %p go past the end of all addresses",
                             params->size, params->pointer);
    const struct weir_buffer_setup setup = {.struct_size = sizeof setup,
                                            .size = params->size,
                                            .placement = WEIR_PLACE_HOST,
                                            .user_pointer = params->pointer};
    weir_status status = weir__buffer_make(device, params->label, &setup, false, out_buffer);
    if (status == WEIR_OK) {
        weir__debug_wraps(*out_buffer, params->pointer, params->size);
        weir__member_place(&(*out_buffer)->member, file, line);
    }
    return weir__placed(status, file, line);
}

void weir_buffer_destroy_at(weir_buffer **buffer, const char *file, int line)
{
    if (!buffer || !*buffer || !WEIR_MAY_END(*buffer, file, line))
        return;
    weir_buffer *gone = *buffer;
    *buffer = NULL;
    if (gone->leave_pool && !gone->leave_pool(gone))
        return;
    weir__debug_end(gone, file, line);
    if (gone->view)
        view_close(gone->view);
    atomic_store(&gone->abandoned, true);
    gone->size = 0; // what still has the pointer is refused, as long as the memory is kept
    weir__buffer_unhold(gone);
}

void weir__buffer_unhold(weir_buffer *buffer)
{
    if (atomic_fetch_sub(&buffer->holders, 1) == 1)
        weir__member_retire(&buffer->member);
}

static void finalize(struct weir__member *member)
{
    weir_buffer *buffer = (weir_buffer *)(void *)member;
    void (*gone)(void *user) = buffer->gone;
    void *user = buffer->gone_user;
    const struct weir__chain *chain = buffer->member.device->chain;
    WEIR__DESTROY_ALONG(chain, chain->count, buffer, buffer);
    if (buffer->view)
        view_destroy(buffer->view);
    weir__member_free(&buffer->member);
    if (gone)
        gone(user);
}

const struct weir__class weir__buffer_class = {.name = "buffer", .finalize = finalize};

static weir_status check_host_use(const char *function, weir_buffer *buffer, size_t offset,
                                  size_t size, weir_access access, const char *file, int line)
{
    WEIR_ENTER_OF(function, file, line, buffer);
    if (!buffer)
        return weir__fail_at(file, line, NULL, WEIR_ERROR_INVALID, weir__null_remedy("buffer"),
                             "%s: buffer is NULL", function);
    const char *label = buffer->member.object.label;
    if (buffer->placement == WEIR_PLACE_DEVICE)
        return weir__fail_at(file, line, label, WEIR_ERROR_INVALID,
                             "copy to a HOST buffer, or use weir_download()",
                             "%s: the host cannot use a DEVICE buffer's memory", function);
    if (access < WEIR_ACCESS_READ || access > WEIR_ACCESS_READ_WRITE)
        return weir__fail_at(file, line, label, WEIR_ERROR_INVALID,
                             "pass WEIR_ACCESS_READ or its kin",
                             "%s: access %d is none of weir_access", function, (int)access);
    return weir__buffer_check_range(buffer, &(struct weir__role){function, NULL}, offset, size,
                                    file, line);
}

weir_status weir_host_begin_at(weir_buffer *buffer, size_t offset, size_t size, weir_access access,
                               void **out_pointer, const char *file, int line)
{
    WEIR_REQUIRE_AT(file, line, NULL, out_pointer);
    *out_pointer = NULL;
    TRY(check_host_use("weir_host_begin", buffer, offset, size, access, file, line));
    if (weir__takes_notes(buffer->member.device))
        TRY(weir__host_note_access(WEIR_HOST_NOTE_BEGIN, buffer, offset, size, access,
                                   &(struct weir__host_caller){file, line, 0, NULL}));
    if (buffer->view)
        view_access(buffer->view, offset, size, access, 1, file, line);
    *out_pointer = (buffer->view ? buffer->view->base : buffer->pointer) + offset;
    return WEIR_OK;
}

weir_status weir_host_end_at(weir_buffer *buffer, size_t offset, size_t size, weir_access access,
                             const char *file, int line)
{
    TRY(check_host_use("weir_host_end", buffer, offset, size, access, file, line));
    if (weir__takes_notes(buffer->member.device))
        (void)weir__host_note_access(WEIR_HOST_NOTE_END, buffer, offset, size, access,
                                     &(struct weir__host_caller){file, line, 0, NULL});
    if (buffer->view)
        view_access(buffer->view, offset, size, access, -1, file, line);
    return WEIR_OK;
}

// Constants of programs. A constant is a DEVICE buffer like any other: OpenCL passes __constant
// memory as an argument, and on CUDA it is global memory. So this only finds the parameter and
// copies the bytes.

// Which of several parameters of one name is meant: the one with the strictest rule.
static int rank(const struct weir_parameter *parameter)
{
    return parameter->constant ? 3 : parameter->writable ? 1 : 2;
}

static void find_in(const struct weir_kernel_signature *signature, const char *name,
                    const struct weir_parameter **found, const char **nearest)
{
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        const struct weir_parameter *parameter = weir_signature_parameter(signature, i);
        if (parameter->kind != WEIR_PARAMETER_BUFFER)
            continue;
        if (!parameter->writable)
            *nearest = weir_text_nearer(name, *nearest, parameter->name);
        if (strcmp(parameter->name, name) == 0 && (!*found || rank(parameter) > rank(*found)))
            *found = parameter;
    }
}

static weir_status refuse_name(const weir_program *program, const char *name, const char *nearest)
{
    return weir__fail_at(NULL, 0, program->member.object.label, WEIR_ERROR_NOT_FOUND,
                         "a kernel takes it as a parameter: __constant float *NAME",
                         "no kernel of the program has a pointer parameter '%s'%s%s%s", name,
                         nearest ? "; did you mean '" : "", nearest ? nearest : "",
                         nearest ? "'?" : "");
}

static weir_status check_size(const weir_program *program, const struct weir_parameter *parameter,
                              size_t size)
{
    const uint64_t limit = program->member.device->limits.max_constant_bytes;
    const uint32_t unit = parameter->alignment;
    const char *label = program->member.object.label;
    if (size == 0 || (unit > 0 && size % unit))
        return weir__invalid(label, "pass the array's size in bytes: sizeof array",
                             "'%s' is a %s; it got %zu bytes", parameter->name,
                             parameter->type_name, size);
    if (parameter->constant && limit > 0 && size > limit)
        return weir__invalid(label, "make the parameter a const pointer to __global memory",
                             "'%s' is to have %zu bytes of __constant memory; the device's limit, "
                             "limits.max_constant_bytes, is %" PRIu64,
                             parameter->name, size, limit);
    return WEIR_OK;
}

static weir_status upload(weir_device *device, weir_buffer *buffer, const void *data, size_t size)
{
    weir_queue *queue;
    weir_status status = weir_queue_create_at(device, WEIR_PARAMS(weir_queue, .label = "constants"),
                                              &queue, NULL, 0);
    if (status == WEIR_OK)
        status = weir_upload_at(queue, buffer, 0, data, size, NULL, 0);
    weir_queue_destroy(&queue);
    return status;
}

weir_status weir_program_constant_at(weir_program *program, const char *name, const void *data,
                                     size_t size, weir_buffer **out_buffer, const char *file,
                                     int line)
{
    WEIR_ENTER_FOR(file, line, out_buffer, program);
    WEIR_REQUIRE_AT(file, line, program->member.object.label, name);
    WEIR_REQUIRE_AT(file, line, program->member.object.label, data);
    const char *nearest = NULL;
    const struct weir_parameter *parameter = NULL;
    for (uint32_t i = 0; i < program->signature_count; i++)
        find_in(weir__signature_at(program, i), name, &parameter, &nearest);
    if (!parameter)
        return weir__placed(refuse_name(program, name, nearest), file, line);
    if (parameter->writable)
        return weir__fail_at(file, line, program->member.object.label, WEIR_ERROR_INVALID,
                             "declare it const or __constant, or make a buffer for it",
                             "'%s' is a %s, which the kernel may write", name,
                             parameter->type_name);
    weir_status status = check_size(program, parameter, size);
    if (status < 0)
        return weir__placed(status, file, line);

    status = weir_buffer_create_at(program->member.device,
                                   WEIR_PARAMS(weir_buffer, .label = name, .size = size),
                                   out_buffer, file, line);
    if (status == WEIR_OK)
        status = upload(program->member.device, *out_buffer, data, size);
    if (status < 0)
        weir_buffer_destroy(out_buffer);
    return weir__placed(status, file, line);
}
