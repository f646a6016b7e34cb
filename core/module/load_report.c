// The report keeps its text written at all times, so that reading it needs
// neither memory nor a lock. It changes only while modules are being loaded, and
// has only a few entries.
#include "core/module/loader.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "base/table.h"
#include "core/support/memory.h"

struct cell {
    WEIR_SIZED_CELL(struct weir_load_entry, entry, WEIR_SIZED_ROOM);
};

struct weir_load_report {
    atomic_uint owners;
    struct cell *entries; // their strings belong to the report
    size_t count;
    size_t capacity;
    char *origin;
    char *remedy;
    char *text;
    bool incomplete; // memory ran out
};

static const char *shown(const char *text)
{
    return text ? text : "";
}

// A copy of `text`, or NULL for an empty one, which needs no memory.
static char *keep(weir_load_report *report, const char *text)
{
    char *copy = text && text[0] ? weir__copy_text(text) : NULL;

    if (!copy && text && text[0])
        report->incomplete = true;
    return copy;
}

// Entries without a text hold "", which must not be freed.
static void drop(const char *text)
{
    if (text[0])
        weir__release((void *)(uintptr_t)text);
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

// If out of memory the text stays as it was.
static void rewrite(weir_load_report *report)
{
    struct weir_long_text text = {.text = NULL};

    weir_long_text_add(&text, "modules%s%s:\n", report->origin ? ", requested by " : "",
                       report->origin ? report->origin : "");
    for (size_t i = 0; i < report->count; i++)
        add_entry(&text, &report->entries[i].entry);
    if (report->remedy)
        weir_long_text_add(&text, "what to do: %s\n", report->remedy);
    if (report->incomplete)
        weir_long_text_add(&text, "(memory ran out: this report is incomplete)\n");
    if (text.failed) {
        free(text.text);
        report->incomplete = true;
        return;
    }
    free(report->text);
    report->text = text.text;
}

weir_load_report *weir__load_report_create(void)
{
    weir_load_report *report = weir__allocate(sizeof *report);

    if (!report)
        return NULL;
    atomic_init(&report->owners, 1);
    rewrite(report);
    return report;
}

weir_load_report *weir__load_report_retain(weir_load_report *report)
{
    if (report)
        atomic_fetch_add(&report->owners, 1);
    return report;
}

// Room for one more entry.
static bool grow(weir_load_report *report)
{
    if (report->count < report->capacity)
        return true;

    size_t capacity = report->capacity ? 2 * report->capacity : 8;
    struct cell *entries = weir__allocate(capacity * sizeof *entries);
    if (!entries)
        return false;
    if (report->count > 0)
        memcpy(entries, report->entries, report->count * sizeof *entries);
    weir__release(report->entries);
    report->entries = entries;
    report->capacity = capacity;
    return true;
}

void weir__load_report_add(weir_load_report *report, const struct weir_load_entry *entry)
{
    if (!report)
        return;
    if (!grow(report)) {
        report->incomplete = true;
        return;
    }

    struct weir_load_entry *own = &report->entries[report->count++].entry;
    *own = *entry;
    own->module = shown(keep(report, entry->module));
    own->path = shown(keep(report, entry->path));
    own->reason = shown(keep(report, entry->reason));
    own->version = shown(keep(report, entry->version));
    own->driver = shown(keep(report, entry->driver));
    own->remedy = shown(keep(report, entry->remedy));
    own->kind = shown(entry->kind);
    own->sanitizer = shown(entry->sanitizer);
    rewrite(report);
}

// The last used entry, of that module if one is given.
static struct weir_load_entry *last_used(weir_load_report *report, const char *module)
{
    for (size_t i = report ? report->count : 0; i-- > 0;) {
        struct weir_load_entry *entry = &report->entries[i].entry;
        if (entry->outcome == WEIR_LOAD_USED && (!module || strcmp(entry->module, module) == 0))
            return entry;
    }
    return NULL;
}

void weir__load_report_set_driver(weir_load_report *report, const char *driver,
                                  uint32_t device_count)
{
    struct weir_load_entry *entry = last_used(report, NULL);

    if (!entry)
        return;
    drop(entry->driver);
    entry->driver = shown(keep(report, driver));
    entry->device_count = device_count;
    rewrite(report);
}

void weir__load_report_refuse(weir_load_report *report, const char *module, const char *reason)
{
    struct weir_load_entry *entry = last_used(report, module);

    if (!entry)
        return;
    drop(entry->reason);
    entry->outcome = WEIR_LOAD_REFUSED;
    entry->reason = shown(keep(report, reason));
    rewrite(report);
}

static void set_text(weir_load_report *report, char **field, const char *text)
{
    if (!text)
        return;
    weir__release(*field);
    *field = keep(report, text);
}

void weir__load_report_explain(weir_load_report *report, const char *origin, const char *remedy)
{
    if (!report)
        return;
    set_text(report, &report->origin, origin);
    set_text(report, &report->remedy, remedy);
    rewrite(report);
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
    return report ? shown(report->origin) : "";
}

const char *weir_load_report_remedy(const weir_load_report *report)
{
    return report ? shown(report->remedy) : "";
}

const char *weir_load_report_text(const weir_load_report *report)
{
    return report ? shown(report->text) : "";
}

void weir_load_report_destroy(weir_load_report **report)
{
    if (!report || !*report)
        return;
    weir_load_report *own = *report;
    *report = NULL;
    if (atomic_fetch_sub(&own->owners, 1) > 1)
        return;

    for (size_t i = 0; i < own->count; i++) {
        const struct weir_load_entry *entry = &own->entries[i].entry;
        drop(entry->module);
        drop(entry->path);
        drop(entry->reason);
        drop(entry->version);
        drop(entry->driver);
        drop(entry->remedy);
    }
    weir__release(own->entries);
    weir__release(own->origin);
    weir__release(own->remedy);
    free(own->text);
    weir__release(own);
}
