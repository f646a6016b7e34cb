// One lock covers a whole load: loading is rare, dlopen holds its own lock as long, and a module is asked for its
// header by one thread at a time.
#define _GNU_SOURCE // dladdr1

#include "core/module/loader.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sized.h"
#include "base/text.h"
#include "core/support/error.h"
#include "core/support/thread.h"

// The minimum size of a key of a module's table.
#define SIZE_OF_KEY WEIR_SIZED_UP_TO(struct weir_key, help)

enum {
    MOST_KEYS = 1024,
    MOST_NAME_BYTES = 64
};

// Modules are trusted code, but may be incomplete: a missing slot is found and named here, once,
// instead of crashing at its first call.

// What slots must obey: a backend needs them, and both of a pair are set or neither, such as create and destroy. The second
// one of a slot without a partner is itself.
struct rule {
    const char *names[2];
    size_t slots[2];
    bool mandatory;
};

#define INDEX(slot) (offsetof(struct weir_module_ops, slot) / sizeof(void (*)(void)))
#define RULE(first, second, mandatory)                              \
    {                                                               \
        {#first, #second}, {INDEX(first), INDEX(second)}, mandatory \
    }

static const struct rule rules[] = {
    RULE(open, close, true),
    RULE(device_count, device_describe, true),
    RULE(device_create, device_destroy, true),
    RULE(device_limits, device_limits, true),
    RULE(queue_create, queue_destroy, true),
    RULE(queue_submit, queue_submit, true),
    RULE(queue_finish, queue_finish, true),
    RULE(event_query, event_query, true),
    RULE(event_wait, event_wait, true),
    RULE(buffer_create, buffer_destroy, true),
    RULE(program_create, program_destroy, true),
    RULE(kernel_create, kernel_destroy, true),
    RULE(graph_create, graph_destroy, false),
    // All of an engine, or none: a chain of pairs.
    RULE(comm_create, comm_destroy, false),
    RULE(comm_destroy, comm_takes, false),
    RULE(comm_takes, comm_abort, false),
    RULE(comm_abort, comm_query, false),
    RULE(comm_query, comm_engine, false),
};
#undef RULE
#undef INDEX

// Writes the finding and returns false, for return statements.
WEIR_PRINTF(3, 4)
static bool refuse(struct weir__finding *finding, const char *remedy, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(finding->reason, sizeof finding->reason, format, arguments);
    va_end(arguments);
    snprintf(finding->remedy, sizeof finding->remedy, "%s", remedy);
    return false;
}

static const struct {
    const char *name;
    const char *remedy; // where a module of that kind is named in the configuration
} kinds[] = {
    [WEIR_MODULE_BACKEND] = {"backend", "name it under `backend` in [weir]"},
    [WEIR_MODULE_PLUGIN] = {"plugin", "name it under `plugins` in [weir]"},
    [WEIR_MODULE_TRANSPORT] = {"transport", "name it under `transport` in [comm]"},
};

static const char *kind_name(enum weir_module_kind kind)
{
    return kind ? kinds[kind].name : "module";
}

static bool check_abi(const struct weir_module *module, struct weir__finding *finding)
{
    if (module->abi != WEIR_MODULE_ABI)
        return refuse(finding,
                      "use the module that came with this Weir, or rebuild it with the headers of "
                      "this Weir",
                      "the module is of module ABI %u, and this library takes ABI %u only",
                      (unsigned)module->abi, WEIR_MODULE_ABI);
    if (!WEIR_HAS(module, transport_slot_count))
        return refuse(finding, "set struct_size to sizeof(struct weir_module)",
                      "the module's header says %u bytes, and ABI %u has %zu",
                      (unsigned)module->struct_size, (unsigned)module->abi,
                      WEIR_SIZED_UP_TO(struct weir_module, transport_slot_count));
    return module->operation_kinds > WEIR_OPERATION_NOTE || module->kind == WEIR_MODULE_TRANSPORT ||
           refuse(finding, "set operation_kinds to WEIR_OPERATION_KINDS",
                  "the module says that it knows operations below kind %u, and ABI %u has %d",
                  (unsigned)module->operation_kinds, (unsigned)module->abi,
                  WEIR_OPERATION_NOTE + 1);
}

static const char *sanitizer_words(const char *sanitizer)
{
    if (sanitizer[0] == '\0')
        return "no sanitizer";
    if (strcmp(sanitizer, "address") == 0)
        return "the address sanitizer";
    if (strcmp(sanitizer, "thread") == 0)
        return "the thread sanitizer";
    return sanitizer;
}

static bool check_identity(const struct weir_module *module, const char *name,
                           enum weir_module_kind kind, struct weir__finding *finding)
{
    const char *sanitizer = module->sanitizer ? module->sanitizer : "";

    if (module->kind < WEIR_MODULE_BACKEND || module->kind > WEIR_MODULE_TRANSPORT)
        return refuse(finding,
                      "set kind to WEIR_MODULE_BACKEND, WEIR_MODULE_PLUGIN or "
                      "WEIR_MODULE_TRANSPORT",
                      "the module is of kind %d, which is neither a backend nor a plugin nor a "
                      "transport",
                      (int)module->kind);
    if (!module->name || strcmp(module->name, name) != 0)
        return refuse(finding, "give the file the module's own name",
                      "the module in weir_%s.so calls itself '%s'", name,
                      module->name ? module->name : "");
    if (kind != 0 && module->kind != kind)
        return refuse(finding, kinds[module->kind].remedy, "'%s' is a %s, and a %s was asked for",
                      name, kind_name(module->kind), kind_name(kind));
    if (strcmp(sanitizer, WEIR_MODULE_SANITIZER) != 0)
        return refuse(finding, "build both with the same sanitizer configuration",
                      "the module was built with %s, and this library with %s",
                      sanitizer_words(sanitizer), sanitizer_words(WEIR_MODULE_SANITIZER));
    return true;
}

// Whether the table, of `count` functions, has this one.
static bool is_set(const void *table, size_t count, size_t index)
{
    void (*function)(void) = NULL;

    if (index < count)
        memcpy(&function, (const char *)table + index * sizeof function, sizeof function);
    return function != NULL;
}

static const char *const transport_slots[] = {
    "open", "close", "join", "split", "place", "run", "abort", "leave",
};

static bool check_transport(const struct weir_module *module, struct weir__finding *finding)
{
    const size_t mandatory = sizeof transport_slots / sizeof *transport_slots;
    if (!module->transport)
        return refuse(finding, "set weir_module.transport", "the transport has no functions");
    for (size_t i = 0; i < mandatory; i++)
        if (!is_set(module->transport, module->transport_slot_count, i))
            return refuse(finding, "implement the function, and check transport_slot_count",
                          "the mandatory function `%s` is missing from the %u of the transport",
                          transport_slots[i], (unsigned)module->transport_slot_count);
    return true;
}

static bool check_slots(const struct weir_module *module, struct weir__finding *finding)
{
    const size_t count = module->slot_count;
    if (module->kind == WEIR_MODULE_TRANSPORT)
        return check_transport(module, finding);
    if (!module->ops)
        return refuse(finding, "set ops to the module's table", "the module has no ops table");
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *rule = &rules[i];
        const bool first = is_set(module->ops, count, rule->slots[0]);
        const bool second = is_set(module->ops, count, rule->slots[1]);
        if (rule->mandatory && module->kind == WEIR_MODULE_BACKEND && !(first && second))
            return refuse(finding, "implement the slot, and check slot_count",
                          "the mandatory slot `%s` is missing from the %zu slots of the backend",
                          rule->names[first], count);
        if (first != second) // the one that is set, and the one that is not
            return refuse(finding, "implement both or neither",
                          "the module has the slot `%s` without `%s`", rule->names[second],
                          rule->names[first]);
    }
    return true;
}

