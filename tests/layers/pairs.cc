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
#include <future>
#include <string>
#include <vector>

namespace
{

constexpr size_t n = 4096, bytes = 4 * n;

const char *const source = "kernel void inc(global float *a) { a[get_global_id(0)] += 1; }\n"
                           "kernel void dbl(global const float *a, global float *b) {\n"
                           "    size_t i = get_global_id(0); b[i] = 2 * a[i]; }\n";

std::vector<float> host(n), back(n);
int first, second;

struct rig {
    cl::Context context{CL_DEVICE_TYPE_ALL};
    cl::CommandQueue one{context}, two{context};
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

// The wrapper maps, copies, unmaps and waits.
void copy_to_host(rig &r, bool mended)
{
    A(r.inc(cl::EnqueueArgs(r.one, cl::NDRange(n)), r.a));
    B(cl::copy(mended ? r.one : r.two, r.a, back.begin(), back.end()));
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

const struct {
    const char *name;
    void (*run)(rig &r, bool mended);
} cases[] = {
    {"write_functor", write_functor},
    {"copy_to_host", copy_to_host},
    {"future", future},
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
        for (const cl::CommandQueue &queue : {r.one, r.two})
            queue.finish();
        std::printf("%s %d %d\n", it.name, first, second);
    }
    return second ? 0 : 2;
}
