// Where rank, count, rendezvous and the rest come from.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/comm/rig.h"

static const char *const variables[] = {
    "WEIR_COMM_RANK",
    "WEIR_COMM_COUNT",
    "WEIR_COMM_RENDEZVOUS",
    "WEIR_COMM_TIMEOUT",
    "WEIR_COMM_CHECK",
    "WEIR_COMM_TRANSPORT",
    "RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "PMI_RANK",
    "PMI_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_STEP_NODELIST",
    "SLURM_JOB_NODELIST",
    "OMPI_COMM_WORLD_SIZE",
};

static void clear(void)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
}

static weir_status create(const char *section, const struct weir_comm_params *params,
                          weir_comm **out_comm, struct comm_rig *rig)
{
    char text[512];
    snprintf(text, sizeof text, "[comm]\ntransport = fake\n%s\n", section);
    comm_rig_open(rig, text, 0, WEIR_PLACE_DEVICE);
    return weir_comm_create(rig->device, params, out_comm);
}

// The environment names one rank of one, which joins at once.
static void expect_one(const char *section, const struct weir_comm_params *params)
{
    struct comm_rig rig;
    weir_comm *comm;
    EXPECT_OK(create(section, params, &comm, &rig));
    EXPECT_UINT_EQ(weir_comm_rank(comm), 0);
    EXPECT_UINT_EQ(weir_comm_count(comm), 1);
    weir_comm_destroy(&comm);
    comm_rig_close(&rig);
    clear();
}

// The second rank of two waits for the first, in vain: the message has what the transport was told.
static void expect_missing(const char *section, const struct weir_comm_params *params,
                           const char *words)
{
    struct comm_rig rig;
    weir_comm *comm;
    EXPECT_INT_EQ(create(section, params, &comm, &rig), WEIR_ERROR_COMM);
    comm_rig_expect_words(&words, 1);
    comm_rig_close(&rig);
    clear();
}

static void expect_refused(const char *section, const struct weir_comm_params *params,
                           const char *words)
{
    struct comm_rig rig;
    weir_comm *comm;
    EXPECT_INT_EQ(create(section, params, &comm, &rig), WEIR_ERROR_CONFIG);
    comm_rig_expect_words(&words, 1);
    EXPECT_TRUE(comm == NULL);
    comm_rig_close(&rig);
    clear();
}

static void set(const char *name, const char *value)
{
    setenv(name, value, 1);
}

static const struct weir_comm_params soon = {.struct_size = sizeof soon, .timeout_ns = 1};

WEIR_TEST(CommPlace, AloneWithoutALauncher)
{
    clear();
    expect_one("", NULL);
}

WEIR_TEST(CommPlace, Launchers)
{
    clear();
    set("RANK", "1"), set("WORLD_SIZE", "2");
    set("MASTER_ADDR", "127.0.0.1"), set("MASTER_PORT", "29500");
    expect_missing("", &soon, "some of 2 ranks are missing at 'tcp://127.0.0.1:29500'");
    set("OMPI_COMM_WORLD_RANK", "1"), set("OMPI_COMM_WORLD_SIZE", "3");
    expect_missing("", &soon, "some of 3 ranks are missing at ''");
    set("PMI_RANK", "1"), set("PMI_SIZE", "4");
    set("MASTER_ADDR", "::1"), set("MASTER_PORT", "29500");
    expect_missing("", &soon, "some of 4 ranks are missing at 'tcp://[::1]:29500'");
    set("SLURM_PROCID", "1"), set("SLURM_NTASKS", "5");
    expect_missing("", &soon, "some of 5 ranks");
}

static void set_slurm(const char *nodes, const char *step)
{
    set("SLURM_PROCID", "1"), set("SLURM_NTASKS", "5"), set("SLURM_JOB_ID", "4321007");
    set("SLURM_STEP_NODELIST", nodes);
    if (step)
        set("SLURM_STEP_ID", step);
}

// The first host of the list, at a port that all ranks compute alike.
WEIR_TEST(CommPlace, SlurmMeetsAtItsFirstHost)
{
    clear();
    set_slurm("node[1-4,7]", NULL);
    expect_missing("", &soon, "at 'tcp://node1:16007'");
    set_slurm("node[07-16]-ib,gpu3", "2");
    expect_missing("", &soon, "at 'tcp://node07-ib:16209'");
    set_slurm("gpu3,node[1-4]", "0");
    expect_missing("", &soon, "at 'tcp://gpu3:16007'");
    set_slurm("gpu[5,9]", "0");
    unsetenv("SLURM_STEP_NODELIST"), set("SLURM_JOB_NODELIST", "host1");
    expect_missing("", &soon, "at 'tcp://host1:16007'");
    set_slurm("node1", NULL);
    set("MASTER_ADDR", "127.0.0.1"), set("MASTER_PORT", "29500");
    expect_missing("", &soon, "at 'tcp://127.0.0.1:29500'");
    set_slurm("node1", NULL);
    set("SLURM_PROCID", "0"), set("SLURM_NTASKS", "1");
    expect_one("", NULL);
}

