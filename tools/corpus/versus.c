// Times two images of the same kernels on the first NVIDIA GPU, in turns, through the driver alone.
// versus.py writes the script on stdin:
//
//     image SIDE PATH                a cubin; SIDE is 0 or 1
//     buffer COUNT zeros | uniform LOW HIGH | integers LOW HIGH | bytes | nodes DEGREE |
//                  diagonal SIZE | borders SIZE PENALTY     the next buffer, of 4-byte elements
//     launch SIDE KERNEL X Y Z x y z SHARED ARGUMENT...     blocks, threads, dynamic shared bytes
//     check BUFFER BOUND             the sides' results may differ by BOUND of the largest value
//     time ROUNDS REPEATS            prints a line for each round: nanoseconds of side 0, of side 1
//
// An ARGUMENT is b0 (the first buffer) or v and the value's bytes in hexadecimal. `time` runs each
// side once from the first contents, compares, and then times graphs of REPEATS times all launches.
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE = 4096,
    BUFFERS = 16,
    ARGUMENTS = 16,
    LAUNCHES = 8192,
    CHECKS = 8
};

typedef unsigned long long address;

// What is used of <cuda.h>, with the types of the driver's interface.
static struct {
    int (*init)(unsigned);
    int (*retain)(void **, int);
    int (*set_current)(void *);
    int (*error_string)(int, const char **);
    int (*load)(void **, const char *);
    int (*function)(void **, void *, const char *);
    int (*alloc)(address *, size_t);
    int (*upload)(address, const void *, size_t);
    int (*download)(void *, address, size_t);
    int (*copy)(address, address, size_t, void *);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  void *, void **, void **);
    int (*stream)(void **, unsigned);
    int (*stream_sync)(void *);
    int (*event)(void **, unsigned);
    int (*record)(void *, void *);
    int (*elapsed)(float *, void *, void *);
    int (*capture)(void *, int);
    int (*end_capture)(void *, void **);
    int (*instantiate)(void **, void *, unsigned long long);
    int (*graph_launch)(void *, void *);
} cu;

static const struct {
    void *slot;
    const char *name;
} names[] = {
    {(void *)&cu.init, "cuInit"},
    {(void *)&cu.retain, "cuDevicePrimaryCtxRetain"},
    {(void *)&cu.set_current, "cuCtxSetCurrent"},
    {(void *)&cu.error_string, "cuGetErrorString"},
    {(void *)&cu.load, "cuModuleLoad"},
    {(void *)&cu.function, "cuModuleGetFunction"},
    {(void *)&cu.alloc, "cuMemAlloc_v2"},
    {(void *)&cu.upload, "cuMemcpyHtoD_v2"},
    {(void *)&cu.download, "cuMemcpyDtoH_v2"},
    {(void *)&cu.copy, "cuMemcpyDtoDAsync_v2"},
    {(void *)&cu.launch, "cuLaunchKernel"},
    {(void *)&cu.stream, "cuStreamCreate"},
    {(void *)&cu.stream_sync, "cuStreamSynchronize"},
    {(void *)&cu.event, "cuEventCreate"},
    {(void *)&cu.record, "cuEventRecord"},
    {(void *)&cu.elapsed, "cuEventElapsedTime"},
    {(void *)&cu.capture, "cuStreamBeginCapture_v2"},
    {(void *)&cu.end_capture, "cuStreamEndCapture"},
    {(void *)&cu.instantiate, "cuGraphInstantiateWithFlags"},
    {(void *)&cu.graph_launch, "cuGraphLaunch"},
};

struct buffer {
    address now, first;
    size_t size;
};

struct launch {
    void *function;
    unsigned extents[6];
    unsigned shared;
    unsigned count;
    uint64_t values[ARGUMENTS];
};

struct check {
    size_t buffer;
    double bound;
};

static struct {
    void *images[2];
    void *stream;
    void *events[2];
    struct buffer buffers[BUFFERS];
    size_t buffer_count;
    struct launch launches[2][LAUNCHES];
    size_t launch_counts[2];
    struct check checks[CHECKS];
    size_t check_count;
    char line[LINE]; // for messages
} s;

static void need(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "versus: %s: %s\n", what, s.line);
    exit(1);
}

static void driver(int result)
{
    const char *text = "unknown error";
    if (result != 0)
        (void)cu.error_string(result, &text);
    need(result == 0, text);
}

