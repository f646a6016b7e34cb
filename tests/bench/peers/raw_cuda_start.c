// The job through the CUDA driver.
#include "tests/bench/peers/raw_peer.h"
#include "tests/bench/peers/start_job.h"

struct raw_start {
    struct start_job job;
    struct raw_cuda cu;
    CUfunction scale;
    CUstream stream;
    CUdeviceptr in, out;
};

static bool init(void *user)
{
    struct raw_start *start = user;
    return raw_peer_init(&start->cu);
}

static bool open_device(void *user)
{
    struct raw_start *start = user;
    return raw_peer_open_device(&start->cu);
}

static bool load(void *user)
{
    struct raw_start *start = user;
    return raw_peer_load_kernels(&start->cu);
}

static bool find(void *user)
{
    struct raw_start *start = user;
    struct raw_cuda *cu = &start->cu;
    return RAW_CUDA(cu, cuModuleGetFunction, &start->scale, cu->module, "scale");
}

static bool make_stream(void *user)
{
    struct raw_start *start = user;
    struct raw_cuda *cu = &start->cu;
    return RAW_CUDA(cu, cuStreamCreateWithPriority, &start->stream, CU_STREAM_NON_BLOCKING, 0);
}

static bool make_in(void *user)
{
    struct raw_start *start = user;
    struct raw_cuda *cu = &start->cu;
    return RAW_CUDA(cu, cuMemAlloc, &start->in, sizeof start->job.numbers);
}

static bool make_out(void *user)
{
    struct raw_start *start = user;
    struct raw_cuda *cu = &start->cu;
    return RAW_CUDA(cu, cuMemAlloc, &start->out, sizeof start->job.numbers);
}

static bool upload(void *user)
{
    struct raw_start *start = user;
    struct raw_cuda *cu = &start->cu;
    return RAW_CUDA(cu, cuMemcpyHtoD, start->in, start->job.numbers, sizeof start->job.numbers);
}

static bool compute(void *user)
{
    struct raw_start *start = user;
    struct raw_cuda *cu = &start->cu;
    float factor = 2;
    uint32_t count = START_NUMBERS;
    void *arguments[] = {&start->in, &start->out, &factor, &count};
    return RAW_CUDA(cu, cuLaunchKernel, start->scale, START_NUMBERS / 64, 1, 1, 64, 1, 1, 0,
                    start->stream, arguments, NULL) &&
           RAW_CUDA(cu, cuStreamSynchronize, start->stream) &&
           RAW_CUDA(cu, cuMemcpyDtoH, start->job.results, start->out, sizeof start->job.results);
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
                .steps = {{"runtime", init},
                          {"device", open_device},
                          {"program", load},
                          {"kernel", find},
                          {"queue", make_stream},
                          {"buffer", make_in},
                          {"next_buffer", make_out},
                          {"upload", upload},
                          {"compute", compute}},
                .step_count = 9,
                .end = end,
                .user = &start},
    };
    return start_main(&start.job, argc, argv);
}
