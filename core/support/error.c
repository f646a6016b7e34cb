// Errors, the log callback, and the calling thread.
#include "core/support/error.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/sized.h"
#include "base/text.h"
#include "core/support/debug.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

// The log callback. Function, user pointer and level change together, so they are in one
// structure guarded by a lock; there is also a copy of the level, so that a message that is
// not logged costs one load.

static struct weir_lock lock = WEIR_LOCK_INITIALIZER(&weir__locks[WEIR__LOCK_LOG]);
static struct {
    weir_log_function function;
    void *user;
} target;
static atomic_int limit;
static int printed; // the level to print if there is no callback; with the lock held
static atomic_bool is_telling;

void weir_log_set(weir_log_function function, void *user, weir_log_level level)
{
    weir_lock_take(&lock);
    target.function = function;
    target.user = user;
    atomic_store(&limit, function ? (int)level : printed);
    weir_lock_release(&lock);
}

void weir__log_print(int level, bool tells)
{
    weir_lock_take(&lock);
    printed = level > printed ? level : printed;
    if (!target.function)
        atomic_store(&limit, printed);
    weir_lock_release(&lock);
    if (tells)
        atomic_store(&is_telling, true);
}

// One call, so that lines of several threads do not mix.
static void print(void *user, weir_log_level level, const char *source, const char *message)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    const bool is_core = strcmp(source, "core") == 0;
    fprintf(stderr, "weir: %s%s%s: %s\n", is_core ? "" : source, is_core ? "" : ": ",
            names[level >= WEIR_LOG_ERROR && level <= WEIR_LOG_DEBUG ? level - 1 : 3], message);
}

void weir__log(weir_log_level level, const char *source, const char *message)
{
    if ((int)level > atomic_load_explicit(&limit, memory_order_relaxed))
        return;
    weir_lock_take(&lock);
    weir_log_function function = target.function;
    void *user = target.user;
    weir_lock_release(&lock);
    function = function ? function : print;
    if (weir_text_is_clean(message, "\n\t")) {
        function(user, level, source, message);
        return;
    }
    // Most callbacks print the message, which contains texts of users and of files. If memory runs out it is truncated.
    char truncated[1024];
    char *whole = weir_text_escaped(message, "\n\t");
    if (!whole)
        weir_text_escape(truncated, sizeof truncated, message, "\n\t");
    function(user, level, source, whole ? whole : truncated);
    free(whole);
}

// Status names and the per-thread error detail. The detail is thread-local
// storage, so reporting an error never allocates and never fails.

// A program with newer headers reads, and copies, more than this library knows of.
static _Thread_local WEIR_SIZED_CELL(struct weir_error, error, WEIR_SIZED_ROOM_LARGE) last_cell;
#define last_error (last_cell.error)
static _Thread_local char last_text[2048];
static _Thread_local bool was_told; // last_error was

// Newlines in a compiler's log are kept.
#define KEPT "\n\t"

const char *weir_version(void)
{
    return WEIR_VERSION_STRING;
}

const char *weir_status_name(weir_status status)
{
    switch (status) {
#define WEIR_STATUS_NAME(name, value, text) \
    case name:                              \
        return #name;
        WEIR_STATUS_TABLE(WEIR_STATUS_NAME)
#undef WEIR_STATUS_NAME
    }
    return "unknown status";
}

const char *weir_status_text(weir_status status)
{
    switch (status) {
#define WEIR_STATUS_TEXT(name, value, text) \
    case name:                              \
        return text;
        WEIR_STATUS_TABLE(WEIR_STATUS_TEXT)
#undef WEIR_STATUS_TEXT
    }
    return "unknown status";
}

const struct weir_error *weir_last_error(void)
{
    return &last_error;
}

#define append(used, ...) weir_text_append(last_text, sizeof last_text, (used), __VA_ARGS__)

