// Shared by the files of the store; its users need finding.h only.
#ifndef WEIR_PLUGINS_CHECK_FINDING_PARTS_H
#define WEIR_PLUGINS_CHECK_FINDING_PARTS_H

#include <pthread.h>

#include "base/table.h"
#include "plugins/check/finding.h"
#include "report/findings.h"
#include "report/output_path.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CHECK_PAIRS = 1000, // of lines that are kept
    CHECK_SLOTS = 1024, // of their table; a power of two
    CHECK_TEXTS = 14,   // of one finding
    CHECK_FRESH = 64,   // so many are listed again for each new one, with their counts
};

// words.c

// "copy", "host access"; "operation" for a kind that is not known.
const char *check_operation_name(uint32_t operation);
// One sentence, without the full stop, and what to add where. The texts of the finding are filled in; in `placed` a use
// of a host call has the queue of that call. `threads`: an order of threads that is not seen would order the two.
void check_words_write(const struct weir_check_finding *finding,
                       const struct weir_check_finding *placed, bool threads,
                       struct weir_long_text *message, struct weir_long_text *remedy);

// finding.c

struct check_rules {
    struct weir_suppression **items;
    size_t count;
};

// A pair of lines.
struct check_pair {
    struct check_pair *next; // of its slot
    uint64_t hash;
    struct weir_check_finding finding;
    struct weir_suppression *rule; // that suppresses it, or NULL
    char *texts[CHECK_TEXTS];
    size_t text_count;
};

struct check_outputs {
    char text[WEIR_OUTPUT_PATH_SIZE]; // "": none
    char json[WEIR_OUTPUT_PATH_SIZE];
    char sarif[WEIR_OUTPUT_PATH_SIZE];
    char program[128];
    char failure[512];          // the first file that could not be written, and why
    struct weir_long_text list; // of the first `listed` findings, for the JSON
    size_t listed;
};

struct check_findings {
    const struct weir_link *link;
    bool fail;
    char suppressions[WEIR_OUTPUT_PATH_SIZE];
    pthread_mutex_t lock; // guards what follows
    struct check_rules rules;
    struct check_pair *slots[CHECK_SLOTS];
    const struct weir_check_finding *items[CHECK_PAIRS];
    size_t count;
    size_t errors; // neither hints nor suppressed
    uint64_t dropped;
    struct check_outputs outputs;
};

#ifdef __cplusplus
}
#endif

#endif
