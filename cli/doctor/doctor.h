// What the files of `weir doctor` share: a list of findings.
#ifndef WEIR_CLI_DOCTOR_H
#define WEIR_CLI_DOCTOR_H

#include <weir/weir.h>

#include "cli/common/own.h"

enum doctor_state {
    DOCTOR_OK,
    DOCTOR_NOTE,
    DOCTOR_PROBLEM,
};

struct doctor_finding {
    enum doctor_state state;
    char topic[24];
    char text[1536];
    char remedy[512]; // of a problem
};

struct doctor {
    const char *config;
    char module_path[4096]; // "": the directories beside the library
    weir_runtime *runtime;  // NULL when opening failed
    weir_load_report *report;
    struct doctor_finding *findings;
    size_t count;
    size_t capacity;
    size_t problems;
    bool incomplete; // the modules could not be listed
};

// Appends a finding. The remedy of a problem is never NULL.
void doctor_add(struct doctor *doctor, enum doctor_state state, const char *topic,
                const char *remedy, const char *format, ...) WEIR_PRINTF(5, 6);

#define doctor_ok(doctor, topic, ...) doctor_add((doctor), DOCTOR_OK, (topic), NULL, __VA_ARGS__)
#define doctor_note(doctor, topic, ...) \
    doctor_add((doctor), DOCTOR_NOTE, (topic), NULL, __VA_ARGS__)

// Appends a problem with the thread's Weir error; `remedy` is used where the error has
// none.
void doctor_add_error(struct doctor *doctor, const char *topic, const char *remedy);

// Prints the findings; as text, unless `all`, only the first of many of a topic that are well. Returns the exit
// code.
int doctor_report(struct doctor *doctor, bool all, bool as_json);

#endif