const char *weir_last_error_text(void)
{
    const struct weir_error *error = &last_error;
    size_t used = 0;

    last_text[0] = '\0';
    append(&used, "%s", error->message[0] ? error->message : weir_status_text(error->status));
    if (error->object[0])
        append(&used, " ['%s']", error->object);
    if (error->native_call[0])
        append(&used, " (%s returned %s, %" PRId64 ")", error->native_call,
               error->native_name[0] ? error->native_name : "an error", error->native_code);
    if (error->remedy[0])
        append(&used, "; %s", error->remedy);
    if (error->file)
        append(&used, " (%s:%d)", error->file, error->line);
    return last_text;
}

void weir__tell(void)
{
    if (!atomic_load_explicit(&is_telling, memory_order_relaxed) || was_told)
        return;
    was_told = true;
    weir__log(WEIR_LOG_ERROR, "core", weir_last_error_text());
}

weir_status weir__tell_refused(weir_status status, const char *call, const char *file, int line)
{
    char message[sizeof last_text + 192];
    if (!atomic_load_explicit(&is_telling, memory_order_relaxed))
        return status;
    snprintf(message, sizeof message, "%s was refused (%s:%d), because of an earlier failure: %s",
             call, file ? file : "?", line, weir_last_error_text());
    weir__log(WEIR_LOG_ERROR, "core", message);
    was_told = true;
    return status;
}

static void clean(char *text, size_t size, const char *kept)
{
    char raw[sizeof last_error.message];
    if (weir_text_is_clean(text, kept))
        return;
    snprintf(raw, sizeof raw, "%s", text);
    weir_text_escape(text, size, raw, kept);
}

// Texts come from labels, files and drivers, and end in a terminal.
static void clean_all(struct weir_error *error)
{
    clean(error->message, sizeof error->message, KEPT);
    clean(error->object, sizeof error->object, "");
    clean(error->native_call, sizeof error->native_call, KEPT);
    clean(error->native_name, sizeof error->native_name, KEPT);
    clean(error->remedy, sizeof error->remedy, KEPT);
}

void weir__report_at(const char *file, int line, const char *object, weir_status status,
                     const char *remedy, const char *format, ...)
{
    // The arguments may point into the old detail, so the new one is built in a
    // separate structure.
    struct weir_error error = {.status = status, .file = weir__file_name(file), .line = line};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error.message, sizeof error.message, format, arguments);
    va_end(arguments);
    if (object)
        snprintf(error.object, sizeof error.object, "%s", object);
    if (remedy)
        snprintf(error.remedy, sizeof error.remedy, "%s", remedy);
    clean_all(&error);
    last_error = error;
    was_told = false;
    if (file && status < 0)
        weir__tell();
}

int weir__name_length(const char *function)
{
    const size_t length = strlen(function);
    const bool suffixed = length > 3 && strcmp(function + length - 3, "_at") == 0;
    return (int)(suffixed ? length - 3 : length);
}

// The end of a path tells one file from another.
const char *weir__place_text(char text[WEIR__PLACE_SIZE], const char *before, const char *file,
                             int line, const char *after)
{
    const size_t room = WEIR__PLACE_SIZE - strlen(before) - strlen(after) - sizeof "…:2147483647";
    const size_t length = file ? strlen(file) : 0;
    const bool is_cut = length > room;
    text[0] = '\0';
    if (file)
        snprintf(text, WEIR__PLACE_SIZE, "%s%s%s:%d%s", before, is_cut ? "…" : "",
                 file + (is_cut ? length - room : 0), line, after);
    return text;
}

const char *weir__null_remedy(const char *name)
{
    static const char *const created[] = {"queue", "buffer", "program", "kernel",
                                          "graph", "pool",   "comm"};
    if (strncmp(name, "out_", 4) == 0)
        return "pass the address of a variable for it";
    if (strstr(name, "->"))
        return "set it";
    if (strcmp(name, "runtime") == 0 || strcmp(name, "device") == 0)
        return "open it first; closing it sets the pointer to NULL";
    for (size_t i = 0; i < sizeof created / sizeof *created; i++)
        if (strcmp(name, created[i]) == 0)
            return "create it first; destroying it sets the pointer to NULL";
    return "pass its address";
}

