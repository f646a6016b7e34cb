#include "tests/plugins/sim/job.h"

const char *job_file(const char *name, const char *text)
{
    const char *path = weir_test_path(name);
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        weir_test_fail(__FILE__, __LINE__, "%s cannot be written", path);
    return path;
}

const char *job_trace(void)
{
    static int count;
    char name[32];
    snprintf(name, sizeof name, "trace_%d.json", ++count);
    return weir_test_path(name);
}

const char *job_section(const char *gpu, const char *kernel_ns, const char *more)
{
    static char text[1024];
    char costs[128];
    snprintf(costs, sizeof costs, "[kernel spin]\nfixed_ns = %s\n", kernel_ns);
    snprintf(text, sizeof text, "[sim]\ngpu = %s\ncosts = %s\n%s", gpu,
             job_file("costs.ini", costs), more);
    return text;
}

bool job_start(struct job *job, const char *trace, const char *section, const char *plugins)
{
    *job = (struct job){.host = NULL};
    if (!rig_start(&job->rig, trace, section, plugins))
        return false;
    for (int i = 0; i < CHUNKS; i++)
        job->queues[i] = job_queue(job->rig.device, 0);
    job->memory = test_buffer(job->rig.device, "", CHUNK * CHUNKS, WEIR_PLACE_DEVICE);
    job->host = test_buffer(job->rig.device, "", CHUNK * CHUNKS, WEIR_PLACE_HOST);
    return job->queues[CHUNKS - 1] && job->memory && job->host;
}

void job_finish(struct job *job)
{
    for (int i = 0; i < CHUNKS; i++)
        weir_queue_destroy(&job->queues[i]);
    weir_buffer_destroy(&job->host);
    weir_buffer_destroy(&job->memory);
    rig_finish(&job->rig);
}

weir_status job_spin(const struct job *job, weir_queue *queue, size_t at, uint32_t blocks)
{
    return weir_queue_launch(queue, job->rig.kernel, weir_dim(blocks, 1, 1), weir_dim(64, 1, 1),
                             weir_out(job->memory, at, (size_t)blocks * 256), 7u, (uint64_t)3);
}

void job_submit(struct job *job, int chunk, int part)
{
    weir_queue *queue = job->queues[chunk];
    const size_t at = (size_t)chunk * CHUNK;
    if (part == 0)
        EXPECT_OK(weir_queue_copy(queue, job->memory, at, job->host, at, CHUNK));
    else if (part == 1)
        EXPECT_OK(job_spin(job, queue, at, BLOCKS));
    else
        EXPECT_OK(weir_queue_copy(queue, job->host, at, job->memory, at, CHUNK));
}

bool job_start_plain(struct job *job, const char *more, const char *host)
{
    char gpu[1024];
    char section[512];
    snprintf(gpu, sizeof gpu,
             "[gpu]\nname = plain\n%skernels = 16\n"
             "h2d_gb_per_s = 1\nd2h_gb_per_s = 1\nd2d_gb_per_s = 1\n%s"
             "[kernel spin]\nfixed_ns = 1000\nper_item_ns = 10\nper_argument_2_ns = 100\n",
             strstr(more, "copy_engines") ? "" : "copy_engines = 2\n", more);
    snprintf(section, sizeof section, "[sim]\ngpu = %s\nhost = %s\n", job_file("plain.ini", gpu),
             host);
    return job_start(job, job_trace(), section, "sim");
}

uint64_t job_time(struct weir_event event)
{
    uint64_t time_ns = 0;
    EXPECT_OK(weir_event_sync(event, WEIR_FOREVER));
    EXPECT_OK(weir_event_time_ns(event, &time_ns));
    return time_ns;
}

uint64_t job_now(weir_queue *queue)
{
    struct weir_event event = {0};
    EXPECT_OK(weir_queue_record(queue, &event));
    return job_time(event);
}

weir_queue *job_queue(weir_device *device, int32_t priority)
{
    weir_queue *queue = NULL;
    EXPECT_OK(weir_queue_create(device,
                                WEIR_PARAMS(weir_queue, .priority = priority, .timing = true),
                                &queue));
    return queue;
}
