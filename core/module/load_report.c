// Its text is written when all modules are loaded, so that reading it needs
// neither memory nor a lock.
#include "core/module/loader.h"

#include <stdatomic.h>

#include "base/names.h"
#include "base/sized.h"
#include "base/table.h"
#include "core/support/memory.h"

struct cell {
    WEIR_SIZED_CELL(struct weir_load_entry, entry, WEIR_SIZED_ROOM);
};

struct weir_load_report {
    atomic_uint owners;
    struct cell *entries;
    size_t count;
    size_t capacity;
    struct weir_names *strings; // of the entries, and these two
    const char *origin;
    const char *remedy;
    char *text;      // NULL: memory ran out, or it is not finished
    bool incomplete; // memory ran out
};

// A copy of the text, or "".
static const char *keep(weir_load_report *report, const char *text)
{
    const char *copy = text && text[0] ? weir_names_keep(report->strings, text) : "";
    if (!copy)
        report->incomplete = true;
    return copy ? copy : "";
}

static void add_entry(struct weir_long_text *text, const struct weir_load_entry *entry)
{
    static const char *const outcomes[] = {"used", "refused", "missing"};

    weir_long_text_add(text, "  %s: %s, %s\n", entry->module, outcomes[entry->outcome],
                       entry->path[0] ? entry->path : "no file");
    if (entry->reason[0])
        weir_long_text_add(text, "    %s\n", entry->reason);
    if (entry->outcome == WEIR_LOAD_MISSING)
        return;
    weir_long_text_add(text, "    module ABI %u, this library's is %u", (unsigned)entry->abi_seen,
                       (unsigned)entry->abi_wanted);
    if (entry->version[0])
        weir_long_text_add(text, "; version %s", entry->version);
    if (entry->driver[0])
        weir_long_text_add(text, "; driver %s", entry->driver);
    if (entry->device_count > 0)
        weir_long_text_add(text, "; %u device%s", (unsigned)entry->device_count,
                           entry->device_count == 1 ? "" : "s");
    weir_long_text_add(text, "\n");
    for (const char *const *about = entry->about; about && about[0] && about[1]; about += 2)
        weir_long_text_add(text, "    %s: %s\n", about[0], about[1]);
}

weir_load_report *weir__load_report_create(unsigned owners)
{
    weir_load_report *report = weir__allocate(sizeof *report);
    if (report)
        report->strings = weir_names_create();
    if (!report || !report->strings) {
        weir__release(report);
        return NULL;
    }
    report->origin = report->remedy = "";
    atomic_init(&report->owners, owners);
    return report;
}

void weir__load_report_add(weir_load_report *report, const struct weir_load_entry *entry)
{
    if (!report)
        return;
    struct cell *entries =
        weir__grow(report->entries, report->count, &report->capacity, sizeof *entries);
    if (!entries) {
        report->incomplete = true;
        return;
    }

    report->entries = entries;
    memset(&entries[report->count], 0, sizeof *entries);
    struct weir_load_entry *own = &entries[report->count++].entry;
    *own = *entry;
    own->module = keep(report, entry->module);
    own->path = keep(report, entry->path);
    own->reason = keep(report, entry->reason);
    own->version = keep(report, entry->version);
    own->driver = keep(report, entry->driver);
    own->remedy = keep(report, entry->remedy);
    own->kind = keep(report, entry->kind);
    own->sanitizer = keep(report, entry->sanitizer);
}

void weir__load_report_opened(weir_load_report *report, const char *module, const char *driver,
                              uint32_t device_count, const char *refusal)
{
    struct weir_load_entry *entry = NULL;
    for (size_t i = report ? report->count : 0; i > 0 && !entry; i--)
        if (report->entries[i - 1].entry.outcome == WEIR_LOAD_USED &&
            strcmp(report->entries[i - 1].entry.module, module) == 0)
            entry = &report->entries[i - 1].entry;
    if (!entry)
        return;
    entry->driver = keep(report, driver);
    entry->device_count = device_count;
    entry->reason = keep(report, refusal);
    if (refusal)
        entry->outcome = WEIR_LOAD_REFUSED;
}

void weir__load_report_finish(weir_load_report *report, const char *origin, const char *remedy)
{
    struct weir_long_text text = {.text = NULL};
    if (!report)
        return;
    report->origin = keep(report, origin);
    report->remedy = keep(report, remedy);
    weir_long_text_add(&text, "modules%s%s:\n", report->origin[0] ? ", requested by " : "",
                       report->origin);
    for (size_t i = 0; i < report->count; i++)
        add_entry(&text, &report->entries[i].entry);
    if (report->remedy[0])
        weir_long_text_add(&text, "what to do: %s\n", report->remedy);
    if (report->incomplete)
        weir_long_text_add(&text, "(memory ran out: this report is incomplete)\n");
    if (text.failed)
        free(text.text);
    else
        report->text = text.text;
}

size_t weir_load_report_count(const weir_load_report *report)
{
    return report ? report->count : 0;
}

const struct weir_load_entry *weir_load_report_entry(const weir_load_report *report, size_t index)
{
    return report && index < report->count ? &report->entries[index].entry : NULL;
}

const char *weir_load_report_origin(const weir_load_report *report)
{
    return report ? report->origin : "";
}

const char *weir_load_report_remedy(const weir_load_report *report)
{
    return report ? report->remedy : "";
}

const char *weir_load_report_text(const weir_load_report *report)
{
    return report && report->text ? report->text : "";
}

void weir_load_report_destroy(weir_load_report **report)
{
    if (!report || !*report)
        return;
    weir_load_report *own = *report;
    *report = NULL;
    if (atomic_fetch_sub(&own->owners, 1) > 1)
        return;
    weir__release(own->entries);
    weir_names_destroy(own->strings);
    free(own->text);
    weir__release(own);
}
