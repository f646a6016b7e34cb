// See the header. A view is a slot of a table that is never freed, since the handler of the fault reads it
// without a lock: what it says may be wrong only if the buffer changes at that moment.
#define _GNU_SOURCE // memfd_create
#include "core/buffer/view.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/support/error.h"
#include "core/support/file_name.h"
#include "core/support/locks.h"
#include "core/support/memory.h"

enum {
    VIEWS = 1024
};

struct page {
    uint16_t reads; // open accesses
    uint16_t writes;
};

struct place {
    const char *file;
    int line;
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
    unsigned open_count;
    bool always_open; // the system refused to close pages
    char label[64];
    struct place created;
    struct place opened; // by the first access that is open
    struct place ended;  // the last end
};

static struct weir__view views[VIEWS];
static struct weir_lock lock = WEIR_LOCK_INITIALIZER(&weir__locks[WEIR__LOCK_DEBUG]);
static unsigned next_gone; // the views that are gone are used again in turn
static struct sigaction earlier;

// The fault. Nothing that allocates or locks may be called.

struct line {
    char text[640];
    size_t used;
};

static void add(struct line *line, const char *text)
{
    while (*text && line->used + 1 < sizeof line->text)
        line->text[line->used++] = *text++;
}

static void add_number(struct line *line, size_t number)
{
    char digits[24];
    char *at = digits + sizeof digits - 1;
    *at = '\0';
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    add(line, at);
}

static void add_place(struct line *line, const char *verb, const struct place *place)
{
    if (!place->file)
        return;
    add(line, verb);
    add(line, place->file);
    add(line, ":");
    add_number(line, (size_t)place->line);
}

static void tell_fault(const struct weir__view *view, size_t offset)
{
    struct line line = {.used = 0};
    const enum state state = atomic_load(&view->state);
    const struct page *page = state == IN_USE ? &view->pages[offset / view->page_bytes] : NULL;
    const bool is_write = page && page->reads > 0;
    add(&line,
        is_write ? "weir: error: the host writes byte " : "weir: error: the host uses byte ");
    add_number(&line, offset);
    add(&line, " of the HOST buffer '");
    add(&line, view->label);
    add(&line, "'");
    add_place(&line, ", created at ", &view->created);
    if (state != IN_USE) {
        add(&line, ", after its destruction; let its pointer go with the buffer\n");
    } else if (is_write) {
        add_place(&line, ", during an access of WEIR_ACCESS_READ, which began at ", &view->opened);
        add(&line, "; begin it with WEIR_ACCESS_WRITE or WEIR_ACCESS_READ_WRITE\n");
    } else {
        add_place(&line, ", after weir_host_end() at ", &view->ended);
        add(&line, ", while no access has it open; call weir_host_begin() with that range first, "
                   "and use its pointer until weir_host_end()\n");
    }
    // Nothing is left to do if this fails.
    const ssize_t written = write(STDERR_FILENO, line.text, line.used);
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

struct weir__view *weir__view_create(size_t size, void **out_memory)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
    weir_lock_take(&lock);
    struct weir__view *view = find_slot();
    if (view && map(view, size)) {
        view->open_count = 0;
        view->always_open = false;
        view->label[0] = '\0';
        view->created = view->opened = view->ended = (struct place){NULL, 0};
        *out_memory = view->memory;
        atomic_store(&view->state, IN_USE);
    } else {
        view = NULL;
    }
    weir_lock_release(&lock);
    return view;
}

void weir__view_name(struct weir__view *view, const char *label, const char *file, int line)
{
    weir_lock_take(&lock);
    snprintf(view->label, sizeof view->label, "%.63s", weir__label_or_none(label));
    view->created = (struct place){weir__file_name(file), line};
    weir_lock_release(&lock);
}

void *weir__view_begin(struct weir__view *view, size_t offset, size_t size, weir_access access,
                       const char *file, int line)
{
    weir_lock_take(&lock);
    if (view->open_count++ == 0)
        view->opened = (struct place){weir__file_name(file), line};
    change(view, offset, size, access, 1);
    weir_lock_release(&lock);
    return view->base + offset;
}

void weir__view_end(struct weir__view *view, size_t offset, size_t size, weir_access access,
                    const char *file, int line)
{
    weir_lock_take(&lock);
    if (view->open_count > 0)
        view->open_count--;
    view->ended = (struct place){weir__file_name(file), line};
    change(view, offset, size, access, -1);
    weir_lock_release(&lock);
}

void weir__view_close(struct weir__view *view)
{
    char message[384];
    weir_lock_take(&lock);
    const unsigned open_count = view->open_count;
    const struct place opened = view->opened;
    atomic_store(&view->state, CLOSED);
    mprotect(view->base, view->size, PROT_NONE);
    weir_lock_release(&lock);
    if (open_count == 0)
        return;
    snprintf(message, sizeof message,
             "the HOST buffer '%s' is destroyed during a host access that began at %.160s:%d; call "
             "weir_host_end() with the same range before the work that needs the bytes",
             view->label, opened.file ? opened.file : "?", opened.line);
    weir__log(WEIR_LOG_WARNING, "core", message);
}

void weir__view_destroy(struct weir__view *view)
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