static const struct weir_key *key_of(const struct weir_module *module, size_t index)
{
    return weir_key_at(module->keys, module->key_size, index);
}

// Defaults are checked where a configuration is read: weir__config_section().
static bool check_key(const struct weir_module *module, size_t index, struct weir__finding *finding)
{
    const struct weir_key *key = key_of(module, index);
    const char *remedy = "correct the module's key table";

    if (!key->name || key->name[0] == '\0')
        return refuse(finding, remedy, "key %zu of the module's table has no name", index);
    for (size_t i = 0; i < index; i++)
        if (strcmp(key_of(module, i)->name, key->name) == 0)
            return refuse(finding, remedy, "key '%s' occurs twice in the module's table",
                          key->name);
    if (!key->help || key->help[0] == '\0')
        return refuse(finding, remedy, "key '%s' has no help text", key->name);
    if (key->type < WEIR_KEY_TEXT || key->type > WEIR_KEY_CHOICE)
        return refuse(finding, remedy, "key '%s' has the unknown type %d", key->name,
                      (int)key->type);
    if (key->type == WEIR_KEY_CHOICE && (!key->choices || !key->choices[0]))
        return refuse(finding, remedy, "key '%s' has no choices", key->name);
    return true;
}

static bool check_keys(const struct weir_module *module, struct weir__finding *finding)
{
    if (module->key_count > MOST_KEYS || (module->key_count > 0 && !module->keys))
        return refuse(finding, "correct the module's key table",
                      "the module says that it has %u keys, and %s", (unsigned)module->key_count,
                      module->keys ? "1024 is the limit" : "has no table of them");
    if (module->key_count > 0 && module->key_size < SIZE_OF_KEY)
        return refuse(finding, "set key_size to sizeof(struct weir_key)",
                      "the module says that a key has %u bytes, and a key has %zu at least",
                      (unsigned)module->key_size, SIZE_OF_KEY);
    for (size_t i = 0; i < module->key_count; i++)
        if (!check_key(module, i, finding))
            return false;
    return true;
}

