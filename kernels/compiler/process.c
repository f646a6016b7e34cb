// clang-tidy: -D_GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/program.h"
#include "kernels/compiler/compiler.h"

enum {
    PATH_SIZE = sizeof((struct kc_tools *)NULL)->clang
};

static const char *const libclcs[] = {
    "/usr/lib/clc/nvptx64--nvidiacl.bc",
    "/usr/share/clc/nvptx64--nvidiacl.bc",
    "/usr/local/share/clc/nvptx64--nvidiacl.bc",
    NULL,
};

// Parts of a toolkit: where they are in one, and otherwise; programs are also looked for in PATH.
static const struct {
    size_t at; // in struct kc_tools
    int mode;
    const char *in_toolkit;
    const char *usual[4];
} parts[] = {
    {offsetof(struct kc_tools, libdevice),
     R_OK,
     "nvvm/libdevice/libdevice.10.bc",
     {"/usr/local/cuda/nvvm/libdevice/libdevice.10.bc",
      "/usr/lib/cuda/nvvm/libdevice/libdevice.10.bc",
      "/usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc"}},
    {offsetof(struct kc_tools, ptxas), X_OK, "bin/ptxas", {"/usr/local/cuda/bin/ptxas"}},
    {offsetof(struct kc_tools, nvcc), X_OK, "bin/nvcc", {"/usr/local/cuda/bin/nvcc"}},
};

// The first of the paths, which end with NULL, that can be read.
static void find_file(const char *const *paths, char out[PATH_SIZE])
{
    for (; *paths && out[0] == '\0'; paths++)
        if (access(*paths, R_OK) == 0)
            snprintf(out, PATH_SIZE, "%s", *paths);
}

void kc_tools_find(struct kc_tools *tools)
{
    const char *home = getenv("CUDA_HOME"), *libclc = getenv("WEIR_LIBCLC");
    // libclc of one version is read by clang of the same, so the newest is looked for.
    weir_program_find_clang(tools->clang, sizeof tools->clang);
    if (!libclc || !*libclc)
        find_file(libclcs, tools->libclc);
    else if (strcmp(libclc, "none") != 0)
        find_file((const char *const[]){libclc, NULL}, tools->libclc);
    if (home && strcmp(home, "none") == 0)
        return;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char *out = (char *)tools + parts[i].at;
        if (home && *home && out[0] == '\0')
            snprintf(out, PATH_SIZE, "%s/%s", home, parts[i].in_toolkit);
        if (home && *home && access(out, parts[i].mode) != 0)
            out[0] = '\0';
        if (out[0] == '\0' && parts[i].mode == X_OK)
            weir_program_find(strrchr(parts[i].in_toolkit, '/') + 1, out, PATH_SIZE);
        find_file(parts[i].usual, out);
    }
}

#define LACKING(what, needed)                                                                 \
    what " is not found, and " needed " it; it is a part of the CUDA toolkit (set CUDA_HOME)" \
         " and of the package nvidia-cuda-toolkit"

const char *kc_tools_lack(const struct kc_tools *tools, bool cubins)
{
    if (tools->libclc[0] == '\0')
        return "libclc is not installed, and CUDA images need it; install the package libclc of "
               "clang's version, such as libclc-22";
    if (tools->libdevice[0] == '\0')
        return LACKING("libdevice.10.bc", "CUDA images need");
    return cubins && tools->ptxas[0] == '\0' ? LACKING("ptxas", "cubins need") : NULL;
}

const char *kc_tools_lack_nvcc(const struct kc_tools *tools)
{
    if (tools->nvcc[0] == '\0')
        return LACKING("nvcc", "CUDA C++ needs");
    return tools->ptxas[0] == '\0' ? "ptxas is not found, and nvcc needs it; it is a part of the "
                                     "same CUDA toolkit"
                                   : NULL;
}

enum {
    READ_LIMIT = 256 << 20,
    LIMIT_USUAL_S = 600,
    LIMIT_MOST_S = 86400
};

#define LIMIT "WEIR_KERNELS_LIMIT_S"

// The place of temporary files is the folder meanwhile: what a compiler that is ended leaves goes with it.
#define TEMPORARY "TMPDIR"
static char temporary_before[PATH_MAX]; // empty: there was none

