// The report of the plugin `check`: what it has found, as text, as JSON and as SARIF, and the
// reader of the JSON, for `weir check`.
//
// Threads: safe; nothing is kept between calls.
#ifndef WEIR_REPORT_FINDINGS_H
#define WEIR_REPORT_FINDINGS_H

#include <weir/check.h>

#include "base/table.h"

// One entry of a file of suppressions. A finding matches it if each text that is not "" does.
struct weir_suppression {
    weir_check_kind kind; // 0: any
    const char *first;    // "copy.c" or "copy.c:80"; also the end of a path, from a slash on
    const char *second;
    const char *buffer; // a label, with * and ? as in names of files
    const char *reason; // never ""
    uint64_t used;      // how many uses it has suppressed
};

struct weir_findings {
    const char *program;
    uint64_t process;
    bool complete; // the runtime was closed
    const struct weir_check_finding *items;
    size_t count;
    uint64_t dropped;         // uses in pairs of lines for which there was no room
    const char *suppressions; // the file, or ""
    const struct weir_suppression *rules;
    size_t rule_count;
};

// How many are errors that nothing suppresses, hints, and suppressed.
struct weir_findings_sum {
    size_t errors;
    size_t hints;
    size_t suppressed;
};

// As weir_check_kind_name(), for modules, which do not link the library. And back: 0 if no kind has
// that name.
const char *weir_findings_kind_name(weir_check_kind kind);
weir_check_kind weir_findings_kind(const char *name);
// The names in the order of the table; NULL past the last one.
const char *weir_findings_kind_at(size_t index);

struct weir_findings_sum weir_findings_sum(const struct weir_findings *findings);

// Each returns a text of one or more lines, or NULL if out of memory.
//
// Ownership: the caller's, to be freed with free().
char *weir_findings_text(const struct weir_findings *findings);
char *weir_findings_json(const struct weir_findings *findings);
// SARIF 2.1.0. https://docs.oasis-open.org/sarif/sarif/v2.1.0/
char *weir_findings_sarif(const struct weir_findings *findings);

// Findings of several runs, as read from their JSON.
typedef struct weir_findings_reader weir_findings_reader;

weir_findings_reader *weir_findings_reader_create(void);
void weir_findings_reader_destroy(weir_findings_reader **reader);

// Adds what a file holds: a pair of lines that is there already is counted on.
//
// Errors: false, with a sentence that names the file in `message`.
bool weir_findings_read(weir_findings_reader *reader, const char *path, char *message,
                        size_t message_size);

// What was read. `complete` if all were.
//
// Ownership: the reader's, until the next call with it.
const struct weir_findings *weir_findings_all(weir_findings_reader *reader);

#endif