bool weir__module_check(const struct weir_module *module, const char *name,
                        enum weir_module_kind kind, struct weir__finding *out_finding)
{
    return check_abi(module, out_finding) && check_identity(module, name, kind, out_finding) &&
           check_slots(module, out_finding) && check_keys(module, out_finding);
}

// Of a module that passed its check.
static void read_module(const struct weir_module *module, struct weir__loaded *out_loaded)
{
    const size_t slot_bytes = module->slot_count * sizeof(void (*)(void));
    const size_t function_bytes = module->transport_slot_count * sizeof(void (*)(void));
    struct weir_module_ops *ops = &out_loaded->ops;
    struct weir_transport_ops *transport = &out_loaded->transport;
    *out_loaded = (struct weir__loaded){.module.abi = 0};
    weir_sized_write(&out_loaded->module, sizeof out_loaded->module, module, module->struct_size);
    if (module->kind == WEIR_MODULE_TRANSPORT)
        memcpy(transport, module->transport,
               function_bytes < sizeof *transport ? function_bytes : sizeof *transport);
    else
        memcpy(ops, module->ops, slot_bytes < sizeof *ops ? slot_bytes : sizeof *ops);
}

// Finding files, and loading them.

static struct weir_lock loader_lock = WEIR_LOCK_INITIALIZER(&weir__locks[WEIR__LOCK_LOADER]);

// The request, and the file that is being tried.
struct attempt {
    const char *name;
    enum weir_module_kind kind; // 0: any
    const struct weir_host *host;
    char path[PATH_MAX];
    struct weir_load_entry entry;
    struct weir__finding finding;
    struct weir__loaded loaded;
};

// Names become parts of paths.
static bool is_name(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-");
    return length > 0 && length <= MOST_NAME_BYTES && name[length] == '\0';
}

