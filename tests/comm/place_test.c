// Where rank, count, rendezvous and the rest come from.

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

// What is set, as "NAME=VALUE NAME=VALUE", in the section [comm] and in the parameters, and what comes of it.
struct row {
    const char *set;
    weir_status status; // WEIR_OK: one rank of one, which joins at once
    const char *words;
    const char *section;
    struct weir_comm_params params;
};

static void set_all(const char *text)
{
    char copy[1024];
    char *at = copy;
    clear();
    snprintf(copy, sizeof copy, "%s", text);
    for (char *one = strtok_r(copy, " ", &at); one; one = strtok_r(NULL, " ", &at)) {
        char *value = strchr(one, '=');
        *value = '\0';
        setenv(one, value + 1, 1);
    }
}

static void expect_row(const struct row *row)
{
    char text[512];
    struct comm_rig rig;
    own_comm comm = NULL;
    struct weir_comm_params params = row->params;
    params.struct_size = sizeof params;
    params.timeout_ns = 1;
    weir_test_note("%s; %s", row->set, row->words ? row->words : "");
    set_all(row->set);
    snprintf(text, sizeof text, "[comm]\ntransport = fake\n%s\n", row->section ? row->section : "");
    comm_rig_open(&rig, text, 0, WEIR_PLACE_DEVICE);
    if (row->status == WEIR_OK)
        params.timeout_ns = 0;
    EXPECT_INT_EQ(weir_comm_create(rig.device, &params, &comm), row->status);
    if (row->status < 0) {
        EXPECT_ERROR(row->words);
        EXPECT_TRUE(comm == NULL);
    } else {
        EXPECT_UINT_EQ(weir_comm_rank(comm), 0);
        EXPECT_UINT_EQ(weir_comm_count(comm), 1);
    }
    weir_comm_destroy(&comm);
    comm_rig_close(&rig);
    clear();
    weir_test_note(NULL);
}

#define AT_HOST " MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"
#define SLURM "SLURM_PROCID=1 SLURM_NTASKS=5 SLURM_JOB_ID=4321007 "
#define FILE_OF_COMM "rank = 1\ncount = 3\nrendezvous = file:from-the-file"
#define MISSING(text) .status = WEIR_ERROR_COMM, .words = "some of " text
#define REFUSED(text) .status = WEIR_ERROR_CONFIG, .words = (text)

