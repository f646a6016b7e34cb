// See the header.
#include "tests/races/rig.h"

#include <ctype.h>

weir_status rig_open(struct rig *rig, const char *plugins, const char *config)
{
    *rig = (struct rig){NULL, NULL};
    const weir_status status =
        weir_open(WEIR_PARAMS(weir_open, .config_path = config ? "races.ini" : "",
                              .config_text = config, .plugins = plugins),
                  &rig->runtime);
    return status == WEIR_OK ? weir_device_open(rig->runtime, NULL, &rig->device) : status;
}

weir_status rig_close(struct rig *rig)
{
    const weir_status status = weir_device_close(&rig->device);
    return status == WEIR_OK ? weir_close(&rig->runtime) : status;
}

static weir_status wrap(weir_device *device, void *memory, size_t size, weir_buffer **out_buffer)
{
    return weir_buffer_wrap(device, WEIR_PARAMS(weir_wrap, .pointer = memory, .size = size),
                            out_buffer);
}

static bool can_wrap_twice(weir_device *device)
{
    static _Alignas(4096) unsigned char memory[4096];
    weir_buffer *part = NULL, *whole = NULL;
    const bool can = wrap(device, memory, sizeof memory / 2, &part) == WEIR_OK &&
                     wrap(device, memory, sizeof memory, &whole) == WEIR_OK;
    weir_buffer_destroy(&part);
    weir_buffer_destroy(&whole);
    must(weir_device_trim(device));
    return can;
}

bool rig_can_run(const struct rig *rig, const struct race_pair *pair)
{
    return (!pair->native || weir_device_limits(rig->device)->native) &&
           (!pair->pinned || weir_device_limits(rig->device)->host_in_kernels) &&
           (!pair->twice || can_wrap_twice(rig->device));
}

bool rig_has_result(const struct rig *rig, const struct race_pair *pair)
{
    return !pair->kernels || strcmp(weir_runtime_backend(rig->runtime), "null") != 0;
}

bool rig_may_race(void)
{
#ifdef __SANITIZE_THREAD__
    return false;
#else
    return true;
#endif
}

// Marks. A program's are those between the end of the program before and its own end, which is a line of one
// brace. A function that is no program ends the same way, so it counts which has begun.

static struct mark *mark_of(struct marks *marks, char letter)
{
    for (size_t i = 0; i < marks->count; i++)
        if (marks->list[i].letter == letter)
            return &marks->list[i];
    if (marks->count == MARKS_MAX)
        return NULL;
    marks->list[marks->count] = (struct mark){.letter = letter};
    return &marks->list[marks->count++];
}

// Takes `word`, and the letter after it if there is one. A comment that says more is no mark.
static bool take(const char **at, const char *word, char *out_letter)
{
    const size_t length = strlen(word);
    if (strncmp(*at, word, length) != 0)
        return false;
    *at += length;
    *out_letter = '\0';
    if ((*at)[0] == ' ' && islower((unsigned char)(*at)[1])) {
        *out_letter = (*at)[1];
        *at += 2;
    }
    return true;
}

// The text of a comment that stands after code, else NULL.
static const char *comment_of(const char *text)
{
    const char *at = strstr(text, " // ");
    return at && strspn(text, " ") < (size_t)(at - text) ? at + 4 : NULL;
}

static void read_line(struct marks *marks, const char *text, int line)
{
    char letter;

    for (const char *at = comment_of(text); at; at = strncmp(at, ", ", 2) == 0 ? at + 2 : NULL) {
        const bool is_first = take(&at, "first", &letter);
        if ((!is_first && !take(&at, "second", &letter)) || strchr(",\n", *at) == NULL)
            return;
        struct mark *mark = mark_of(marks, letter);
        if (mark && is_first)
            mark->first = line;
        else if (mark)
            mark->second = line;
    }
}

bool marks_read(const struct race_pair *pair, const char *path, struct marks *out_marks)
{
    FILE *file = fopen(path, "r");
    char text[256];
    int begun = 0; // the line of the last RACE() or RACE_OWN()

    *out_marks = (struct marks){.count = 0};
    for (int line = 1; file && fgets(text, sizeof text, file); line++) {
        if (strncmp(text, "RACE", 4) == 0)
            begun = line;
        read_line(out_marks, text, line);
        if (strcmp(text, "}\n") != 0 || begun == 0)
            continue;
        if (begun == pair->line)
            break;
        begun = 0;
        out_marks->count = 0;
    }
    if (file)
        fclose(file);
    return begun == pair->line && out_marks->count > 0;
}

// A line that is not marked is in another file, or there is no such use.
static bool is_marked(const struct race_pair *pair, const struct weir_check_use *use, int line)
{
    return line == 0 ? strcmp(use->file, pair->file) != 0
                     : use->line == line && strcmp(use->file, pair->file) == 0;
}

bool marks_expect(const struct marks *marks, const struct race_pair *pair,
                  const struct weir_check_finding *finding)
{
    for (size_t i = 0; i < marks->count; i++)
        if (finding->kind == pair->kind && is_marked(pair, &finding->first, marks->list[i].first) &&
            is_marked(pair, &finding->second, marks->list[i].second))
            return true;
    return false;
}

// Rates.

static weir_status run_once(const struct race_pair *pair, bool mended, int seed,
                            struct rates *rates)
{
    char config[64];
    struct rig rig;

    snprintf(config, sizeof config, "[perturb]\nseed = %d\n", seed);
    const weir_status status =
        seed > 0 ? rig_open(&rig, "perturb", config) : rig_open(&rig, "", NULL);
    if (status != WEIR_OK)
        return status;
    if (rig_can_run(&rig, pair)) {
        rates->runs++;
        if (!race_run(pair, mended, rig.device)) {
            rates->wrong++;
            rates->first = rates->first ? rates->first : rates->runs;
        }
    }
    return rig_close(&rig);
}

weir_status rates_measure(const struct race_pair *pair, bool mended, bool perturbed, int runs,
                          bool until_wrong, struct rates *out_rates)
{
    struct rig keeper; // of the driver's state, which is slow to make
    *out_rates = (struct rates){.runs = 0};
    weir_status status = rig_open(&keeper, "", NULL);
    for (int i = 1; i <= runs && status == WEIR_OK; i++) {
        if (until_wrong && out_rates->wrong > 0)
            break;
        status = run_once(pair, mended, perturbed ? i : 0, out_rates);
    }
    const weir_status closed = rig_close(&keeper);
    return status == WEIR_OK ? closed : status;
}