// The directories to be looked through: those asked for, or the usual ones.
struct search {
    const char *path;
    char usual[3 * PATH_MAX + 32];
};

static void begin_search(struct search *search, const char *path)
{
    static const char anchor;
    char directory[PATH_MAX];
    Dl_info info;
    struct link_map *map = NULL;

    search->path = path && path[0] ? path : search->usual;
    search->usual[0] = '\0';
    if (search->path == path || dladdr1(&anchor, &info, (void **)&map, RTLD_DL_LINKMAP) == 0)
        return;
    // Of the object that holds this function. The program itself has no path among the loaded objects: the name with
    // which it was started need not be a path.
    const bool library = map && map->l_name[0];
    if (!realpath(library ? map->l_name : "/proc/self/exe", directory))
        return;
    *strrchr(directory, '/') = '\0';
    // /usr/lib/x86_64-linux-gnu/libweir.so.0 has no lib/weir beside its folder.
    const int length =
        library ? snprintf(search->usual, sizeof search->usual, "%s/weir:", directory) : 0;
    snprintf(search->usual + length, sizeof search->usual - (size_t)length,
             "%s/../lib/weir:%s/lib/weir", directory, directory);
}

// Stores the next directory of a search path, with the end of that if there is more. `*cursor` moves on. False:
// there are no more. One that has no room is cut: a longer path cannot be opened.
static bool next_directory(const char **cursor, char directory[PATH_MAX])
{
    const char *begin = *cursor + strspn(*cursor, ":");
    const size_t length = strcspn(begin, ":");

    *cursor = begin + length;
    snprintf(directory, PATH_MAX, "%.*s", (int)length, begin);
    return length > 0;
}

// Whether there is a regular file. Opening a pipe would block.
static bool check_file(struct attempt *attempt)
{
    struct stat status;

    if (stat(attempt->path, &status) == 0)
        return S_ISREG(status.st_mode) || refuse(&attempt->finding, "put the module there instead",
                                                 "it is not a regular file");
    if (errno != ENOENT && errno != ENOTDIR)
        return refuse(&attempt->finding, "make the file readable", "%s", strerror(errno));
    attempt->entry.outcome = WEIR_LOAD_MISSING;
    snprintf(attempt->finding.reason, sizeof attempt->finding.reason, "there is no such file");
    return false;
}

// gcc's sanitizer runtimes end the process when they are loaded late, so a file
// that needs one must be refused before dlopen sees it. Names of needed libraries
// are plain strings in the file.
static bool check_runtime(struct attempt *attempt, const char *library, const char *sanitizer)
{
    if (strcmp(WEIR_MODULE_SANITIZER, sanitizer) == 0)
        return true;

    bool found = false;
    struct stat status;
    int file = open(attempt->path, O_RDONLY | O_CLOEXEC);
    if (file >= 0 && fstat(file, &status) == 0 && status.st_size > 0) {
        size_t size = (size_t)status.st_size;
        void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
        if (bytes != MAP_FAILED) {
            found = memmem(bytes, size, library, strlen(library + 1) + 1) != NULL;
            munmap(bytes, size);
        }
    }
    if (file >= 0)
        close(file);
    return !found || refuse(&attempt->finding, "build both with the same sanitizer configuration",
                            "the module was built with the %s sanitizer, and this library "
                            "without it",
                            sanitizer);
}

static bool open_file(struct attempt *attempt, void **out_handle)
{
    if (!check_file(attempt) || !check_runtime(attempt, "\0libasan.so.", "address") ||
        !check_runtime(attempt, "\0libtsan.so.", "thread"))
        return false;
    *out_handle = dlopen(attempt->path, RTLD_NOW | RTLD_LOCAL);
    if (*out_handle)
        return true;
    const char *reason = dlerror();
    return refuse(&attempt->finding,
                  "check that the file is a module for this machine, and that the libraries it "
                  "needs are installed",
                  "%s", reason ? reason : "dlopen failed without a reason");
}

