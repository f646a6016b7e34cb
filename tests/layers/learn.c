// Plain OpenCL programs in pairs, as pairs.c has them, whose kernels use parts of buffers that only a run shows: two launches
// use parts that are apart, or the parts of the broken one overlap.
//
// usage: learn broken|mended CASE..., or learn --list. Prints each case's name and two lines.
#include "tests/layers/pair.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum {
    HALF = N / 2,
};

static int wrong; // results that are not as without the layer

static const char source[] =
    "kernel void add(global float *a, int from) { a[get_global_id(0) + from] += 1; }\n"
    "kernel void add_wide(global float4 *a, long4 from) { a[get_global_id(0) + from.w] += 1; }\n"
    "kernel void scale(global float *from, global float *to, int at) {\n"
    "    to[get_global_id(0) + at] = 2 * from[get_global_id(0) + at]; }\n"
    "kernel void add_columns(global float *a, int from) {\n"
    "    a[get_global_id(1) * 64 + get_global_id(0) + from] += 1; }\n"
    "kernel void scatter(global float *a, global int *at) { a[at[get_global_id(0)]] += 1; }\n"
    "kernel void gather(global float *from, global float *to, global int *at) {\n"
    "    int i = at[get_global_id(0)]; to[i] = 2 * from[i]; }\n"
    "kernel void reverse(global float *from, global float *to, local float *room) {\n"
    "    int i = get_local_id(0), n = get_local_size(0), base = get_group_id(0) * n;\n"
    "    room[i] = from[base + i]; barrier(CLK_LOCAL_MEM_FENCE); to[base + i] = room[n - 1 - i]; "
    "}\n"
    "kernel void follow(global ulong *a, global float *to) { to[0] = *(global float *)a[0]; }\n";

#define RUN(queue, kernel, items) \
    clEnqueueNDRangeKernel(queue, kernel, 1, NULL, (const size_t[]){items}, NULL, 0, NULL, NULL)

static cl_kernel with(cl_kernel made, cl_uint index, size_t size, const void *value)
{
    DO(clSetKernelArg(made, index, size, value));
    return made;
}

static cl_kernel with_int(cl_kernel made, cl_uint index, cl_int value)
{
    return with(made, index, sizeof value, &value);
}

static void expect(cl_mem memory, float (*value)(int i))
{
    static float found[N];
    DO(clFinish(one));
    DO(clFinish(two));
    DO(clEnqueueReadBuffer(one, memory, CL_TRUE, 0, BYTES, found, 0, NULL, NULL));
    for (int i = 0; i < N; i++)
        wrong += found[i] != value(i);
}

static float one_more(int i)
{
    return host[i] + 1;
}

static float doubled(int i)
{
    return 2 * host[i];
}

// Halves, by an argument: what a launch uses is not known without a run.
static void halves(bool mended)
{
    A(RUN(one, with_int(kernel("add", &a, 1), 1, 0), HALF));
    B(RUN(two, with_int(kernel("add", &a, 1), 1, mended ? HALF : HALF - 1), HALF));
    if (mended)
        expect(a, one_more);
}

static void wide_argument(bool mended)
{
    const cl_long low[4] = {9, 9, 9, 0}, high[4] = {9, 9, 9, mended ? HALF / 4 : HALF / 4 - 1};
    A(RUN(one, with(kernel("add_wide", &a, 1), 1, sizeof low, low), HALF / 4));
    B(RUN(two, with(kernel("add_wide", &a, 1), 1, sizeof high, high), HALF / 4));
    if (mended)
        expect(a, one_more);
}

static void global_offset(bool mended)
{
    const size_t count = HALF, low = 0, high = mended ? HALF : HALF - 1;
    const cl_kernel add = with_int(kernel("add", &a, 1), 1, 0);
    A(clEnqueueNDRangeKernel(one, add, 1, &low, &count, NULL, 0, NULL, NULL));
    B(clEnqueueNDRangeKernel(two, add, 1, &high, &count, NULL, 0, NULL, NULL));
    if (mended)
        expect(a, one_more);
}

