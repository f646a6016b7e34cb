// Findings: the engine adds conflicts, and the store makes findings of them, which it counts, tells,
// writes to files and refuses operations for.
//
//   finding.c  the store: each pair of lines once; the file of suppressions; the files that are written
//   words.c    the sentence and the line to add, for each kind
//
// Threads: the caller's lock, but for what is told.
#ifndef WEIR_PLUGINS_CHECK_FINDING_H
#define WEIR_PLUGINS_CHECK_FINDING_H

#include <weir/module/check.h>
#include <weir/module/error.h>
#include <weir/module/module.h>

#include "base/names.h"
#include "base/table.h"

// What the engine has found: a finding without its sentences, with texts that are copied; NULL is "". `first` was
// submitted before `second`. A host access has the queue of the host call that it is in; what is told of it has none.
//
// What the two are, where it is not plain:
//   HOST_READ, HOST_WRITE  first: of a queue; second: the host
//   OPEN_ACCESS            first: the host, where its access began; second: of a queue
//   AFTER_FREE             one of them is a pool's free, the other uses the memory
//   UNWRITTEN              first: none (all zero); second: the read
//   OUTSIDE                first: none; second: the launch, with the range that it declares
//   IMPLIED_WAIT, NEEDLESS_WAIT  first: the record; second: the wait, access 0
//   FALSE_SHARING          first, second: the uses that touch no common byte
//   NEEDLESS_SYNC          first: the record, without a line if it is the sync's own; second: the host
//   READ_AFTER_WRITE, WRITE_AFTER_READ, WRITE_AFTER_WRITE: with `threads = strict` one or both may
//   be the host's.
struct check_conflict {
    struct weir_check_finding finding;
    bool threads; // an order of threads that is not seen would order the two
};

// The forms of the files that are written.
enum {
    CHECK_TEXT,
    CHECK_JSON,
    CHECK_SARIF,
    CHECK_FORMS
};

struct check_findings;

// What was added and is not told yet.
struct check_untold {
    size_t begin;            // the numbers of the new findings, from here
    size_t end;              // to before this one
    weir_check_kind refused; // with `fail`, of the first conflict that is to be refused; 0: none
    const struct weir_check_finding *finding; // that conflict's; NULL: there was no room for it
};

// Reads the suppressions, a file or "" for none, and writes the `files`, or "", as those of a run that has found nothing
// yet. `texts` and `suppressions` outlive the store. `fail`: report = fail.
//
// Ownership: the caller's, until check_findings_destroy().
// Errors: WEIR_ERROR_CONFIG for a file of suppressions that is missing or wrong; WEIR_ERROR_IO for a
// file that cannot be written; both reported to the host.
weir_status check_findings_create(const struct weir_link *link, struct weir_names *texts, bool fail,
                                  const char *suppressions, const char *const files[CHECK_FORMS],
                                  struct check_findings **out_findings);

// Completes the files, and tells which suppressions were not used. What could not be written is
// reported to the host's `error`.
void check_findings_destroy(struct check_findings *findings);

// Adds a conflict. For a new pair of lines the files are written again, at once.
void check_findings_add(struct check_findings *findings, const struct check_conflict *conflict);

// What is to be told since the last call.
struct check_untold check_findings_take(struct check_findings *findings);

// Logs the new findings. Returns WEIR_OK, or, if a conflict is to be refused, which no hint is and none that a
// suppression matches, the error for that: WEIR_ERROR_INVALID, with the finding as message, which was reported to the
// host.
//
// Threads: without the lock, since it calls the program's log.
weir_status check_findings_tell(const struct check_findings *findings,
                                const struct check_untold *untold);

// What the functions of struct weir_check_extension return. `errors`: hints and what is suppressed do not count.
size_t check_findings_count(const struct check_findings *findings, bool errors);
bool check_findings_get(const struct check_findings *findings, size_t index,
                        struct weir_check_finding *out_finding, size_t size);

// What words.c gives to the store.

// "copy", "host access"; "operation" for a kind that is not known.
const char *check_operation_name(uint32_t operation);
// One sentence, without the full stop, and what to add where. The texts of the conflict are not NULL.
void check_words_write(const struct check_conflict *conflict, struct weir_long_text *message,
                       struct weir_long_text *remedy);

#endif