// The module's header, or NULL.
static const struct weir_module *query(struct attempt *attempt, void *handle)
{
    weir_module_query_function function = NULL;
    void *symbol = dlsym(handle, WEIR_MODULE_QUERY_SYMBOL);

    if (!symbol) {
        refuse(&attempt->finding, "move the file away, or export the symbol from it",
               "the file does not export %s, so it is no module of Weir", WEIR_MODULE_QUERY_SYMBOL);
        return NULL;
    }
    memcpy(&function, &symbol, sizeof function);
    const struct weir_module *module = function(WEIR_MODULE_ABI, attempt->host);
    if (!module)
        refuse(&attempt->finding, "use the module that came with this Weir, or another Weir",
               "the module does not want to work with a library of module ABI %u", WEIR_MODULE_ABI);
    return module;
}

// Tries the file at `attempt->path`.
static bool load_file(struct attempt *attempt)
{
    void *handle = NULL;

    if (!open_file(attempt, &handle))
        return false;
    const struct weir_module *module = query(attempt, handle);
    if (!module)
        return false;
    attempt->entry.abi_seen = module->abi;
    if (!weir__module_check(module, attempt->name, attempt->kind, &attempt->finding))
        return false;
    attempt->entry.version = module->version;
    attempt->entry.about = module->about;
    attempt->entry.kind = kind_name(module->kind);
    attempt->entry.sanitizer = module->sanitizer;
    read_module(module, &attempt->loaded);
    attempt->entry.outcome = WEIR_LOAD_USED;
    return true;
}

// Tries one directory after the other until one has the file.
static bool load_from(struct attempt *attempt, const char *search_path, weir_load_report *report)
{
    char directory[PATH_MAX];

    attempt->entry.outcome = WEIR_LOAD_MISSING;
    while (next_directory(&search_path, directory)) {
        int written = snprintf(attempt->path, sizeof attempt->path, "%s/weir_%s.so", directory,
                               attempt->name);
        attempt->finding = (struct weir__finding){{0}, {0}};
        attempt->entry = (struct weir_load_entry){.module = attempt->name,
                                                  .outcome = WEIR_LOAD_REFUSED,
                                                  .path = attempt->path,
                                                  .reason = attempt->finding.reason,
                                                  .remedy = attempt->finding.remedy,
                                                  .abi_wanted = WEIR_MODULE_ABI};
        if (written < 0 || (size_t)written >= sizeof attempt->path)
            refuse(&attempt->finding, "use a shorter module path",
                   "the path is longer than %d bytes", PATH_MAX - 1);
        else
            load_file(attempt);
        weir__load_report_add(report, &attempt->entry);
        if (attempt->entry.outcome != WEIR_LOAD_MISSING)
            return attempt->entry.outcome == WEIR_LOAD_USED;
    }
    return false;
}

// The name in "weir_NAME.so", or false.
static bool module_of_file(const char *file, struct weir__module_name *name)
{
    int end = 0;
    return sscanf(file, "weir_%64[^.].so%n", name->text, &end) == 1 && end > 0 && !file[end];
}

// Adds the names that are not among the first `count` yet, and returns how many there are then.
static size_t names_in(const char *directory, struct weir__module_name *names, size_t count,
                       size_t most)
{
    DIR *stream = opendir(directory);
    struct dirent *file;

    while (stream && count < most && (file = readdir(stream)) != NULL) {
        size_t same = 0;
        if (!module_of_file(file->d_name, &names[count]))
            continue;
        while (strcmp(names[same].text, names[count].text) != 0)
            same++;
        count += same == count;
    }
    if (stream)
        closedir(stream);
    return count;
}

