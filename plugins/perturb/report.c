// One line of JSON for each link: `weir perturb` reads it.
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "plugins/perturb/perturb.h"

const char *perturb_mode_name(enum perturb_mode mode)
{
    switch (mode) {
    case PERTURB_LATE:
        return "late";
    case PERTURB_PAIR:
        return "pair";
    case PERTURB_RANDOM:
        break;
    }
    return "random";
}

static void append(const struct perturb *perturb, const char *text)
{
    const int fd = weir_file_open_to_write(perturb->report, O_APPEND);
    const ssize_t size = (ssize_t)strlen(text);
    const struct weir_file_growth growth = weir_file_growth_begin();
    const bool written = fd >= 0 && write(fd, text, (size_t)size) == size;
    weir_file_growth_end(growth);
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
             perturb_mode_name(perturb->mode), perturb->seed, counts->operations, counts->choices,
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

void perturb_report(const struct perturb *perturb)
{
    const struct perturb_counts *counts = &perturb->counts;
    char text[512];
    snprintf(text, sizeof text,
             "seed %" PRIu64 ", mode %s: %" PRIu64 " operations, %" PRIu64
             " choices, order %016" PRIx64,
             perturb->seed, perturb_mode_name(perturb->mode), counts->operations, counts->choices,
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
