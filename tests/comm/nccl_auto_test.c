// `nccl = auto` where there is no usable NCCL: the log says which rank lacks it and what to install, and the
// collectives run through the host. A library that was loaded stays, so each is a process.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/comm/nccl.h"

#define REMEDY                                                                                  \
    "; install NCCL 2.18 or newer (libnccl2), or name the libnccl.so.2 of a Python wheel with " \
    "`nccl` in [cuda]"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // ranks are created on threads
static char warning[1024];

static void keep_warning(void *user, weir_log_level level, const char *source, const char *message)
{
    (void)user;
    (void)source;
    pthread_mutex_lock(&lock);
    if (level == WEIR_LOG_WARNING && strstr(message, "collectives run through the host"))
        snprintf(warning, sizeof warning, "%s", message);
    pthread_mutex_unlock(&lock);
}

// Creates two ranks, whose collectives give the right result.
static void expect_host(void)
{
    static const int32_t one[] = {1};
    static const int32_t two[] = {2};
    struct comm_rig rig;
    setenv("WEIR_CUDA_NCCL", "auto", 1);
    weir_log_set(keep_warning, NULL, WEIR_LOG_WARNING);
    comm_rig_open(&rig, "", 2, WEIR_PLACE_DEVICE);
    weir_log_set(NULL, NULL, WEIR_LOG_ERROR);
    EXPECT_STR_EQ(weir_comm_engine(rig.comms[0]), "local");
    for (uint32_t rank = 0; rank < 2; rank++) {
        comm_rig_write(&rig, rank, rig.src[rank], 0, one, 1);
        EXPECT_OK(weir_queue_all_reduce(rig.queues[rank], rig.comms[rank], rig.dst[rank], 0,
                                        rig.src[rank], 0, 1, WEIR_I32, WEIR_SUM));
    }
    for (uint32_t rank = 0; rank < 2; rank++)
        comm_rig_expect(&rig, rank, rig.dst[rank], 0, two, 1);
    comm_rig_close(&rig);
}

// A machine that has the real one cannot show this.
NCCL_ALONE(CommNcclAuto, None)
{
    void *real = dlopen("libnccl.so.2", RTLD_NOW);
    if (real) {
        dlclose(real);
        return;
    }
    expect_host();
    const char *begin = "collectives run through the host: rank 0 has no usable NCCL: ";
    EXPECT_TRUE(strncmp(warning, begin, strlen(begin)) == 0);
    EXPECT_TRUE(strstr(warning, "libnccl.so.2: cannot open shared object file") != NULL);
    EXPECT_TRUE(strstr(warning, REMEDY) != NULL);
}

// The one that the program has loaded.
NCCL_ALONE(CommNcclAuto, TooOld)
{
    setenv("WEIR_TEST_NCCL_VERSION", "21704", 1);
    void *old = dlopen(weir_test_runfile(NCCL_LIBRARY), RTLD_NOW);
    ASSERT_TRUE(old != NULL);
    expect_host();
    EXPECT_STR_EQ(warning, "collectives run through the host: rank 0 has no usable NCCL: NCCL "
                           "2.17.4 is older than 2.18" REMEDY);
    dlclose(old);
}