// The second rank of several waits for the first, in vain: the message has what the transport was told.
static const struct row rows[] = {
    {"", .status = WEIR_OK},
    // Launchers.
    {"RANK=1 WORLD_SIZE=2" AT_HOST, MISSING("2 ranks are missing at 'tcp://127.0.0.1:29500'")},
    {"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3", MISSING("3 ranks are missing at ''")},
    {"PMI_RANK=1 PMI_SIZE=4 MASTER_ADDR=::1 MASTER_PORT=29500",
     MISSING("4 ranks are missing at 'tcp://[::1]:29500'")},
    {"SLURM_PROCID=1 SLURM_NTASKS=5", MISSING("5 ranks")},
    // Slurm: the first host of the list, at a port that all ranks compute alike.
    {SLURM "SLURM_STEP_NODELIST=node[1-4,7]",
     MISSING("5 ranks are missing at 'tcp://node1:16007'")},
    {SLURM "SLURM_STEP_NODELIST=node[07-16]-ib,gpu3 SLURM_STEP_ID=2",
     MISSING("5 ranks are missing at 'tcp://node07-ib:16209'")},
    {SLURM "SLURM_STEP_NODELIST=gpu3,node[1-4] SLURM_STEP_ID=0",
     MISSING("5 ranks are missing at 'tcp://gpu3:16007'")},
    {SLURM "SLURM_JOB_NODELIST=host1 SLURM_STEP_ID=0",
     MISSING("5 ranks are missing at 'tcp://host1:16007'")},
    {SLURM "SLURM_STEP_NODELIST=node1" AT_HOST,
     MISSING("5 ranks are missing at 'tcp://127.0.0.1:29500'")},
    {"SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_JOB_ID=43 SLURM_STEP_NODELIST=node1", .status = WEIR_OK},
    {SLURM "SLURM_STEP_NODELIST=", REFUSED("no first host is found")},
    {SLURM "SLURM_STEP_NODELIST=,b", REFUSED("no first host is found")},
    {SLURM "SLURM_STEP_NODELIST=node[1-4", REFUSED("no first host is found")},
    {SLURM "SLURM_STEP_NODELIST=node[]", REFUSED("no first host is found")},
    {SLURM "SLURM_STEP_NODELIST=r[1-2]n[1-2]",
     REFUSED("no first host is found in SLURM's list of hosts")},
    // Parameters beat WEIR_COMM_*, which beats the file, which beats launchers.
    {"RANK=1 WORLD_SIZE=2" AT_HOST, MISSING("3 ranks are missing at 'file:from-the-file'"),
     .section = FILE_OF_COMM},
    {"WEIR_COMM_RANK=0 WEIR_COMM_COUNT=4 WEIR_COMM_RENDEZVOUS=file:from-variable",
     MISSING("4 ranks are missing at 'file:from-variable'"), .section = FILE_OF_COMM},
    {"WEIR_COMM_RANK=0 WEIR_COMM_COUNT=4", MISSING("5 ranks are missing at 'file:from-params'"),
     .section = FILE_OF_COMM, .params = {.rank = 1, .count = 5, .rendezvous = "file:from-params"}},
    // Contradictions.
    {"RANK=1", REFUSED("RANK is set, and WORLD_SIZE is not")},
    {"SLURM_NTASKS=1", REFUSED("SLURM_NTASKS is set, and SLURM_PROCID is not")},
    {"RANK=one WORLD_SIZE=2", REFUSED("RANK is 'one', which is no number of 32 bits")},
    {"RANK=0 WORLD_SIZE=4294967296", REFUSED("WORLD_SIZE is '4294967296'")},
    {"RANK=2 WORLD_SIZE=2", REFUSED("rank 2 of 2 ranks (WORLD_SIZE)")},
    {"MASTER_ADDR=127.0.0.1", REFUSED("MASTER_ADDR is set, and MASTER_PORT is not")},
    {"MASTER_PORT=29500", REFUSED("MASTER_PORT is set, and MASTER_ADDR is not")},
    {"WEIR_COMM_RANK=1", REFUSED("WEIR_COMM_RANK is set, and `count` of [comm] is not")},
    {"", REFUSED("is set, and `rank` of [comm] is not"), .section = "count = 2"},
    {"", REFUSED("rank 3 of 2 ranks"), .section = "rank = 3\ncount = 2"},
    {"", REFUSED("rank 2 of 2 ranks (the parameters)"), .params = {.rank = 2, .count = 2}},
};

WEIR_TEST(CommPlace, Sources)
{
    char longer[600];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    const struct row too_long = {"", REFUSED("has more than 511 bytes"),
                                 .params = {.count = 1, .rendezvous = longer}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_row(&rows[i]);
    expect_row(&too_long);
}

// What weir_open() refuses.
static void expect_not_opened(const char *text, const char *words)
{
    weir_runtime *runtime;
    EXPECT_FAILURE(weir_open(WEIR_PARAMS(weir_open, .config_text = text), &runtime),
                   WEIR_ERROR_CONFIG, words);
    clear();
}

WEIR_TEST(CommPlace, Section)
{
    clear();
    expect_not_opened("[comm]\nranks = 1\n", "unknown key 'ranks' in [comm]; did you mean 'rank'?");
    expect_not_opened("[comm]\ntimeout = 0\n", "'timeout' of [comm] must be from 1 to 86400");
    expect_not_opened("[com]\n", "unknown section [com]; did you mean 'comm'?");
    setenv("WEIR_COMM_CHECK", "yes", 1);
    expect_not_opened("", "WEIR_COMM_CHECK: 'check' of [comm] must be 0 or 1, not 'yes'");
}

WEIR_TEST(CommPlace, SeveralDevices)
{
    own_comm_rig rig = {0};
    weir_comm *comms[3];
    clear();
    comm_rig_open(&rig, "[comm]\ntransport = fake\n", 0, WEIR_PLACE_DEVICE);
    weir_device *const devices[] = {rig.device, rig.device, rig.device};
    EXPECT_FAILURE(weir_comm_create_all(devices, 3, WEIR_PARAMS(weir_comm, .rank = 1, .count = 3),
                                        comms),
                   WEIR_ERROR_INVALID, "3 devices from rank 1 on do not fit into 3 ranks");
    EXPECT_OK(weir_comm_create_all(devices, 3, NULL, comms));
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_UINT_EQ(weir_comm_rank(comms[i]), i);
        EXPECT_UINT_EQ(weir_comm_count(comms[i]), 3);
        weir_comm_destroy(&comms[i]);
    }
}
