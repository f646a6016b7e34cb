// Which operations are chosen, and which of these get the fault.
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/siphash.h"
#include "base/text.h"
#include "plugins/fault/parts.h"

static bool is_label(const char *wanted, const char *label)
{
    return label && strcmp(wanted, label) == 0;
}

static bool is_chosen(const struct fault_settings *settings,
                      const struct fault_candidate *candidate)
{
    if (!(settings->targets & 1u << candidate->target))
        return false;
    if (settings->queue[0] && !is_label(settings->queue, candidate->queue))
        return false;
    return !settings->label[0] || is_label(settings->label, candidate->labels[0]) ||
           is_label(settings->label, candidate->labels[1]);
}

// The number decides alone, so that threads do not change which of the numbers get a fault.
static bool is_hit(const struct fault_settings *settings, uint64_t number)
{
    if (settings->at)
        return number == settings->at;
    const struct weir_siphash_key key = {{settings->seed, 0}};
    return settings->one_in && weir_siphash(&key, &number, sizeof number) % settings->one_in == 0;
}

// The list, a line for each: number, kind, queue, label, file, line, with tabs between them. One
// write each, so that it is there when the process crashes.
static void add_to_list(const struct fault *fault, const struct fault_candidate *candidate,
                        uint64_t number)
{
    char texts[3][256];
    char line[1024];
    size_t used = 0;
    const char *label = candidate->labels[0];
    if (fault->list < 0)
        return;
    weir_text_escape(texts[0], sizeof texts[0], candidate->queue ? candidate->queue : "", "");
    weir_text_escape(texts[1], sizeof texts[1], label ? label : "", "");
    weir_text_escape(texts[2], sizeof texts[2], candidate->file ? candidate->file : "", "");
    weir_text_append(line, sizeof line, &used, "%" PRIu64 "\t%s\t%s\t%s\t%s\t%d\n", number,
                     fault_target_names[candidate->target], texts[0], texts[1], texts[2],
                     candidate->line);
    const struct weir_file_growth growth = weir_file_growth_begin();
    const bool written = write(fault->list, line, used) == (ssize_t)used;
    weir_file_growth_end(growth);
    if (!written)
        fault->link->host->log(WEIR_LOG_ERROR, fault->link->name,
                               "a line of the list cannot be written");
}

static void tell(const struct fault *fault, const struct fault_candidate *candidate,
                 uint64_t number)
{
    char text[768];
    size_t used = 0;
    weir_text_append(text, sizeof text, &used, "number %" PRIu64 " gets the fault '%s': %s", number,
                     fault_kind_names[fault->settings.kind], fault_target_names[candidate->target]);
    if (candidate->queue && *candidate->queue)
        weir_text_append(text, sizeof text, &used, " on queue '%.100s'", candidate->queue);
    if (candidate->file)
        weir_text_append(text, sizeof text, &used, " at %.200s:%d", candidate->file,
                         candidate->line);
    fault->link->host->log(WEIR_LOG_WARNING, fault->link->name, text);
}

bool fault_choose(struct fault *fault, const struct fault_candidate *candidate,
                  uint64_t *out_number)
{
    const struct fault_settings *settings = &fault->settings;
    if (!is_chosen(settings, candidate))
        return false;
    const uint64_t number = atomic_fetch_add(&fault->count, 1) + 1;
    if (!is_hit(settings, number)) {
        if (!settings->at && !settings->one_in)
            add_to_list(fault, candidate, number);
        return false;
    }
    *out_number = number;
    atomic_fetch_add(&fault->faults, 1);
    add_to_list(fault, candidate, number);
    tell(fault, candidate, number);
    return true;
}

void fault_describe(const struct fault *fault, weir_status status, const char *what,
                    enum fault_target target, uint64_t number, struct weir_error *out_error)
{
    memset(out_error, 0, sizeof *out_error);
    out_error->status = status;
    snprintf(out_error->message, sizeof out_error->message,
             "the plugin fault injected %s (number %" PRIu64 ", %s)", what, number,
             fault_target_names[target]);
    snprintf(out_error->remedy, sizeof out_error->remedy,
             "`weir fault %s --at %" PRIu64 " PROGRAM` repeats it", fault->settings.remedy, number);
}

weir_status fault_report(const struct fault *fault, weir_status status, const char *what,
                         enum fault_target target, uint64_t number)
{
    struct weir_error error;
    fault_describe(fault, status, what, target, number, &error);
    return fault->link->host->error(&error, sizeof error);
}
