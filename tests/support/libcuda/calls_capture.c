// Captures of streams. What a captured stream is given becomes a node that comes after the stream's
// dependencies, and is then the only one of these, or one of two.
#include <stdlib.h>
#include <string.h>

#include "fake.h"

enum {
    FAKE_UNJOINED = 904
};

struct capture {
    struct capture *next;
    CUstream stream;
    CUgraph graph;
    CUgraphNode *dependencies;
    size_t count;
    bool spoiled;
};

static struct capture *captures;
bool fake_captures_fork;

static struct capture *find(CUstream stream)
{
    struct capture *capture = captures;
    while (capture && capture->stream != stream)
        capture = capture->next;
    return capture;
}

static void follow(struct capture *capture, const CUgraphNode *nodes, size_t count)
{
    CUgraphNode *copy = calloc(count + 1, sizeof(CUgraphNode));
    if (!copy)
        abort();
    if (count)
        memcpy(copy, nodes, count * sizeof(CUgraphNode));
    free(capture->dependencies);
    capture->dependencies = copy;
    capture->count = count;
}

static void drop(struct capture *capture)
{
    struct capture **at = &captures;
    while (*at != capture)
        at = &(*at)->next;
    *at = capture->next;
    free(capture->dependencies);
    free(capture);
}

bool fake_capture_take(CUstream stream, const struct fake_operation *operation)
{
    const struct fake_operation nothing = {.kind = FAKE_NOTHING};
    struct capture *capture = find(stream);
    CUgraphNode nodes[2];
    const size_t count = fake_captures_fork ? 2 : 1;
    if (!capture)
        return false;
    for (size_t i = 0; i < count; i++)
        if (fake_graph_add(CUDA_SUCCESS, &nodes[i], capture->graph, capture->dependencies,
                           capture->count, i == 0 ? operation : &nothing) != CUDA_SUCCESS)
            abort();
    follow(capture, nodes, count);
    return true;
}

bool fake_capture_spoil(CUstream stream)
{
    struct capture *capture = find(stream);
    if (capture)
        capture->spoiled = true;
    return capture != NULL;
}

// Another library's capture.

static bool others_capture;
static long spoiled;
static _Thread_local CUstreamCaptureMode mode_of_thread; // GLOBAL

static bool is_unsafe(const char *name)
{
    static const char *const names[] = {"cuEventQuery",      "cuEventSynchronize",
                                        "cuStreamQuery",     "cuStreamSynchronize",
                                        "cuMemHostAlloc",    "cuMemFreeHost",
                                        "cuMemAllocManaged", "cuMemFree",
                                        "cuMemAlloc"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

bool fake_spoils_others(const char *name)
{
    const bool spoils =
        others_capture && mode_of_thread != CU_STREAM_CAPTURE_MODE_RELAXED && is_unsafe(name);
    spoiled += spoils;
    return spoils;
}

long fake_capture_others(int begin)
{
    pthread_mutex_lock(&fake_lock);
    const long count = spoiled;
    others_capture = begin;
    spoiled = 0;
    pthread_mutex_unlock(&fake_lock);
    return count;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    BEGIN(false);
    const CUstreamCaptureMode before = mode_of_thread;
    if (code == CUDA_SUCCESS) {
        mode_of_thread = *mode;
        *mode = before;
    }
    END;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
    BEGIN(true);
    if (code == CUDA_SUCCESS &&
        (!fake_stream_known(stream) || find(stream) || mode != CU_STREAM_CAPTURE_MODE_RELAXED))
        code = CUDA_ERROR_INVALID_VALUE;
    if (code == CUDA_SUCCESS) {
        struct capture *capture = calloc(1, sizeof *capture);
        if (!capture)
            abort();
        *capture = (struct capture){captures, stream, fake_graph_create(), NULL, 0, false};
        captures = capture;
    }
    END;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    BEGIN(true);
    struct capture *capture = find(stream);
    *graph = NULL;
    if (code == CUDA_SUCCESS && !capture)
        code = CUDA_ERROR_INVALID_VALUE;
    if (code == CUDA_SUCCESS &&
        !fake_graph_ends_in(capture->graph, capture->dependencies, capture->count))
        code = FAKE_UNJOINED;
    if (code == CUDA_SUCCESS && capture->spoiled)
        code = FAKE_CAPTURE_INVALIDATED;
    if (code == CUDA_SUCCESS)
        *graph = capture->graph;
    else if (capture)
        fake_graph_destroy(capture->graph);
    if (capture)
        drop(capture);
    END;
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                CUgraph *graph, const CUgraphNode **dependencies, size_t *count)
{
    BEGIN(true);
    const struct capture *capture = find(stream);
    if (code == CUDA_SUCCESS && !capture)
        code = CUDA_ERROR_INVALID_VALUE;
    if (code == CUDA_SUCCESS) {
        *status = 1;
        *id = 1;
        *graph = capture->graph;
        *dependencies = capture->dependencies;
        *count = capture->count;
    }
    END;
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *dependencies, size_t count,
                                           unsigned flags)
{
    BEGIN(true);
    struct capture *capture = find(stream);
    if (code == CUDA_SUCCESS && (!capture || flags != CU_STREAM_SET_CAPTURE_DEPENDENCIES))
        code = CUDA_ERROR_INVALID_VALUE;
    if (code == CUDA_SUCCESS)
        follow(capture, dependencies, count);
    END;
}
