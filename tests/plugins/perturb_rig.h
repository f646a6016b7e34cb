// Opening runtimes with the plugin `perturb`, for its tests. The environment names the backend, and
// its section of the configuration.
#ifndef WEIR_TESTS_PERTURB_RIG_H
#define WEIR_TESTS_PERTURB_RIG_H

#include <weir/weir.h>

#define EXPECT_OK(call) EXPECT_INT_EQ(call, WEIR_OK)
#define GUARD_NS (UINT64_C(60) * 1000000000u)

// What the plugin logged since a runtime was opened: the line with the seed, and the last other one.
extern char logged[1024];
extern char logged_second[1024];

weir_status open_with(const char *plugins, const char *section, weir_runtime **out_runtime);

void open_device(const char *plugins, const char *section, weir_runtime **out_runtime,
                 weir_device **out_device);
void close_device(weir_runtime **runtime, weir_device **device);

#endif