static void add_argument(struct kc_job *job, char *argument)
{
    char **more = realloc(job->arguments, (job->argument_count + 2) * sizeof *more);
    if (more)
        job->arguments = more;
    if (more && argument) {
        job->arguments[job->argument_count++] = argument;
        job->arguments[job->argument_count] = NULL;
        return;
    }
    free(argument);
    job->lacks_memory = true;
}

void kc_job_add(struct kc_job *job, const char *format, ...)
{
    char *argument;
    va_list arguments;
    va_start(arguments, format);
    const int length = vasprintf(&argument, format, arguments);
    va_end(arguments);
    add_argument(job, length < 0 ? NULL : argument);
}

void kc_job_add_all(struct kc_job *job, const char *const *arguments)
{
    for (size_t i = 0; arguments[i]; i++)
        add_argument(job, strdup(arguments[i]));
}

// An interrupt ends the build, but not before its folder is removed.
static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
static struct sigaction actions_before[sizeof signals / sizeof *signals];
static volatile sig_atomic_t interrupted; // the signal's number

static void note_signal(int number)
{
    interrupted = number;
}

// What is ignored, as under nohup, stays so.
static void hold_signals(void)
{
    struct sigaction action = {.sa_handler = note_signal};
    sigemptyset(&action.sa_mask);
    interrupted = 0;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        sigaction(signals[i], NULL, &actions_before[i]);
        if (actions_before[i].sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

static void release_signals(void)
{
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &actions_before[i], NULL);
    if (interrupted)
        raise(interrupted);
    interrupted = 0;
}

// How many seconds a compiler may take. False: the variable is there, and no such number.
static bool find_limit(unsigned *out_limit)
{
    const char *text = getenv(LIMIT);
    char *end = NULL;
    const unsigned long limit = text && *text ? strtoul(text, &end, 10) : LIMIT_USUAL_S;
    const bool fine =
        limit > 0 && limit <= LIMIT_MOST_S && (!end || (isdigit((unsigned char)*text) && !*end));
    *out_limit = fine ? (unsigned)limit : LIMIT_USUAL_S;
    return fine;
}

static void start(struct kc_job *job)
{
    int ends[2];
    posix_spawn_file_actions_t actions;
    job->status = job->pipe = -1;
    if (interrupted)
        return;
    if (job->lacks_memory || pipe2(ends, O_CLOEXEC) != 0) {
        job->errors = strdup(strerror(job->lacks_memory ? ENOMEM : errno));
        return;
    }
    posix_spawn_file_actions_init(&actions);
    if (job->input)
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, job->input, O_RDONLY, 0);
    if (job->output)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, job->output,
                                         O_WRONLY | O_CREAT | O_EXCL, 0600);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    if (job->output_too)
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    pid_t number;
    const int error =
        posix_spawnp(&number, job->arguments[0], &actions, NULL, job->arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error != 0) {
        close(ends[0]);
        job->errors = strdup(strerror(error));
        return;
    }
    job->number = number;
    job->pipe = ends[0];
}

// What it writes until its end, or until its time is over.
static char *read_all(struct kc_job *job, bool *out_late)
{
    struct weir_long_text text = {0};
    char buffer[4096];
    ssize_t got = 1;
    unsigned limit_s;
    find_limit(&limit_s);
    const uint64_t end_ns = weir_clock_now_ns() + limit_s * UINT64_C(1000000000);
    *out_late = false;
    while (got != 0 && !*out_late) {
        struct pollfd source = {.fd = job->pipe, .events = POLLIN};
        const int ready = poll(&source, 1, 1000);
        got = ready > 0 ? read(job->pipe, buffer, sizeof buffer) : 1;
        if (ready > 0 && got > 0)
            weir_long_text_add(&text, "%.*s", (int)got, buffer);
        if (ready > 0 && got < 0 && errno != EINTR)
            got = 0;
        *out_late = got != 0 && weir_clock_now_ns() > end_ns;
    }
    if (*out_late)
        weir_long_text_add(&text,
                           "error: %s was not done within %u s; does a source include a pipe or a "
                           "device? (" LIMIT " sets the time)\n",
                           job->arguments[0], limit_s);
    return text.text;
}