size_t weir__loader_names(const char *search_path, struct weir__module_name *names, size_t most)
{
    struct search search;
    char directory[PATH_MAX];
    size_t count = 0;

    begin_search(&search, search_path);
    while (next_directory(&search.path, directory))
        count = names_in(directory, names, count, most);
    return count;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct weir__module_name *)a)->text,
                  ((const struct weir__module_name *)b)->text);
}

void weir__loader_try_all(const char *search_path, const struct weir_host *host,
                          weir_load_report *report)
{
    struct weir__module_name names[4 * WEIR__LOADER_NAMES];
    struct search search;
    char directory[PATH_MAX];

    begin_search(&search, search_path);
    while (next_directory(&search.path, directory)) {
        const size_t count = names_in(directory, names, 0, sizeof names / sizeof *names);
        qsort(names, count, sizeof *names, compare_names);
        for (size_t i = 0; i < count; i++) {
            struct attempt attempt = {.name = names[i].text, .host = host};
            if (!is_name(names[i].text))
                continue;
            weir_lock_take(&loader_lock);
            load_from(&attempt, directory, report);
            weir_lock_release(&loader_lock);
        }
    }
}

// For a name that no directory has: with the nearest name, or all names.
static weir_status fail_missing(const struct attempt *attempt, const char *search_path)
{
    char remedy[256];
    const char *name = attempt->name;
    struct weir__module_name names[WEIR__LOADER_NAMES];
    const size_t count = weir__loader_names(search_path, names, WEIR__LOADER_NAMES);
    const char *nearest = NULL;
    char all[128] = "";
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        weir_text_append(all, sizeof all, &used, "%s%s", used ? ", " : "", names[i].text);
        nearest = weir_text_nearer(name, nearest, names[i].text);
    }
    // These backends have a Debian package of their own.
    const bool apart = strcmp(name, "cuda") == 0 || strcmp(name, "opencl") == 0;
    if (nearest)
        snprintf(remedy, sizeof remedy, "did you mean '%s'?", nearest);
    else
        snprintf(
            remedy, sizeof remedy,
            "%s%s%sset module_path in [weir], or WEIR_MODULE_PATH, to where it is (the modules "
            "there are: %s)",
            apart ? "install the package weir-" : "", apart ? name : "", apart ? ", or " : "",
            used ? all : "none");
    return weir__fail(WEIR_ERROR_MODULE, remedy, "there is no %s '%s': no weir_%s.so in %s",
                      kind_name(attempt->kind), name, name,
                      search_path[0] ? search_path : "any directory");
}

static weir_status fail_refused(const struct attempt *attempt)
{
    char message[768];

    weir_text_about(message, sizeof message, attempt->path, "%s", attempt->finding.reason);
    return weir__fail(WEIR_ERROR_MODULE, attempt->finding.remedy, "%s '%s' cannot be used: %s",
                      kind_name(attempt->kind), attempt->name, message);
}

weir_status weir__loader_load(const char *name, enum weir_module_kind kind, const char *search_path,
                              const struct weir_host *host, weir_load_report *report,
                              struct weir__loaded *out_loaded)
{
    struct search search;
    struct attempt attempt = {.name = name, .kind = kind, .host = host};

    if (!is_name(name) && !kind)
        return WEIR_ERROR_NOT_FOUND;
    if (!is_name(name))
        return weir__fail(WEIR_ERROR_MODULE,
                          "use small letters, digits, '_' and '-', 64 of them at most",
                          "'%s' cannot be the name of a %s", name, kind_name(kind));
    begin_search(&search, search_path);
    weir_lock_take(&loader_lock);
    const bool loaded = load_from(&attempt, search.path, report);
    weir_lock_release(&loader_lock);
    if (attempt.entry.outcome == WEIR_LOAD_MISSING)
        return kind ? fail_missing(&attempt, search.path) : WEIR_ERROR_NOT_FOUND;
    if (!loaded)
        return fail_refused(&attempt);
    *out_loaded = attempt.loaded;
    return WEIR_OK;
}