WEIR_TEST(CommPlace, SlurmListsThatAreNone)
{
    static const char *const lists[] = {"", ",b", "node[1-4", "node[]", "r[1-2]n[1-2]"};
    clear();
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        set_slurm(lists[i], NULL);
        expect_refused("", NULL, "no first host is found in SLURM's list of hosts");
    }
}

// Parameters beat WEIR_COMM_*, which beats the file, which beats launchers.
WEIR_TEST(CommPlace, Precedence)
{
    static const char file[] = "rank = 1\ncount = 3\nrendezvous = file:from-the-file";
    const struct weir_comm_params params = {.struct_size = sizeof params,
                                            .rank = 1,
                                            .count = 5,
                                            .rendezvous = "file:from-params",
                                            .timeout_ns = 1};
    clear();
    set("RANK", "1"), set("WORLD_SIZE", "2");
    set("MASTER_ADDR", "127.0.0.1"), set("MASTER_PORT", "29500");
    expect_missing(file, &soon, "some of 3 ranks are missing at 'file:from-the-file'");
    set("WEIR_COMM_RANK", "0"), set("WEIR_COMM_COUNT", "4");
    set("WEIR_COMM_RENDEZVOUS", "file:from-variable");
    expect_missing(file, &soon, "some of 4 ranks are missing at 'file:from-variable'");
    set("WEIR_COMM_RANK", "0"), set("WEIR_COMM_COUNT", "4");
    expect_missing(file, &params, "some of 5 ranks are missing at 'file:from-params'");
}

WEIR_TEST(CommPlace, Contradictions)
{
    char longer[600];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    clear();
    set("RANK", "1");
    expect_refused("", NULL, "RANK is set, and WORLD_SIZE is not");
    set("SLURM_NTASKS", "1");
    expect_refused("", NULL, "SLURM_NTASKS is set, and SLURM_PROCID is not");
    set("RANK", "one"), set("WORLD_SIZE", "2");
    expect_refused("", NULL, "RANK is 'one', which is no number of 32 bits");
    set("RANK", "0"), set("WORLD_SIZE", "4294967296");
    expect_refused("", NULL, "WORLD_SIZE is '4294967296'");
    set("RANK", "2"), set("WORLD_SIZE", "2");
    expect_refused("", NULL, "rank 2 of 2 ranks (WORLD_SIZE)");
    set("MASTER_ADDR", "127.0.0.1");
    expect_refused("", NULL, "MASTER_ADDR is set, and MASTER_PORT is not");
    set("MASTER_PORT", "29500");
    expect_refused("", NULL, "MASTER_PORT is set, and MASTER_ADDR is not");
    set("WEIR_COMM_RANK", "1");
    expect_refused("", NULL, "WEIR_COMM_RANK is set, and `count` of [comm] is not");
    expect_refused("count = 2", NULL, "is set, and `rank` of [comm] is not");
    expect_refused("rank = 3\ncount = 2", NULL, "rank 3 of 2 ranks");
    expect_refused("", WEIR_PARAMS(weir_comm, .rank = 2, .count = 2),
                   "rank 2 of 2 ranks (the parameters)");
    expect_refused("", WEIR_PARAMS(weir_comm, .count = 1, .rendezvous = longer),
                   "has more than 511 bytes");
}

// What weir_open() refuses.
static void expect_not_opened(const char *text, const char *words)
{
    weir_runtime *runtime;
    EXPECT_INT_EQ(weir_open(WEIR_PARAMS(weir_open, .config_text = text), &runtime),
                  WEIR_ERROR_CONFIG);
    comm_rig_expect_words(&words, 1);
    clear();
}

WEIR_TEST(CommPlace, Section)
{
    clear();
    expect_not_opened("[comm]\nranks = 1\n", "unknown key 'ranks' in [comm]; did you mean 'rank'?");
    expect_not_opened("[comm]\ntimeout = 0\n", "'timeout' of [comm] must be from 1 to 86400");
    expect_not_opened("[com]\n", "unknown section [com]; did you mean [comm]?");
    set("WEIR_COMM_CHECK", "yes");
    expect_not_opened("", "WEIR_COMM_CHECK: 'check' of [comm] must be 0 or 1, not 'yes'");
}

WEIR_TEST(CommPlace, SeveralDevices)
{
    struct comm_rig rig;
    weir_comm *comms[3];
    clear();
    comm_rig_open(&rig, "[comm]\ntransport = fake\n", 0, WEIR_PLACE_DEVICE);
    weir_device *const devices[] = {rig.device, rig.device, rig.device};
    EXPECT_INT_EQ(weir_comm_create_all(devices, 3, WEIR_PARAMS(weir_comm, .rank = 1, .count = 3),
                                       comms),
                  WEIR_ERROR_INVALID);
    COMM_RIG_EXPECT_WORDS("3 devices from rank 1 on do not fit into 3 ranks");
    EXPECT_OK(weir_comm_create_all(devices, 3, NULL, comms));
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_UINT_EQ(weir_comm_rank(comms[i]), i);
        EXPECT_UINT_EQ(weir_comm_count(comms[i]), 3);
        weir_comm_destroy(&comms[i]);
    }
    comm_rig_close(&rig);
}