static void finish(struct kc_job *job)
{
    int status;
    if (job->pipe < 0)
        return;
    bool late;
    job->errors = read_all(job, &late);
    close(job->pipe);
    if (late)
        kill(job->number, SIGKILL);
    while (waitpid(job->number, &status, 0) < 0 && errno == EINTR) {
    }
    job->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    char *crash = job->errors ? strstr(job->errors, "PLEASE submit a bug report") : NULL;
    if (crash) // clang's own way through its code follows
        *crash = '\0';
    if (!WIFSIGNALED(status) || late)
        return;
    struct weir_long_text text = {0}; // a compiler that is killed says nothing itself
    weir_long_text_add(&text, "%serror: %s was ended by %s%s\n", job->errors ? job->errors : "",
                       job->arguments[0], weir_text_signal(WTERMSIG(status)).text,
                       WTERMSIG(status) == SIGKILL ? "; is there too little memory?" : "");
    free(job->errors);
    job->errors = text.text;
}

// What a waiting job writes fills its pipe at most, since jobs are read in their order.
void kc_run(struct kc_job *jobs, size_t count)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t most = processors > 1 ? (size_t)processors : 1;
    for (size_t started = 0, finished = 0; finished < count; finished++) {
        for (; started < count && started < finished + most; started++)
            start(&jobs[started]);
        finish(&jobs[finished]);
    }
}

void kc_jobs_finish(struct kc_job *jobs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < jobs[i].argument_count; k++)
            free(jobs[i].arguments[k]);
        free(jobs[i].arguments);
        free(jobs[i].errors);
        jobs[i] = (struct kc_job){0};
    }
}

// The lines of a report but those of linking modules of two layouts, which are the same for what
// libclc uses.
static void add_report(const char *errors, struct weir_long_text *report)
{
    for (const char *line = errors; line && *line; line = kc_next_line(line))
        if (!kc_starts_with(line, "warning: Linking two modules"))
            weir_long_text_add(report, "%.*s\n", (int)kc_line_length(line), line);
}

bool kc_judge(struct kc_job *jobs, size_t count, const char *what, struct weir_long_text *report)
{
    bool fine = true;
    for (size_t i = 0; i < count; i++) {
        if (jobs[i].status != 0)
            add_report(jobs[i].errors, report);
        fine = fine && jobs[i].status == 0;
    }
    kc_jobs_finish(jobs, count);
    return fine || kc_error(report, "%s", what);
}

bool kc_run_well(struct kc_job *jobs, size_t count, const char *what, struct weir_long_text *report)
{
    kc_run(jobs, count);
    return kc_judge(jobs, count, what, report);
}

bool kc_error(struct weir_long_text *report, const char *format, ...)
{
    char *sentence;
    va_list arguments;
    va_start(arguments, format);
    const bool made = vasprintf(&sentence, format, arguments) >= 0;
    va_end(arguments);
    report->failed = report->failed || !made;
    if (made)
        weir_long_text_add(report, "error: %s\n", sentence);
    free(made ? sentence : NULL);
    return false;
}

bool kc_read(const char *path, char **out_text, size_t *out_size, struct weir_long_text *report)
{
    char message[512];
    void *data;
    if (!weir_file_read(path, READ_LIMIT, &data, out_size, message, sizeof message))
        return kc_error(report, "%s", message);
    *out_text = data;
    return true;
}

bool kc_write(const char *path, const char *text, struct weir_long_text *report)
{
    char message[512];
    return weir_file_write(path, text, strlen(text), message, sizeof message) ||
           kc_error(report, "%s", message);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    remove(path);
    return 0;
}

bool kc_folder_create(char *path, size_t size, struct weir_long_text *report)
{
    const char *named = getenv(TEMPORARY);
    unsigned limit;
    if (!find_limit(&limit))
        return kc_error(report, LIMIT " takes a whole number of seconds, from 1 to 86400");
    snprintf(temporary_before, sizeof temporary_before, "%s", named ? named : "");
    snprintf(path, size, "%s/weir-kernels-XXXXXX", named && *named ? named : "/tmp");
    hold_signals();
    if (mkdtemp(path)) {
        setenv(TEMPORARY, path, 1);
        return true;
    }
    release_signals();
    return kc_error(report, "no folder for temporary files: %s: %s; set TMPDIR", path,
                    strerror(errno));
}

void kc_folder_remove(const char *path)
{
    nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    if (*temporary_before)
        setenv(TEMPORARY, temporary_before, 1);
    else
        unsetenv(TEMPORARY);
    release_signals();
}
