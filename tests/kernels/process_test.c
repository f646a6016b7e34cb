// Running the programs that compile kernels.
#include <stdlib.h>
#include <string.h>

#include "kernels/compiler/compiler.h"
#include "tests/support/test.h"

enum {
    MOST = KC_ARGUMENTS_MOST - 1 // arguments of one command, the program among them
};

static void fill(struct kc_job *job, size_t count)
{
    kc_job_add(job, "echo");
    for (size_t i = 1; i < count; i++)
        kc_job_add(job, "a");
}

WEIR_TEST(Process, AsManyArgumentsAsFit)
{
    struct kc_job job = {.output_too = true};
    fill(&job, MOST);
    kc_run(&job, 1);
    EXPECT_INT_EQ(job.status, 0);
    EXPECT_UINT_EQ(job.errors ? strlen(job.errors) : 0, 2 * (MOST - 1));
    kc_jobs_finish(&job, 1);
}

// A command with an argument less means something else, so it is not run.
WEIR_TEST(Process, TooManyArguments)
{
    struct kc_job job = {.output_too = true};
    fill(&job, MOST + 1);
    kc_run(&job, 1);
    EXPECT_INT_EQ(job.status, -1);
    EXPECT_STR_EQ(job.errors ? job.errors : "", "too many arguments for one command\n");
    kc_jobs_finish(&job, 1);
}

WEIR_TEST(Process, AProgramThatIsNotThere)
{
    struct kc_job job = {.arguments = {"/nonexistent/clang"}};
    kc_run(&job, 1);
    EXPECT_INT_EQ(job.status, -1);
    EXPECT_CONTAINS(job.errors ? job.errors : "", "No such file");
    kc_jobs_finish(&job, 1);
}
