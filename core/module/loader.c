// One lock covers a whole load. Loading is rare, and dlopen holds its own lock as
// long; in return two threads that open the same module get one entry of the list
// of loaded modules.
#define _GNU_SOURCE // dladdr1

#include "core/module/loader.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "core/support/error.h"
#include "core/support/locks.h"
#include "core/support/memory.h"

// A module that passed its check. Never freed.
struct known {
    struct known *next;
    void *handle;
    const struct weir_module *original;
    struct weir__loaded loaded;
    struct weir_module module;
    struct weir_module_ops ops;
    struct weir_transport_ops transport;
    char path[];
};

static struct weir_lock loader_lock = WEIR_LOCK_INITIALIZER(&weir__locks[WEIR__LOCK_LOADER]);
static struct known *known_modules;

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

enum {
    MOST_NAME_BYTES = 64
};

// Names become parts of paths.
static bool is_name(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-");
    return length > 0 && length <= MOST_NAME_BYTES && name[length] == '\0';
}

// The directory of the object that holds this function, and whether that is a library. The
// program itself has no path among the loaded objects: the name with which it was started
// need not be a path.
static bool own_directory(char *directory, bool *out_library)
{
    static const char anchor;
    Dl_info info;
    struct link_map *map = NULL;

    if (dladdr1(&anchor, &info, (void **)&map, RTLD_DL_LINKMAP) == 0)
        return false;
    *out_library = map && map->l_name[0];
    const char *path = *out_library ? map->l_name : "/proc/self/exe";
    if (!realpath(path, directory))
        return false;
    char *slash = strrchr(directory, '/');
    *slash = '\0';
    return true;
}

// The directories to be looked through: those asked for, or the usual ones.
struct search {
    const char *path;
    char usual[3 * PATH_MAX + 32];
};

static void begin_search(struct search *search, const char *path)
{
    char directory[PATH_MAX];
    bool library;

    search->path = path && path[0] ? path : search->usual;
    search->usual[0] = '\0';
    if (search->path == path || !own_directory(directory, &library))
        return;
    // /usr/lib/x86_64-linux-gnu/libweir.so.0 has no lib/weir beside its folder.
    const int length =
        library ? snprintf(search->usual, sizeof search->usual, "%s/weir:", directory) : 0;
    snprintf(search->usual + length, sizeof search->usual - (size_t)length,
             "%s/../lib/weir:%s/lib/weir", directory, directory);
}

// Steps through the directories of a search path. `*cursor` moves on; the
// result is not terminated but `*out_length` bytes long, and NULL at the end.
static const char *next_directory(const char **cursor, int *out_length)
{
    const char *directory = *cursor + strspn(*cursor, ":");
    size_t length = strcspn(directory, ":");

    *cursor = directory + length;
    *out_length = (int)length;
    return length > 0 ? directory : NULL;
}

static bool refuse(struct attempt *attempt, const char *remedy, const char *format, ...)
    WEIR_PRINTF(3, 4);

static bool refuse(struct attempt *attempt, const char *remedy, const char *format, ...)
{
    va_list arguments;

    attempt->entry.outcome = WEIR_LOAD_REFUSED;
    va_start(arguments, format);
    vsnprintf(attempt->finding.reason, sizeof attempt->finding.reason, format, arguments);
    va_end(arguments);
    snprintf(attempt->finding.remedy, sizeof attempt->finding.remedy, "%s", remedy);
    return false;
}