void weir__report_broken(const char *file, int line, const char *object, const char *function,
                         const char *condition)
{
    static const char pointer[] = "abcdefghijklmnopqrstuvwxyz_->[]";
    const int length = weir__name_length(function);
    const size_t name = strcspn(condition, " ");
    if (strncmp(condition + name, " || ", 4) == 0 && strstr(condition, "count == 0"))
        weir__report_at(file, line, object, WEIR_ERROR_INVALID, "pass the array, or a count of 0",
                        "%.*s: %.*s is NULL, and its count is not 0", length, function, (int)name,
                        condition);
    else if (condition[strspn(condition, pointer)])
        weir__report_at(file, line, object, WEIR_ERROR_INVALID, NULL, "%.*s: this must hold: %s",
                        length, function, condition);
    else
        weir__report_at(file, line, object, WEIR_ERROR_INVALID, weir__null_remedy(condition),
                        "%.*s: %s is NULL", length, function, condition);
    weir__tell();
}

weir_status weir__error_take(const struct weir_error *error, size_t size)
{
    if (error != &last_error) {
        weir_sized_write(&last_error, sizeof last_error, error, size);
        last_error.file = weir__file_name(last_error.file);
        clean_all(&last_error);
        was_told = false;
    }
    return last_error.status;
}

weir_status weir__error_set(const struct weir_error *error)
{
    return weir__error_take(error, sizeof *error);
}

weir_status weir_error_set_sized(const struct weir_error *error, size_t size)
{
    static const struct weir_error none;
    return error ? weir__error_take(error, size) : weir__error_set(&none);
}

struct weir_error weir__error_of(weir_status status)
{
    struct weir_error detail = {.status = status};
    if (last_error.status == status)
        detail = last_error;
    if (!detail.message[0])
        snprintf(detail.message, sizeof detail.message, "%s", weir_status_text(status));
    return detail;
}

bool weir__params_read(const char *file, int line, const char *function, const char *type,
                       const void *params, void *known, size_t size)
{
    struct weir_sized_refusal refusal;
    char caller[64];
    if (weir_sized_read(function, type, params, known, size, &refusal))
        return true;
    snprintf(caller, sizeof caller, "%.*s", weir__name_length(function), function);
    (void)weir_sized_read(caller, type, params, known, size, &refusal);
    weir__report_at(file, line, NULL, WEIR_ERROR_INVALID, refusal.remedy, "%s", refusal.message);
    return false;
}

void weir__error_place(weir_status status, const char *object, const char *file, int line)
{
    if (last_error.status != status)
        weir__report(status, NULL, "%s", weir_status_text(status));
    if (object && !last_error.object[0]) {
        snprintf(last_error.object, sizeof last_error.object, "%s", object);
        clean(last_error.object, sizeof last_error.object, "");
    }
    if (file && !last_error.file) {
        last_error.file = weir__file_name(file);
        last_error.line = line;
    }
    if (file)
        weir__tell();
}

// What the calling thread is in.

static _Thread_local enum weir__call inside;

bool weir__in_host_call(void)
{
    return inside != WEIR__NO_CALL;
}

bool weir__in_native_call(void)
{
    return inside == WEIR__NATIVE_CALL;
}

weir_status weir__refuse_host_call(const char *function, const char *file, int line,
                                   const char *label, const char *remedy)
{
    weir__report_at(file, line, label, WEIR_ERROR_INVALID, remedy,
                    "%.*s: a host call may submit work, and may not wait",
                    weir__name_length(function), function);
    weir__tell();
    return WEIR_ERROR_INVALID;
}

enum weir__call weir__enter_call(enum weir__call call)
{
    const enum weir__call outer = inside;
    inside = call;
    return outer;
}

const struct weir_lock_kind weir__locks[] = {
#define WEIR__LOCK(name, text) {text, WEIR__LOCK_##name},
    WEIR__LOCKS(WEIR__LOCK)
#undef WEIR__LOCK
};
