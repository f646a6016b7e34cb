// The plugin's keys, its ops table, and a link's life.
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/wait.h"
#include "plugins/kit/kit.h"
#include "plugins/perturb/perturb.h"

// In the order of enum perturb_mode.
static const char *const modes[] = {"random", "late", "pair", NULL};

// One line of JSON for each link: `weir perturb` reads it.

static void append(const struct perturb *perturb, const char *text)
{
    const int fd = weir_file_open_to_write(perturb->report, O_APPEND);
    const ssize_t size = (ssize_t)strlen(text);
    const bool written = fd >= 0 && write(fd, text, (size_t)size) == size;
    if (fd >= 0)
        close(fd);
    if (!written)
        perturb->link->host->log(WEIR_LOG_ERROR, "perturb",
                                 "the file that `report` of [perturb] names cannot be written; "
                                 "name another one");
}

static void write_line(const struct perturb *perturb)
{
    const struct perturb_counts *counts = &perturb->counts;
    char text[512];
    snprintf(text, sizeof text,
             "{\"mode\":\"%s\",\"seed\":%" PRIu64 ",\"operations\":%" PRIu64 ",\"choices\":%" PRIu64
             ",\"schedule\":\"%016" PRIx64 "\",\"idle\":%" PRIu64 ",\"stalled\":%" PRIu64
             ",\"reversed\":%" PRIu64 "}\n",
             modes[perturb->mode], perturb->seed, counts->operations, counts->choices,
             counts->schedule, counts->idle, counts->stalled, counts->reversed);
    append(perturb, text);
}

static void add_pair(const struct perturb *perturb, char *text, size_t size)
{
    const uint64_t count = perturb->counts.reversed;
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "; the pair was reversed %" PRIu64 " time%s", count,
             count == 1 ? "" : "s");
}

// Logs what happened, and appends it to the report's file.
static void perturb_report(const struct perturb *perturb)
{
    const struct perturb_counts *counts = &perturb->counts;
    char text[512];
    snprintf(text, sizeof text,
             "seed %" PRIu64 ", mode %s: %" PRIu64 " operations, %" PRIu64
             " choices, order %016" PRIx64,
             perturb->seed, modes[perturb->mode], counts->operations, counts->choices,
             counts->schedule);
    if (perturb->mode == PERTURB_PAIR)
        add_pair(perturb, text, sizeof text);
    perturb->link->host->log(WEIR_LOG_INFO, "perturb", text);
    if (counts->idle || counts->stalled) {
        snprintf(text, sizeof text,
                 "the order is not that of the seed alone: %" PRIu64
                 " operations ran because the program asked for nothing, and %" PRIu64
                 " took so long that others ran beside them; a longer `idle` in [perturb] helps "
                 "if the machine is slow",
                 counts->idle, counts->stalled);
        perturb->link->host->log(WEIR_LOG_INFO, "perturb", text);
    }
    if (perturb->report[0])
        write_line(perturb);
}

// In the order of the key table.
enum key {
    KEY_MODE,
    KEY_SEED,
    KEY_PAIR,
    KEY_IDLE,
    KEY_PENDING,
    KEY_REPORT,
    KEY_COUNT
};

// In the order of enum perturb_mode.
static const struct weir_key keys[KEY_COUNT] = {
    [KEY_MODE] = WEIR_CHOICE_KEY(
        "mode", "random", modes,
        "random: any order that no declared dependency forbids, by the seed; late: "
        "nothing runs before the program needs it; pair: the two lines of `pair` in "
        "the other order, everything else as submitted."),
    [KEY_SEED] = WEIR_INTEGER_KEY("seed", "1", 0, INT64_MAX,
                                  "The seed of mode random: the same one gives the same order."),
    [KEY_PAIR] = WEIR_TEXT_KEY(
        "pair", "",
        "The lines of mode pair, as app.c:80, app.c:91: what the first one submits is "
        "held back until what the second one submits has run."),
    [KEY_IDLE] = WEIR_INTEGER_KEY(
        "idle", "100", 1, 60000,
        "Milliseconds without a call of the program after which pending work runs "
        "unasked, and after which other work goes on beside a host call that has not "
        "ended. What runs then depends on more than the seed."),
    [KEY_PENDING] = WEIR_INTEGER_KEY(
        "pending", "4096", 1, 1 << 20,
        "Operations that are held back at most; with more of them one runs at each "
        "submit."),
    [KEY_REPORT] = WEIR_TEXT_KEY(
        "report", "",
        "A file to which a line of JSON is appended at the end: seed, mode, counts and "
        "the order. Empty: none."),
};

// Opening.

static void read_mode(struct perturb *perturb, const struct weir_setting *setting)
{
    while (strcmp(setting->text, modes[perturb->mode]) != 0)
        perturb->mode++;
}

