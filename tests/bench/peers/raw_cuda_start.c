// The job through the CUDA driver.
#include "tests/bench/peers/raw_cuda.h"
#include "tests/bench/peers/start_job.h"

struct raw_start {
    struct start_job job;
    struct raw_cuda cu;
    CUfunction scale;
    CUstream stream;
    CUdeviceptr in, out;
};

// Its context, and its kernels.
static bool open_device(void *user)
{
    struct raw_start *start = user;
    struct raw_cuda *cu = &start->cu;
    return raw_cuda_open(cu) &&
           RAW_CUDA(cu, cuModuleGetFunction, &start->scale, cu->module, "scale");
}

static bool make(void *user)
{
    struct raw_start *start = user;
    struct raw_cuda *cu = &start->cu;
    const size_t size = sizeof start->job.numbers;
    return RAW_CUDA(cu, cuStreamCreate, &start->stream, CU_STREAM_NON_BLOCKING) &&
           RAW_CUDA(cu, cuMemAlloc, &start->in, size) &&
           RAW_CUDA(cu, cuMemAlloc, &start->out, size);
}

static bool compute(void *user)
{
    struct raw_start *start = user;
    struct raw_cuda *cu = &start->cu;
    const size_t size = sizeof start->job.numbers;
    float factor = 2;
    uint32_t count = START_NUMBERS;
    void *arguments[] = {&start->in, &start->out, &factor, &count};
    return RAW_CUDA(cu, cuMemcpyHtoD, start->in, start->job.numbers, size) &&
           RAW_CUDA(cu, cuLaunchKernel, start->scale, START_NUMBERS / 64, 1, 1, 64, 1, 1, 0,
                    start->stream, arguments, NULL) &&
           RAW_CUDA(cu, cuStreamSynchronize, start->stream) &&
           RAW_CUDA(cu, cuMemcpyDtoH, start->job.results, start->out, size);
}

static void end(void *user)
{
    struct raw_start *start = user;
    struct raw_cuda *cu = &start->cu;
    if (start->in)
        cu->cuMemFree(start->in);
    if (start->out)
        cu->cuMemFree(start->out);
    if (start->stream)
        cu->cuStreamDestroy(start->stream);
    start->in = start->out = 0;
    start->stream = NULL;
    raw_cuda_close(cu);
}

int main(int argc, char **argv)
{
    static struct raw_start start = {
        .job = {.name = "raw_cuda_start",
                .about = "Starts with the CUDA driver, until the first result.",
                .steps = {{"open", open_device}, {"make", make}, {"first", compute}},
                .step_count = 3,
                .end = end,
                .user = &start},
    };
    return start_main(&start.job, argc, argv);
}