// One half is read while the other is filled.
static void read_half(bool mended)
{
    const cl_kernel scale = with_int(kernel("scale", (cl_mem[]){a, b}, 2), 2, 0);
    A(RUN(one, scale, mended ? HALF : HALF + 1));
    B(clEnqueueWriteBuffer(two, a, CL_FALSE, BYTES / 2, BYTES / 2, host, 0, NULL, NULL));
}

static void write_half(bool mended)
{
    const cl_mem other = filled(host, BYTES);
    A(RUN(one, with_int(kernel("scale", (cl_mem[]){a, b}, 2), 2, 0), HALF));
    B(RUN(two, with_int(kernel("scale", (cl_mem[]){other, b}, 2), 2, mended ? HALF : HALF - 1),
          HALF));
    if (mended)
        expect(b, doubled);
}

static void columns(bool mended)
{
    const size_t items[2] = {SIDE / 2, SIDE};
    const cl_kernel left = with_int(kernel("add_columns", &a, 1), 1, 0);
    const cl_kernel right =
        with_int(kernel("add_columns", &a, 1), 1, mended ? SIDE / 2 : SIDE / 2 - 1);
    A(clEnqueueNDRangeKernel(one, left, 2, NULL, items, NULL, 0, NULL, NULL));
    B(clEnqueueNDRangeKernel(two, right, 2, NULL, items, NULL, 0, NULL, NULL));
    if (mended)
        expect(a, one_more);
}

// A kernel that gets wrong indices writes anywhere.
static void indices(bool mended)
{
    static cl_int low[HALF], high[HALF];
    for (int i = 0; i < HALF; i++) {
        low[i] = i;
        high[i] = i + (mended ? HALF : HALF - 1);
    }
    const cl_mem lower = filled(low, sizeof low), upper = filled(high, sizeof high);
    A(RUN(one, kernel("scatter", (cl_mem[]){a, lower}, 2), HALF));
    B(RUN(two, kernel("scatter", (cl_mem[]){a, upper}, 2), HALF));
    if (mended)
        expect(a, one_more);
}

// More runs, at no equal distances, than are told one by one: all from the first to the last.
static void squares(bool mended)
{
    cl_int at[SIDE - 1];
    for (int i = 0; i < SIDE - 1; i++)
        at[i] = i * i;
    const size_t past = (size_t)at[SIDE - 2] + 1, from = mended ? past : past - 1;
    const cl_mem places = filled(at, sizeof at);
    const cl_kernel gather = with(kernel("gather", (cl_mem[]){a, b}, 2), 2, sizeof places, &places);
    A(RUN(one, gather, SIDE - 1));
    B(clEnqueueWriteBuffer(two, a, CL_FALSE, from * sizeof *host, sizeof *host, host, 0, NULL,
                           NULL));
}

static void nothing(int number)
{
}

// Signals come while the launches are run on copies.
static void signals(bool mended)
{
    const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, nothing);
    setitimer(ITIMER_REAL, &often, NULL);
    A(RUN(one, with_int(kernel("add", &a, 1), 1, 0), HALF));
    B(RUN(two, with_int(kernel("add", &a, 1), 1, mended ? HALF : HALF - 1), HALF));
    setitimer(ITIMER_REAL, &never, NULL);
    if (mended)
        expect(a, one_more);
}

