// Pairs as those of pairs.c, with Khronos' C++ wrapper: a place is the line that calls the wrapper.
//
// usage: as that of pairs.c.
#define CL_HPP_CL_1_2_DEFAULT_BUILD // PoCL 4 and later have no OpenCL C 2.0
#define CL_HPP_ENABLE_EXCEPTIONS
#define CL_HPP_MINIMUM_OPENCL_VERSION 200
#define CL_HPP_TARGET_OPENCL_VERSION 300
#include <CL/opencl.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace
{

constexpr size_t n = 4096, bytes = 4 * n, half = bytes / 2, side = 64;

const char *const source = "kernel void inc(global float *a) { a[get_global_id(0)] += 1; }\n"
                           "kernel void dbl(global const float *a, global float *b) {\n"
                           "    size_t i = get_global_id(0); b[i] = 2 * a[i]; }\n";

std::vector<float> host(n), back(n);
int first, second;

struct rig {
    cl::Context context{CL_DEVICE_TYPE_ALL};
    cl::CommandQueue one{context}, two{context};
    cl::CommandQueue unordered{context, cl::QueueProperties::OutOfOrder};
    cl::Buffer a{context, host.begin(), host.end(), false};
    cl::Buffer b{context, host.begin(), host.end(), false};
    cl::Program program{context, source, true};
    cl::KernelFunctor<cl::Buffer> inc{program, "inc"};
    cl::KernelFunctor<cl::Buffer, cl::Buffer> dbl{program, "dbl"};
    cl::Event done;
};

#define A(...) (first = __LINE__, __VA_ARGS__)
#define B(...) (second = __LINE__, __VA_ARGS__)

using events = std::vector<cl::Event>;

events when(bool mended, const cl::Event &event)
{
    return mended ? events{event} : events{};
}

void write_functor(rig &r, bool mended)
{
    A(r.one.enqueueWriteBuffer(r.a, CL_FALSE, 0, bytes, host.data(), nullptr, &r.done));
    const events waits = when(mended, r.done);
    B(r.dbl(cl::EnqueueArgs(r.two, waits, cl::NDRange(n)), r.a, r.b));
}

void functor_read(rig &r, bool mended)
{
    A(r.done = r.inc(cl::EnqueueArgs(r.one, cl::NDRange(n)), r.a));
    const events waits = when(mended, r.done);
    B(r.two.enqueueReadBuffer(r.a, CL_FALSE, 0, bytes, back.data(), &waits));
}

void kernel_object(rig &r, bool mended)
{
    cl::Kernel inc(r.program, "inc");
    inc.setArg(0, r.a);
    A(r.one.enqueueNDRangeKernel(inc, cl::NullRange, cl::NDRange(n), cl::NullRange, nullptr,
                                 &r.done));
    const events waits = when(mended, r.done);
    B(r.two.enqueueCopyBuffer(r.a, r.b, 0, 0, bytes, &waits));
}

// The wrapper maps, copies, unmaps and waits.
void copy_to_host(rig &r, bool mended)
{
    A(r.inc(cl::EnqueueArgs(r.one, cl::NDRange(n)), r.a));
    B(cl::copy(mended ? r.one : r.two, r.a, back.begin(), back.end()));
}

void fill_part(rig &r, bool mended)
{
    A(r.one.enqueueFillBuffer(r.a, 0.0f, 0, half));
    B(r.two.enqueueFillBuffer(r.a, 1.0f, mended ? half : half - 4, half));
}

void sub_buffers(rig &r, bool mended)
{
    cl_buffer_region low = {0, half}, high = {mended ? half : half / 2, half};
    cl::Buffer lower = r.a.createSubBuffer(CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &low);
    cl::Buffer upper = r.a.createSubBuffer(CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &high);
    A(r.inc(cl::EnqueueArgs(r.one, cl::NDRange(n / 2)), lower));
    B(r.inc(cl::EnqueueArgs(r.two, cl::NDRange(n / 2)), upper));
}

void event_wait(rig &r, bool mended)
{
    A(r.done = r.inc(cl::EnqueueArgs(r.one, cl::NDRange(n)), r.a));
    if (mended)
        r.done.wait();
    B(r.dbl(cl::EnqueueArgs(r.two, cl::NDRange(n)), r.a, r.b));
}

void event_status(rig &r, bool mended)
{
    A(r.done = r.inc(cl::EnqueueArgs(r.one, cl::NDRange(n)), r.a));
    r.one.flush();
    while (mended && r.done.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>() != CL_COMPLETE)
        std::this_thread::yield();
    B(r.dbl(cl::EnqueueArgs(r.two, cl::NDRange(n)), r.a, r.b));
}

void barrier(rig &r, bool mended)
{
    A(r.inc(cl::EnqueueArgs(r.unordered, cl::NDRange(n)), r.a));
    if (mended)
        r.unordered.enqueueBarrierWithWaitList();
    B(r.dbl(cl::EnqueueArgs(r.unordered, cl::NDRange(n)), r.a, r.b));
}

void marker(rig &r, bool mended)
{
    cl::Event mark;
    if (!mended)
        r.one.enqueueMarkerWithWaitList(nullptr, &mark);
    A(r.inc(cl::EnqueueArgs(r.one, cl::NDRange(n)), r.a));
    if (mended)
        r.one.enqueueMarkerWithWaitList(nullptr, &mark);
    const events waits = {mark};
    B(r.two.enqueueReadBuffer(r.a, CL_FALSE, 0, bytes, back.data(), &waits));
}

void map_unmap(rig &r, bool mended)
{
    void *at = r.one.enqueueMapBuffer(r.a, CL_TRUE, CL_MAP_WRITE, 0, bytes);
    std::memset(at, 0, 4);
    A(r.one.enqueueUnmapMemObject(r.a, at, nullptr, &r.done));
    const events waits = when(mended, r.done);
    B(r.two.enqueueReadBuffer(r.a, CL_FALSE, 0, bytes, back.data(), &waits));
}

void image(rig &r, bool mended)
{
    const cl::array<cl::size_type, 3> left = {0, 0, 0}, right = {mended ? side / 2 : 1, 0, 0};
    const cl::array<cl::size_type, 3> region = {side / 2, side, 1};
    cl::Image2D picture(r.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                        cl::ImageFormat(CL_R, CL_FLOAT), side, side, 0, host.data());
    A(r.one.enqueueWriteImage(picture, CL_FALSE, left, region, 0, 0, host.data()));
    B(r.two.enqueueReadImage(picture, CL_FALSE, right, region, 0, 0, back.data()));
}

void future(rig &r, bool mended)
{
    auto written = std::async(std::launch::async, [&r] {
        A(r.one.enqueueWriteBuffer(r.a, CL_FALSE, 0, bytes, host.data(), nullptr, &r.done));
    });
    written.get();
    const events waits = when(mended, r.done);
    B(r.two.enqueueReadBuffer(r.a, CL_FALSE, 0, bytes, back.data(), &waits));
}

// The last references go before the commands run.
void scope(rig &r, bool mended)
{
    cl::Buffer inner(r.context, CL_MEM_READ_WRITE, bytes);
    A(r.one.enqueueWriteBuffer(inner, CL_FALSE, 0, bytes, host.data(), nullptr, &r.done));
    {
        const cl::Buffer same = inner;
        const events waits = when(mended, r.done);
        B(r.two.enqueueReadBuffer(same, CL_FALSE, 0, bytes, back.data(), &waits));
    }
}

const struct {
    const char *name;
    void (*run)(rig &r, bool mended);
} cases[] = {
#define CASE(name)  \
    {               \
#name, name \
    }
    CASE(write_functor), CASE(functor_read), CASE(kernel_object), CASE(copy_to_host),
    CASE(fill_part),     CASE(sub_buffers),  CASE(event_wait),    CASE(event_status),
    CASE(barrier),       CASE(marker),       CASE(map_unmap),     CASE(image),
    CASE(future),        CASE(scope),
#undef CASE
};

} // namespace

int main(int argc, char **argv)
{
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.empty() || arguments[0] == "--list") {
        for (const auto &it : cases)
            std::puts(it.name);
        return 0;
    }
    rig r;
    for (const auto &it : cases) {
        if (argc > 2 &&
            std::find(arguments.begin() + 1, arguments.end(), it.name) == arguments.end())
            continue;
        it.run(r, arguments[0] == "mended");
        for (const cl::CommandQueue &queue : {r.one, r.two, r.unordered})
            queue.finish();
        std::printf("%s %d %d\n", it.name, first, second);
    }
    return second ? 0 : 2;
}