static bool read_line(const char *text, size_t length, struct perturb_line *line)
{
    const char *colon = NULL;
    while (length > 0 && *text == ' ') {
        text++;
        length--;
    }
    while (length > 0 && text[length - 1] == ' ')
        length--;
    for (size_t i = 0; i < length; i++)
        if (text[i] == ':')
            colon = text + i;
    if (!colon || colon == text || (size_t)(colon - text) >= sizeof line->file)
        return false;
    snprintf(line->file, sizeof line->file, "%.*s", (int)(colon - text), text);
    line->line = 0;
    for (const char *at = colon + 1; at < text + length; at++) {
        if (*at < '0' || *at > '9' || line->line > 100000000)
            return false;
        line->line = 10 * line->line + (*at - '0');
    }
    return line->line > 0;
}

// Reads "FILE:LINE, FILE:LINE". False: it is something else.
static bool read_lines(const char *text, struct perturb_line pair[2])
{
    const char *comma = strchr(text, ',');
    return comma && read_line(text, (size_t)(comma - text), &pair[0]) &&
           read_line(comma + 1, strlen(comma + 1), &pair[1]);
}

static weir_status read_pair(struct perturb *perturb, const struct weir_setting *setting)
{
    const char *text = setting->text;
    if (perturb->mode != PERTURB_PAIR || read_lines(text, perturb->pair))
        return WEIR_OK;
    return weir_host_fail(perturb->link->host, WEIR_ERROR_CONFIG,
                          "name two lines, as app.c:80, app.c:91, in `pair` of [perturb] or "
                          "in WEIR_PERTURB_PAIR",
                          "mode pair has no pair of lines: '%.200s'", text);
}

// The last two links are the front end's own and the backend.
static void warn_of_later_plugins(const struct weir_link *link)
{
    char text[256];
    if (!link->next->next || !link->next->next->next)
        return;
    snprintf(
        text, sizeof text,
        "%.60s comes after perturb in the chain and sees no waits, as they are over by then; list "
        "perturb last",
        link->next->name);
    link->host->log(WEIR_LOG_WARNING, "perturb", text);
}

static weir_status read_settings(struct perturb *perturb,
                                 const struct weir_setting *const *settings)
{
    // One of them could not tell the other's gates from the program's operations.
    weir_status status = plugin_refuse_second(perturb->link, "list it once, as the last one");
    read_mode(perturb, settings[KEY_MODE]);
    perturb->seed = (uint64_t)settings[KEY_SEED]->integer;
    if (status == WEIR_OK)
        status = read_pair(perturb, settings[KEY_PAIR]);
    perturb->idle_ns = (uint64_t)settings[KEY_IDLE]->integer * 1000000u;
    perturb->limit = (uint64_t)settings[KEY_PENDING]->integer;
    perturb->report = settings[KEY_REPORT]->text;
    return status;
}

// Fills in what the seed decides.
static void init_choice(struct perturb *perturb)
{
    static const uint64_t redraws[] = {1, 1, 2, 4, 8, 16, 64, 0};
    static const uint64_t eagers[] = {0, 0, 0, 16, 64, 128, 192, 256};
    perturb->random = perturb->seed;
    perturb->redraw = redraws[weir_random_next(&perturb->random) % 8];
    perturb->eager = eagers[weir_random_next(&perturb->random) % 8];
    if (perturb->mode != PERTURB_RANDOM)
        perturb->eager = 0;
}

static void init(struct perturb *perturb)
{
    weir_condition_init(&perturb->changed);
    pthread_mutex_init(&perturb->lock, NULL);
    init_choice(perturb);
}

static weir_status perturb_open(struct weir_link *link, const struct weir_setting *const *settings,
                                void **out_state)
{
    struct perturb *perturb = calloc(1, sizeof *perturb);
    if (!perturb)
        return weir_host_no_memory(link->host, "the plugin perturb");
    perturb->link = link;
    const weir_status status = read_settings(perturb, settings);
    if (status < 0) {
        free(perturb);
        return status;
    }
    warn_of_later_plugins(link);
    init(perturb);
    *out_state = perturb;
    return WEIR_OK;
}

static void perturb_close(const struct weir_link *link)
{
    struct perturb *perturb = perturb_of(link);
    perturb_runners_finish(perturb);
    if (perturb->queue_count)
        perturb_report(perturb);
    pthread_cond_destroy(&perturb->changed);
    pthread_mutex_destroy(&perturb->lock);
    free(perturb);
}

static const struct weir_module_ops ops = {
    .open = perturb_open,
    .close = perturb_close,
    .queue_create = perturb_queue_create,
    .queue_destroy = perturb_queue_destroy,
    .queue_submit = perturb_queue_submit,
    .queue_finish = perturb_queue_finish,
    .event_query = perturb_event_query,
    .event_wait = perturb_event_wait,
    .graph_update = perturb_graph_update,
    .queue_native = perturb_queue_native,
    .queue_retire = perturb_queue_retire,
};

static const char *const about[] = {
    "summary",
    "Runs operations in another order wherever no declared dependency forbids it, so that missing "
    "waits give wrong results, the same ones for the same seed.",
    NULL,
};

PLUGIN_MODULE("perturb", keys, KEY_COUNT, 0)
