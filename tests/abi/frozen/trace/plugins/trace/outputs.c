// The names of the files that a link writes, and the report and the page at its close.
//
// The report's library sets errors through the public API, which a module does not link; the
// functions that it needs are defined here.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/report.h>

#include "tests/abi/frozen/trace/base/file.h"
#include "tests/abi/frozen/trace/base/text.h"
#include "tests/abi/frozen/trace/plugins/trace/parts.h"
#include "tests/abi/frozen/trace/report/page.h"

// Names of files.

// The files that runtimes of this process have written, so that none is overwritten.
struct written {
    struct written *next;
    char path[];
};

static pthread_mutex_t written_lock = PTHREAD_MUTEX_INITIALIZER;
static struct written *written_files;

static bool is_written(const char *path)
{
    const struct written *file = written_files;
    while (file && strcmp(file->path, path) != 0)
        file = file->next;
    return file != NULL;
}

// "a/trace.json.gz" becomes "a/trace.2.json.gz".
static void number_path(const char *path, unsigned number, char *text, size_t size)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *point = *name ? strchr(name + 1, '.') : NULL;
    if (number == 1)
        snprintf(text, size, "%s", path);
    else if (point)
        snprintf(text, size, "%.*s.%u%s", (int)(point - path), path, number, point);
    else
        snprintf(text, size, "%s.%u", path, number);
}

// Whether the path names something other than a regular file: a pipe, /dev/null.
static bool is_special(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

static void claim(const char *wanted, char *path)
{
    pthread_mutex_lock(&written_lock);
    unsigned number = 1;
    do
        number_path(wanted, number++, path, TRACE_PATH_SIZE);
    while (is_written(path) && number < 10000 && !is_special(wanted));
    struct written *file = malloc(sizeof *file + strlen(path) + 1);
    if (file) {
        memcpy(file->path, path, strlen(path) + 1);
        file->next = written_files;
        written_files = file;
    }
    pthread_mutex_unlock(&written_lock);
}

static void give_back(const char *path)
{
    pthread_mutex_lock(&written_lock);
    for (struct written **at = &written_files; *at; at = &(*at)->next) {
        struct written *file = *at;
        if (strcmp(file->path, path) != 0)
            continue;
        *at = file->next;
        free(file);
        break;
    }
    pthread_mutex_unlock(&written_lock);
}

bool trace_path_claim(const char *wanted, char *path)
{
    char text[TRACE_PATH_SIZE - 16];
    path[0] = '\0';
    if (!weir_trace_path(wanted, (uint64_t)getpid(), text, sizeof text))
        return false;
    if (text[0])
        claim(text, path);
    return true;
}

void trace_path_remove(const char *path)
{
    if (!is_special(path))
        unlink(path);
}

void trace_paths_give_back(const struct trace *trace)
{
    give_back(trace->path);
    give_back(trace->report_path);
    give_back(trace->html_path);
}

// The replacement of `stdin`; see BUILD for the reason.
extern FILE *const trace_no_stdin;
FILE *const trace_no_stdin = NULL;

// Errors of the report's library.

static _Thread_local struct weir_error last_error;

weir_status weir_error_set_sized(const struct weir_error *detail, size_t size)
{
    (void)size; // the report's library is of the same version
    last_error = detail ? *detail : (struct weir_error){.status = WEIR_OK};
    return last_error.status;
}

// The report and the page.

static bool write_report(const char *path, const weir_report *report, char *message, size_t size)
{
    char *text = weir_report_text(report);
    const bool written = text && weir_file_write(path, text, strlen(text), message, size);
    if (!text)
        snprintf(message, size, "%s: there is no memory for the report", path);
    weir_report_free_text(&text);
    return written;
}

static void fail(struct trace *trace, const char *message)
{
    if (!trace->failure[0])
        weir_text_escape(trace->failure, sizeof trace->failure, message, "");
}

void trace_outputs_write(struct trace *trace)
{
    weir_report *report = NULL;
    char message[1024];
    if ((!trace->report_path[0] && !trace->html_path[0]) || trace->write_failed)
        return;
    if (weir_report_read(trace->path, NULL, &report) < 0) {
        fail(trace, last_error.message);
        return;
    }
    if (trace->report_path[0] && !write_report(trace->report_path, report, message, sizeof message))
        fail(trace, message);
    if (trace->html_path[0] && !weir_page_write(trace->html_path, report, message, sizeof message))
        fail(trace, message);
    weir_report_destroy(&report);
}
