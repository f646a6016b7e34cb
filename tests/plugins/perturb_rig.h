// Runtimes with the plugin `perturb`, for its tests. The environment names the backend, and its section of the
// configuration.
#ifndef WEIR_TESTS_PERTURB_RIG_H
#define WEIR_TESTS_PERTURB_RIG_H

#include "tests/plugins/rig.h"

// Without a kernel.
static inline void begin(struct rig *work, const char *section)
{
    *work = (struct rig){NULL};
    EXPECT_OK(rig_open("perturb", section, &work->runtime));
    EXPECT_OK(rig_create(work));
}

#define WORK_TEST(suite, name, section)                                                \
    WEIR_TEST_WITH(suite, name, struct rig, work, (begin(work, section), work->frame), \
                   rig_finish(work))

#endif
