// What is known of each program, measured here:
//
//     bazel run //tests/races:table -- [RUNS]
//
// For each program: what `check` says of the broken and of the mended one, in how many of RUNS runs
// (100) the broken one computes a wrong result with the seeds from 1 on of `perturb` and without it,
// and the mended one with these seeds. Exit status 1 if a row is not as it should be, except that
// fewer runs than 100 need not show a wrong result.

#include "tests/races/rig.h"

enum {
    RUNS = 100,
};

static int runs = RUNS;

struct totals {
    int programs, unable, found, silent, perturbed, always, without, right;
};

static bool can_run(const struct race_pair *pair)
{
    struct rig rig;

    must(rig_open(&rig, "", NULL));
    const bool can = rig_can_run(&rig, pair);
    must(rig_close(&rig));
    return can;
}

// The number of findings, or -1 if one is not expected.
static int check(const struct race_pair *pair, bool mended, const struct marks *marks)
{
    struct weir_check_finding finding;
    struct rig rig;
    int count = 0;

    must(rig_open(&rig, "check", NULL));
    race_run(pair, mended, rig.device);
    for (size_t i = 0; weir_check_get(rig.runtime, i, &finding) == WEIR_OK; i++)
        if (finding.kind < WEIR_CHECK_FIRST_HINT)
            count = count >= 0 && marks_expect(marks, pair, &finding) ? count + 1 : -1;
    must(rig_close(&rig));
    return count;
}

static bool print_check(const struct race_pair *pair, struct totals *totals)
{
    const struct marks none = {.count = 0};
    struct marks marks;

    if (!marks_read(pair, pair->file, &marks)) {
        fprintf(stderr, "%s: no marks in %s\n", pair->name, pair->file);
        return false;
    }
    const bool found = check(pair, false, &marks) == (int)marks.count;
    const bool silent = check(pair, true, &none) == 0;
    totals->found += found;
    totals->silent += silent;
    printf("| %s | %s | %s | %s |", pair->name, weir_check_kind_name(pair->kind),
           found ? "found" : "NOT FOUND", silent ? "silent" : "NOT SILENT");
    return found && silent;
}

static bool print_rates(const struct race_pair *pair, struct totals *totals)
{
    struct rates with, without, mended;

    if (pair->steady) {
        printf(" – | – | – | – |\n");
        return true;
    }
    must(rates_measure(pair, false, true, runs, false, &with));
    must(rates_measure(pair, false, false, runs, false, &without));
    must(rates_measure(pair, true, true, runs, false, &mended));
    printf(" %d | %d | %d | %d |\n", with.wrong, with.first, without.wrong, mended.wrong);
    totals->perturbed += with.wrong > 0;
    totals->always += with.wrong == with.runs;
    totals->without += without.wrong > 0;
    totals->right += mended.wrong == 0;
    return (with.wrong > 0 || runs < RUNS) && mended.wrong == 0;
}

static void print_steady(void)
{
    printf("\n");
    for (const struct race_pair *pair = race_first(); pair; pair = pair->next)
        if (pair->steady)
            printf("- `%s` computes no wrong result: %s.\n", pair->name, pair->steady);
}

static void print_head(void)
{
    printf("| program | kind | `check`, broken | `check`, mended | wrong of %d, `perturb` | first "
           "seed | wrong of %d without | mended, wrong of %d, `perturb` |\n"
           "| --- | --- | --- | --- | ---: | ---: | ---: | ---: |\n",
           runs, runs, runs);
}

static void print_totals(const struct totals *totals)
{
    printf("\n%d programs, %d of them not here: %d found, %d mended ones silent. With `perturb` %d "
           "compute a wrong result, "
           "%d of them with every seed; without it %d do in %d runs. %d mended ones are right with "
           "every seed.\n",
           totals->programs, totals->unable, totals->found, totals->silent, totals->perturbed,
           totals->always, totals->without, runs, totals->right);
}

static bool read_runs(const char *text)
{
    char *end;
    const long count = strtol(text, &end, 10);
    runs = count >= 1 && count <= 1000000 ? (int)count : 0;
    return runs > 0 && *end == '\0';
}

int main(int argc, char **argv)
{
    struct totals totals = {0};
    struct rig keeper; // of the driver's state, which is slow to make
    bool right = true;

    if (argc > 1 && !read_runs(argv[1])) {
        fprintf(stderr, "table: '%s' is no number of runs from 1 to 1000000\n", argv[1]);
        return 2;
    }
    must(rig_open(&keeper, "", NULL));
    print_head();
    for (const struct race_pair *pair = race_first(); pair; pair = pair->next) {
        totals.programs++;
        if (!can_run(pair)) {
            printf("| %s | not here | – | – | – | – | – | – |\n", pair->name);
            totals.unable++;
            continue;
        }
        right &= print_check(pair, &totals);
        right &= print_rates(pair, &totals);
        fflush(stdout);
    }
    print_steady();
    print_totals(&totals);
    must(rig_close(&keeper));
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
