// Names of files that plugins write: each process, and each rank of a job, has its own.
#define _POSIX_C_SOURCE 200809L // setenv

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/output_path.h"
#include "tests/support/test.h"

static void leave_job(void)
{
    static const char *const names[] = {"WEIR_COMM_RANK", "RANK", "OMPI_COMM_WORLD_RANK",
                                        "PMI_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

static void expect_claim(const char *wanted, const char *name)
{
    char path[WEIR_OUTPUT_PATH_SIZE];
    EXPECT_TRUE(weir_output_path_claim(weir_test_path(wanted), path));
    EXPECT_STR_EQ(path, weir_test_path(name));
    weir_output_path_give_back(path);
}

// In a process that has given out no name itself: the name that it is given once the pipe has been written to.
static int claim_late(int pipe, const char *expected)
{
    char path[WEIR_OUTPUT_PATH_SIZE];
    char byte;
    if (read(pipe, &byte, 1) != 1 || !weir_output_path_claim(weir_test_path("job/run.json"), path))
        return 2;
    return strcmp(path, weir_test_path(expected)) != 0;
}

// What the process that has the name does before another one asks for it.
enum then {
    KEEPS_IT,
    GIVES_IT_BACK,
    MAKES_THE_FOLDER_AGAIN, // which would have the same inode, on most file systems
};

static void expect_other(enum then then, const char *expected)
{
    char path[WEIR_OUTPUT_PATH_SIZE];
    int ends[2];
    int status = -1;
    ASSERT_INT_EQ(mkdir(weir_test_path("job"), 0700), 0);
    ASSERT_INT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0)
        _exit(claim_late(ends[0], expected));
    ASSERT_TRUE(weir_output_path_claim(weir_test_path("job/run.json"), path));
    EXPECT_STR_EQ(path, weir_test_path("job/run.json"));
    if (then == GIVES_IT_BACK)
        weir_output_path_give_back(path);
    if (then == MAKES_THE_FOLDER_AGAIN) {
        ASSERT_INT_EQ(rmdir(weir_test_path("job")), 0);
        ASSERT_INT_EQ(mkdir(weir_test_path("job"), 0700), 0);
    }
    ASSERT_INT_EQ(write(ends[1], "x", 1), 1);
    ASSERT_INT_EQ(waitpid(child, &status, 0), child);
    EXPECT_INT_EQ(WEXITSTATUS(status), 0);
    weir_output_path_give_back(path);
    close(ends[0]);
    close(ends[1]);
    ASSERT_INT_EQ(rmdir(weir_test_path("job")), 0);
}

WEIR_TEST(OutputPath, IsOfOneProcessAtATime)
{
    leave_job();
    expect_other(KEEPS_IT, "job/run.2.json");
    expect_other(GIVES_IT_BACK, "job/run.json");
    expect_other(MAKES_THE_FOLDER_AGAIN, "job/run.json");
}

WEIR_TEST(OutputPath, HasTheRankInItsName)
{
    leave_job();
    setenv("RANK", "0", 1);
    expect_claim("run.json", "run.json");
    setenv("RANK", "12", 1);
    expect_claim("run.json.gz", "run.rank12.json.gz");
    expect_claim("run.rank12.json", "run.rank12.json");
    EXPECT_TRUE(weir_output_path_is_of("run.rank12.json", weir_test_path("run.json")));
    char path[WEIR_OUTPUT_PATH_SIZE];
    EXPECT_TRUE(weir_output_path_claim("/dev/null", path));
    EXPECT_STR_EQ(path, "/dev/null");
    EXPECT_TRUE(weir_output_path_name("run.%p.json", 77, path));
    EXPECT_STR_EQ(path, "run.77.json");
    setenv("RANK", "x", 1);
    expect_claim("run.json", "run.json");
    leave_job();
}

WEIR_TEST(OutputPath, KnowsTheFilesOfAJob)
{
    static const struct {
        const char *name;
        const char *wanted;
        bool is_of;
    } cases[] = {
        {"run.json", "/a/run.json", true},
        {"run.2.json", "/a/run.json", true},
        {"run.rank3.json", "/a/run.json", true},
        {"run.2.rank3.json", "/a/run.json", true},
        {"run.77.json", "/a/run.%p.json", true},
        {"run.2.77.json", "/a/run.%p.json", true},
        {"run", "/a.b/run", true},
        {"run.2", "/a.b/run", true},
        {"run.txt", "/a/run.json", false},
        {"run.x.json", "/a/run.json", false},
        {"run.json.gz", "/a/run.json", false},
        {"run2.json", "/a/run.json", false},
        {"run..json", "/a/run.%p.json", false},
        {"run.rank.json", "/a/run.json", false},
        {"run.rank2.json", "/a/run.rank1.json", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weir_test_note("%s, %s", cases[i].name, cases[i].wanted);
        EXPECT_INT_EQ(weir_output_path_is_of(cases[i].name, cases[i].wanted), cases[i].is_of);
    }
}