static void open_device(void)
{
    void *context;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    need(library != NULL, "no NVIDIA driver (libcuda.so.1)");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *found = dlsym(library, names[i].name);
        need(found != NULL, names[i].name);
        memcpy(names[i].slot, (void *)&found, sizeof found);
    }
    driver(cu.init(0));
    driver(cu.retain(&context, 0));
    driver(cu.set_current(context));
    driver(cu.stream(&s.stream, 1));
    driver(cu.event(&s.events[0], 0));
    driver(cu.event(&s.events[1], 0));
}

// The next word of the line, or "" at its end.
static const char *word(char **rest)
{
    const char *found = strtok_r(NULL, " \n", rest);
    return found ? found : "";
}

static double number(char **rest)
{
    return strtod(word(rest), NULL);
}

static uint32_t next_random(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

static float uniform(double low, double high)
{
    return (float)(low + (high - low) * next_random() / 2147483648.0);
}

static int32_t integer(double low, double high)
{
    return (int32_t)low + (int32_t)(next_random() % (uint32_t)(high - low));
}

// A matrix that can be decomposed without a choice of pivots.
static void fill_diagonal(float *out, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++)
        out[i] = uniform(0, 1) + (i / size == i % size ? (float)size : 0.0f);
}

// The first row and the first column of an alignment's scores.
static void fill_borders(int32_t *out, size_t size, int32_t penalty)
{
    for (size_t i = 1; i < size; i++)
        out[i] = out[i * size] = -(int32_t)i * penalty;
}

static void fill(void *bytes, size_t count, char **rest)
{
    const char *kind = word(rest);
    const double a = number(rest), b = number(rest);
    float *floats = bytes;
    int32_t *integers = bytes;
    if (strcmp(kind, "bytes") == 0)
        *(char *)bytes = 1;
    else if (strcmp(kind, "diagonal") == 0)
        fill_diagonal(floats, count, (size_t)a);
    else if (strcmp(kind, "borders") == 0)
        fill_borders(integers, (size_t)a, (int32_t)b);
    else if (strcmp(kind, "zeros") != 0)
        for (size_t i = 0; i < count; i++) {
            if (strcmp(kind, "uniform") == 0)
                floats[i] = uniform(a, b);
            else if (strcmp(kind, "integers") == 0)
                integers[i] = integer(a, b);
            else if (strcmp(kind, "nodes") == 0)
                integers[i] = i % 2 ? (int32_t)a : (int32_t)(i / 2) * (int32_t)a;
            else
                need(false, "no such contents");
        }
}

static void add_buffer(char **rest)
{
    need(s.buffer_count < BUFFERS, "too many buffers");
    struct buffer *buffer = &s.buffers[s.buffer_count++];
    const size_t count = (size_t)number(rest);
    void *bytes = calloc(count, 4);
    need(bytes != NULL, "no memory");
    fill(bytes, count, rest);
    buffer->size = count * 4;
    driver(cu.alloc(&buffer->now, buffer->size));
    driver(cu.alloc(&buffer->first, buffer->size));
    driver(cu.upload(buffer->first, bytes, buffer->size));
    free(bytes);
}

static uint64_t argument(const char *text)
{
    uint64_t value = 0;
    if (text[0] == 'b')
        return s.buffers[strtoul(text + 1, NULL, 10)].now;
    for (unsigned i = 0; text[1 + 2 * i] && i < sizeof value; i++) {
        const char digits[3] = {text[1 + 2 * i], text[2 + 2 * i], '\0'};
        value |= (uint64_t)strtoul(digits, NULL, 16) << 8 * i;
    }
    return value;
}

static void add_launch(char **rest)
{
    const int side = word(rest)[0] == '1';
    need(s.launch_counts[side] < LAUNCHES, "too many launches");
    struct launch *launch = &s.launches[side][s.launch_counts[side]++];
    driver(cu.function(&launch->function, s.images[side], word(rest)));
    for (int i = 0; i < 6; i++)
        launch->extents[i] = (unsigned)number(rest);
    launch->shared = (unsigned)number(rest);
    for (const char *text; *(text = word(rest));) {
        need(launch->count < ARGUMENTS, "too many arguments");
        launch->values[launch->count++] = argument(text);
    }
}

static void submit(int side)
{
    for (size_t i = 0; i < s.launch_counts[side]; i++) {
        struct launch *l = &s.launches[side][i];
        void *pointers[ARGUMENTS];
        for (unsigned a = 0; a < l->count; a++)
            pointers[a] = &l->values[a];
        driver(cu.launch(l->function, l->extents[0], l->extents[1], l->extents[2], l->extents[3],
                         l->extents[4], l->extents[5], l->shared, s.stream, pointers, NULL));
    }
}

