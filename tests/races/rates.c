// See the header.
#include "tests/races/rates.h"

#include <stdio.h>

#include "tests/races/rig.h"

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
    weir_status status = WEIR_OK;
    *out_rates = (struct rates){.runs = 0};
    for (int i = 1; i <= runs && status == WEIR_OK; i++) {
        if (until_wrong && out_rates->wrong > 0)
            break;
        status = run_once(pair, mended, perturbed ? i : 0, out_rates);
    }
    return status;
}