// Whether there is a regular file. Opening a pipe would block.
static bool check_file(struct attempt *attempt)
{
    struct stat status;

    if (stat(attempt->path, &status) == 0)
        return S_ISREG(status.st_mode) ||
               refuse(attempt, "put the module there instead", "it is not a regular file");
    if (errno != ENOENT && errno != ENOTDIR)
        return refuse(attempt, "make the file readable", "%s", strerror(errno));
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
    return !found || refuse(attempt, "build both with the same sanitizer configuration",
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
    return refuse(attempt,
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
        refuse(attempt, "move the file away, or export the symbol from it",
               "the file does not export %s, so it is no module of Weir", WEIR_MODULE_QUERY_SYMBOL);
        return NULL;
    }
    memcpy(&function, &symbol, sizeof function);
    const struct weir_module *module = function(WEIR_MODULE_ABI, attempt->host);
    if (!module)
        refuse(attempt, "use the module that came with this Weir, or another Weir",
               "the module does not want to work with a library of module ABI %u", WEIR_MODULE_ABI);
    return module;
}

// The list's entry for a module that passed its check, created if there is none.
static bool enlist(struct attempt *attempt, void *handle, const struct weir_module *module)
{
    for (const struct known *known = known_modules; known; known = known->next) {
        if (known->handle == handle && known->original == module) {
            attempt->loaded = known->loaded;
            return true;
        }
    }

    size_t length = strlen(attempt->path) + 1;
    struct known *known = weir__allocate(sizeof *known + length);
    if (!known)
        return refuse(attempt, "free some memory", "there is no memory to keep the module");
    memcpy(known->path, attempt->path, length);
    weir__module_read(module, &known->module, &known->ops, &known->transport);
    known->handle = handle;
    known->original = module;
    known->loaded = (struct weir__loaded){.module = &known->module,
                                          .ops = &known->ops,
                                          .transport = &known->transport,
                                          .path = known->path};
    known->next = known_modules;
    known_modules = known;
    attempt->loaded = known->loaded;
    return true;
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
    attempt->entry.outcome = WEIR_LOAD_REFUSED;
    attempt->entry.abi_seen = module->abi;
    if (!weir__module_check(module, attempt->name, attempt->kind, &attempt->finding))
        return false;
    attempt->entry.version = module->version;
    attempt->entry.about = module->about;
    attempt->entry.kind = weir__module_kind_name(module->kind);
    attempt->entry.sanitizer = module->sanitizer;
    if (!enlist(attempt, handle, module))
        return false;
    attempt->entry.outcome = WEIR_LOAD_USED;
    return true;
}

// Tries one directory after the other until one has the file.
static bool load_from(struct attempt *attempt, const char *search_path, weir_load_report *report)
{
    const char *directory;
    int length;

    attempt->entry.outcome = WEIR_LOAD_MISSING;
    while ((directory = next_directory(&search_path, &length)) != NULL) {
        int written = snprintf(attempt->path, sizeof attempt->path, "%.*s/weir_%s.so", length,
                               directory, attempt->name);
        attempt->finding = (struct weir__finding){{0}, {0}};
        attempt->entry = (struct weir_load_entry){.module = attempt->name,
                                                  .path = attempt->path,
                                                  .reason = attempt->finding.reason,
                                                  .remedy = attempt->finding.remedy,
                                                  .abi_wanted = WEIR_MODULE_ABI};
        if (written < 0 || (size_t)written >= sizeof attempt->path)
            refuse(attempt, "use a shorter module path", "the path is longer than %d bytes",
                   PATH_MAX - 1);
        else
            load_file(attempt);
        weir__load_report_add(report, &attempt->entry);
        if (attempt->entry.outcome != WEIR_LOAD_MISSING)
            return attempt->entry.outcome == WEIR_LOAD_USED;
    }
    return false;
}

// The name in "weir_NAME.so", or false.
static bool module_of_file(const char *file, char *name, size_t size)
{
    size_t length = strlen(file);

    if (length <= 8 || length - 8 >= size || strncmp(file, "weir_", 5) != 0 ||
        strcmp(file + length - 3, ".so") != 0)
        return false;
    memcpy(name, file + 5, length - 8);
    name[length - 8] = '\0';
    return true;
}

static size_t names_in(const char *directory, struct weir__module_name *names, size_t most)
{
    size_t count = 0;
    DIR *stream = opendir(directory);
    struct dirent *file;

    while (stream && count < most && (file = readdir(stream)) != NULL)
        if (module_of_file(file->d_name, names[count].text, sizeof names[count].text))
            count++;
    if (stream)
        closedir(stream);
    return count;
}

size_t weir__loader_names(const char *search_path, struct weir__module_name *names, size_t most)
{
    struct search search;
    char path[PATH_MAX];
    const char *directory;
    size_t count = 0;
    int length;

    begin_search(&search, search_path);
    while ((directory = next_directory(&search.path, &length)) != NULL) {
        snprintf(path, sizeof path, "%.*s", length, directory);
        count += names_in(path, names + count, most - count);
    }
    return count;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct weir__module_name *)a)->text,
                  ((const struct weir__module_name *)b)->text);
}

static void try_all_in(const char *directory, const struct weir_host *host,
                       weir_load_report *report)
{
    struct weir__module_name names[4 * WEIR__LOADER_NAMES];
    const size_t count = names_in(directory, names, sizeof names / sizeof *names);
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

void weir__loader_try_all(const char *search_path, const struct weir_host *host,
                          weir_load_report *report)
{
    struct search search;
    char path[PATH_MAX];
    const char *directory;
    int length;

    begin_search(&search, search_path);
    while ((directory = next_directory(&search.path, &length)) != NULL) {
        snprintf(path, sizeof path, "%.*s", length, directory);
        try_all_in(path, host, report);
    }
}

// Several directories may have a module of one name, and one directory several spellings.
static bool is_repeated(const struct weir__module_name *names, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(names[i].text, names[index].text) == 0)
            return true;
    return false;
}