static void restore(void)
{
    for (size_t i = 0; i < s.buffer_count; i++)
        driver(cu.copy(s.buffers[i].now, s.buffers[i].first, s.buffers[i].size, s.stream));
}

static void *results(size_t buffer)
{
    void *bytes = malloc(s.buffers[buffer].size);
    need(bytes != NULL, "no memory");
    driver(cu.stream_sync(s.stream));
    driver(cu.download(bytes, s.buffers[buffer].now, s.buffers[buffer].size));
    return bytes;
}

// A bound of 0 asks for the same bits, and for a result that is not the first contents.
static void compare(const struct check *check, void *const bytes[2])
{
    const size_t size = s.buffers[check->buffer].size;
    double largest = 0, difference = 0;
    void *first = malloc(size);
    need(first != NULL, "no memory");
    driver(cu.download(first, s.buffers[check->buffer].first, size));
    need(memcmp(first, bytes[0], size) != 0, "the kernels changed nothing");
    free(first);
    need(check->bound > 0 || memcmp(bytes[0], bytes[1], size) == 0, "the results differ");
    for (size_t i = 0; i < size / 4 && check->bound > 0; i++) {
        const double a = ((float *)bytes[0])[i], b = ((float *)bytes[1])[i];
        need(isfinite(a) && isfinite(b), "a result is not finite");
        largest = fmax(largest, fabs(b));
        difference = fmax(difference, fabs(a - b));
    }
    need(difference <= check->bound * largest, "the results differ by more than the bound");
    printf("error %g\n", largest > 0 ? difference / largest : 0);
}

static void compare_all(void)
{
    void *bytes[CHECKS][2];
    for (int side = 0; side < 2; side++) {
        restore();
        submit(side);
        for (size_t i = 0; i < s.check_count; i++)
            bytes[i][side] = results(s.checks[i].buffer);
    }
    for (size_t i = 0; i < s.check_count; i++) {
        compare(&s.checks[i], bytes[i]);
        free(bytes[i][0]);
        free(bytes[i][1]);
    }
}

static void *graph_of(int side, unsigned repeats)
{
    void *graph, *executable;
    driver(cu.capture(s.stream, 0));
    for (unsigned i = 0; i < repeats; i++)
        submit(side);
    driver(cu.end_capture(s.stream, &graph));
    driver(cu.instantiate(&executable, graph, 0));
    return executable;
}

static double time_of(void *graph, unsigned repeats)
{
    float milliseconds;
    restore();
    driver(cu.record(s.events[0], s.stream));
    driver(cu.graph_launch(graph, s.stream));
    driver(cu.record(s.events[1], s.stream));
    driver(cu.stream_sync(s.stream));
    driver(cu.elapsed(&milliseconds, s.events[0], s.events[1]));
    return (double)milliseconds * 1e6 / repeats;
}

static void time_both(char **rest)
{
    const unsigned rounds = (unsigned)number(rest), repeats = (unsigned)number(rest);
    compare_all();
    void *const graphs[2] = {graph_of(0, repeats), graph_of(1, repeats)};
    for (unsigned i = 0; i < rounds + 3; i++) {
        double times[2];
        for (unsigned j = 0; j < 2; j++)
            times[(i + j) % 2] = time_of(graphs[(i + j) % 2], repeats);
        if (i >= 3) // the first rounds warm up
            printf("%.0f %.0f\n", times[0], times[1]);
    }
}

static void step(char *line)
{
    char *rest;
    const char *command = strtok_r(line, " \n", &rest);
    if (strcmp(command, "image") == 0) {
        const int side = word(&rest)[0] == '1';
        driver(cu.load(&s.images[side], word(&rest)));
    } else if (strcmp(command, "buffer") == 0) {
        add_buffer(&rest);
    } else if (strcmp(command, "launch") == 0) {
        add_launch(&rest);
    } else if (strcmp(command, "check") == 0) {
        need(s.check_count < CHECKS, "too many checks");
        s.checks[s.check_count].buffer = (size_t)number(&rest);
        s.checks[s.check_count++].bound = number(&rest);
    } else {
        need(strcmp(command, "time") == 0, "no such step");
        time_both(&rest);
    }
}

int main(void)
{
    char line[LINE];
    open_device();
    while (fgets(line, sizeof line, stdin)) {
        memcpy(s.line, line, sizeof line);
        step(line);
    }
    return 0;
}