static void local_memory(bool mended)
{
    const size_t count = HALF, group = 64;
    const cl_buffer_region region = {mended ? BYTES / 2 : BYTES / 4, BYTES / 2};
    const cl_mem half = clCreateSubBuffer(b, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
    const cl_kernel low =
        with(kernel("reverse", (cl_mem[]){a, b}, 2), 2, group * sizeof(float), NULL);
    const cl_kernel high =
        with(kernel("reverse", (cl_mem[]){a, half}, 2), 2, group * sizeof(float), NULL);
    A(clEnqueueNDRangeKernel(one, low, 1, NULL, &count, &group, 0, NULL, NULL));
    B(clEnqueueNDRangeKernel(two, high, 1, NULL, &count, &group, 0, NULL, NULL));
}

// The same launches again and again, which are run on copies once; the last ones differ.
static void again(bool mended)
{
    const cl_kernel low = with_int(kernel("add", &a, 1), 1, 0);
    const cl_kernel high = with_int(kernel("add", &a, 1), 1, HALF);
    for (int i = 0; i < 500; i++) {
        A(RUN(one, low, HALF));
        if (i < 499 || mended)
            DO(RUN(two, high, HALF));
    }
    B(RUN(two, with_int(high, 1, mended ? HALF : HALF - 1), HALF));
}

// A program's binary, which the next program starts from. Both kernels only read `a`, which the source alone tells; the broken
// one's first kernel writes it. Without a run what is kept of the source says so.
static void binary(bool mended)
{
    size_t size = 0;
    DO(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL));
    unsigned char *bytes = malloc(size);
    unsigned char *all[] = {bytes, (unsigned char *)1, (unsigned char *)1}; // one is written
    DO(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof all, all, NULL));
    const cl_program before = program;
    program = clCreateProgramWithBinary(context, 1, &device, &size, (const unsigned char **)&bytes,
                                        NULL, NULL);
    DO(clBuildProgram(program, 1, &device, "", NULL, NULL));
    const cl_mem other = filled(host, BYTES);
    const cl_kernel reader = with_int(kernel("scale", (cl_mem[]){a, b}, 2), 2, 0);
    const cl_kernel writer = with_int(kernel("add", &a, 1), 1, 0);
    A(RUN(one, mended ? reader : writer, N));
    B(RUN(two, with_int(kernel("scale", (cl_mem[]){a, other}, 2), 2, 0), N));
    free(bytes);
    program = before;
}

// An address of this process; only on a processor. No pair of its own.
static void pointer(void)
{
    const cl_ulong address = (cl_ulong)(size_t)&host[7];
    const cl_kernel follow =
        with(kernel("follow", (cl_mem[]){filled(&address, sizeof address)}, 1), 1, sizeof b, &b);
    for (int i = 0; i < 3; i++)
        DO(RUN(one, follow, 1));
    float found = 0;
    DO(clEnqueueReadBuffer(one, b, CL_TRUE, 0, sizeof found, &found, 0, NULL, NULL));
    wrong += found != 7;
    second = 1;
}

static const struct {
    const char *name;
    void (*run)(bool mended);
} cases[] = {
    {"halves", halves},
    {"wide_argument", wide_argument},
    {"global_offset", global_offset},
    {"read_half", read_half},
    {"write_half", write_half},
    {"columns", columns},
    {"indices", indices},
    {"squares", squares},
    {"signals", signals},
    {"local_memory", local_memory},
    {"again", again},
    {"binary", binary},
};

int main(int argc, char **argv)
{
    const size_t count = sizeof cases / sizeof *cases;
    const char *const way = argc > 1 ? argv[1] : "--list";
    for (size_t i = 0; strcmp(way, "--list") == 0 && i < count; i++)
        puts(cases[i].name);
    if (strcmp(way, "--list") == 0)
        return 0;
    for (int i = 0; i < N; i++)
        host[i] = (float)i;
    open_device((const char *[]){"", source}, NULL);
    for (int i = 2; i < argc; i++) {
        a = filled(host, BYTES);
        b = filled(host, BYTES);
        first = second = 0;
        for (size_t k = 0; k < count; k++)
            if (strcmp(cases[k].name, argv[i]) == 0)
                cases[k].run(strcmp(way, "mended") == 0);
        if (strcmp(argv[i], "pointer") == 0)
            pointer();
        if (strcmp(argv[i], "closed_input") == 0) {
            close(STDIN_FILENO);
            halves(true);
        }
        DO(clFinish(one));
        DO(clFinish(two));
        printf("%s %d %d\n", argv[i], first, second);
    }
    if (wrong)
        fprintf(stderr, "%d results are wrong\n", wrong);
    return second && !wrong ? 0 : 2;
}