// The backends that have a Debian package of their own.
static bool is_packaged_apart(const char *name)
{
    return strcmp(name, "cuda") == 0 || strcmp(name, "opencl") == 0;
}

// The remedy for a name that no directory has: the nearest name, or all names.
static void suggest(const char *name, const char *search_path, char *remedy, size_t size)
{
    struct weir__module_name names[WEIR__LOADER_NAMES];
    const size_t count = weir__loader_names(search_path, names, WEIR__LOADER_NAMES);
    const char *nearest = NULL;
    char all[128] = "";
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        if (!is_repeated(names, i))
            weir_text_append(all, sizeof all, &used, "%s%s", used ? ", " : "", names[i].text);
        nearest = weir_text_nearer(name, nearest, names[i].text);
    }
    if (nearest)
        snprintf(remedy, size, "did you mean '%s'?", nearest);
    else if (is_packaged_apart(name))
        snprintf(remedy, size,
                 "install the package weir-%s, or set module_path in [weir], or WEIR_MODULE_PATH, "
                 "to where it is (the modules there are: %s)",
                 name, all[0] ? all : "none");
    else
        snprintf(remedy, size,
                 "set module_path in [weir], or WEIR_MODULE_PATH, to where it is (the modules "
                 "there are: %s)",
                 all[0] ? all : "none");
}

static weir_status fail_missing(const struct attempt *attempt, const char *search_path)
{
    char remedy[256];

    suggest(attempt->name, search_path, remedy, sizeof remedy);
    return weir__fail(WEIR_ERROR_MODULE, remedy, "there is no %s '%s': no weir_%s.so in %s",
                      weir__module_kind_name(attempt->kind), attempt->name, attempt->name,
                      search_path[0] ? search_path : "any directory");
}

static weir_status fail_refused(const struct attempt *attempt, const char *kind)
{
    char message[768];

    weir_text_about(message, sizeof message, attempt->path, "%s", attempt->finding.reason);
    return weir__fail(WEIR_ERROR_MODULE, attempt->finding.remedy, "%s '%s' cannot be used: %s",
                      kind, attempt->name, message);
}

// Tries the directories of the path, and stores those in `search`.
static bool load(struct attempt *attempt, const char *search_path, struct search *search,
                 weir_load_report *report)
{
    begin_search(search, search_path);
    weir_lock_take(&loader_lock);
    const bool loaded = load_from(attempt, search->path, report);
    weir_lock_release(&loader_lock);
    return loaded;
}

weir_status weir__loader_load(const char *name, enum weir_module_kind kind, const char *search_path,
                              const struct weir_host *host, weir_load_report *report,
                              struct weir__loaded *out_loaded)
{
    struct search search;
    struct attempt attempt = {.name = name, .kind = kind, .host = host};

    *out_loaded = (struct weir__loaded){0};
    if (!is_name(name))
        return weir__fail(WEIR_ERROR_MODULE,
                          "use small letters, digits, '_' and '-', 64 of them at most",
                          "'%s' cannot be the name of a %s", name, weir__module_kind_name(kind));
    const bool loaded = load(&attempt, search_path, &search, report);
    if (attempt.entry.outcome == WEIR_LOAD_MISSING)
        return fail_missing(&attempt, search.path);
    if (!loaded)
        return fail_refused(&attempt, weir__module_kind_name(kind));
    *out_loaded = attempt.loaded;
    return WEIR_OK;
}

weir_status weir__loader_keys(const char *name, const char *search_path,
                              const struct weir_host *host, struct weir_section *out_section)
{
    struct search search;
    struct attempt attempt = {.name = name, .host = host};

    *out_section = (struct weir_section){.struct_size = sizeof *out_section};
    if (!is_name(name))
        return WEIR_ERROR_NOT_FOUND;
    const bool loaded = load(&attempt, search_path, &search, NULL);
    if (attempt.entry.outcome == WEIR_LOAD_MISSING)
        return WEIR_ERROR_NOT_FOUND;
    if (!loaded)
        return fail_refused(&attempt, "module");
    *out_section = weir__module_section(attempt.loaded.module);
    return WEIR_OK;
}
