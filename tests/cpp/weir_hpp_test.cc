// <weir/weir.hpp>, through its own names; and what the C API's headers are in C++ (TEST(Launch, …)).
#include <weir/weir.hpp>

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/conformance/conformance.h"

namespace
{

struct Rig {
    weir::runtime runtime;
    weir::device device{runtime};
    weir::queue queue{device, "work", true};
};

// The call, at that line or the next one, throws an error with its place.
template <typename Call> void expect_thrown(int line, weir_status status, Call call)
{
    const auto names = [](const weir::error &error, int at) {
        const std::string place = "weir_hpp_test.cc:" + std::to_string(at) + ")";
        return std::string(error.what()).find(place) != std::string::npos;
    };
    try {
        call();
        FAIL() << "nothing was thrown";
    } catch (const weir::error &error) {
        EXPECT_EQ(error.status, status);
        EXPECT_TRUE(names(error, line) || names(error, line + 1)) << error.what();
    }
}

TEST(WeirHpp, UploadsAndDownloadsContainers)
{
    Rig rig;
    const std::vector<float> numbers = {1, 2, 3, 4, 5};
    std::array<float, 5> back = {};
    weir::array<float> values(rig.device, numbers.size());
    EXPECT_EQ(values.count(), 5u);
    EXPECT_EQ(values.size(), 20u);
    rig.queue.upload(values, numbers);
    rig.queue.download(back, values);
    EXPECT_EQ(std::vector<float>(back.begin(), back.end()), numbers);
}

TEST(WeirHpp, CopiesAndFills)
{
    Rig rig;
    weir::array<std::uint32_t> from(rig.device, 8), to(rig.device, 8);
    std::vector<std::uint32_t> back(8);
    rig.queue.fill(from, std::uint32_t{7});
    rig.queue.fill(to, std::uint32_t{1});
    rig.queue.copy(to, 8, from, 0, 8);
    rig.queue.download(back, to);
    EXPECT_EQ(back, (std::vector<std::uint32_t>{1, 1, 7, 7, 1, 1, 1, 1}));
    rig.queue.copy(to, 0, from, 0, from.size());
    rig.queue.download(back, to);
    EXPECT_EQ(back, std::vector<std::uint32_t>(8, 7));
}

TEST(WeirHpp, HostBuffersAreRanges)
{
    Rig rig;
    weir::array<int> host(rig.device, 4, WEIR_PLACE_HOST), device(rig.device, 4);
    int next = 1;
    for (int &value : host.host(WEIR_ACCESS_WRITE))
        value = next++;
    rig.queue.copy(device, 0, host, 0, host.size());
    rig.queue.fill(host, 0);
    rig.queue.copy(host, 0, device, 0, device.size());
    rig.queue.sync();
    const auto access = host.host(WEIR_ACCESS_READ);
    EXPECT_EQ(access.size(), 4u);
    EXPECT_EQ(access.data()[3], 4);
    EXPECT_EQ(std::vector<int>(access.begin(), access.end()), (std::vector<int>{1, 2, 3, 4}));
}

TEST(WeirHpp, EventsOrderQueuesAndMeasure)
{
    Rig rig;
    weir::queue other(rig.device, "other", true);
    weir::array<int> values(rig.device, 1024);
    std::vector<int> back(1024);
    const weir::event begin = rig.queue.record();
    rig.queue.fill(values, 3);
    const weir::event end = rig.queue.record();
    other.wait(end);
    other.download(back, values);
    EXPECT_EQ(back, std::vector<int>(1024, 3));
    EXPECT_TRUE(end.done());
    EXPECT_TRUE(end.sync_for(WEIR_FOREVER));
    end.sync();
    if (rig.device.limits().timing_history > 0) {
        EXPECT_LE(weir::elapsed_ns(begin, begin), weir::elapsed_ns(begin, end));
    }
}

weir_status fail(void *)
{
    return WEIR_ERROR_IO;
}

TEST(WeirHpp, ErrorsAreThrownWithTheirPlace)
{
    Rig rig;
    weir::array<int> values(rig.device, 4);
    expect_thrown(__LINE__, WEIR_ERROR_INVALID, [&] { rig.queue.copy(values, 0, values, 0, 64); });
    weir::check(weir_queue_host_call(rig.queue, fail, nullptr));
    EXPECT_THROW(rig.queue.sync(), weir::error);
    rig.queue.recover();
    rig.queue.sync();
}

weir_status hold(void *gate)
{
    while (!static_cast<std::atomic<bool> *>(gate)->load())
        ;
    return WEIR_OK;
}

TEST(WeirHpp, ShortForms)
{
    weir::device device, same("0");
    EXPECT_EQ(weir_device_runtime(device), weir_device_runtime(same));
    EXPECT_THROW(weir::device("4096"), weir::error);
    weir::queue work(device, "work", true), copy(device, "copy");
    weir::kernel iota(device, conformance_kernels, "iota");
    const bool runs = std::string(weir_runtime_backend(weir_device_runtime(device))) != "null";
    weir::pair<std::uint32_t> numbers(device, 64);
    EXPECT_EQ(numbers.memory.count(), 64u);
    EXPECT_EQ(weir_buffer_placement(numbers.host), WEIR_PLACE_HOST);

    const weir::event never;
    never.sync_if();
    copy.wait_if(never);
    EXPECT_THROW(copy.wait(never), weir::error);
    work.fill(numbers.memory, std::uint32_t{7});
    work.launch_global(iota, weir_dim(64, 1, 1), numbers.memory.out(), 5u, 64u);
    copy.after(work);
    copy.copy(numbers.host, 0, numbers.memory, 0, numbers.memory.size());
    const weir::event done = copy.record();
    work.wait_if(done);
    done.sync_if();
    const std::uint32_t last = numbers.host.host(WEIR_ACCESS_READ).data()[63];
    EXPECT_EQ(last, runs ? 68u : 7u);
    if (device.limits().timing_history > 0) {
        EXPECT_GE(work.timed([&] { work.fill(numbers.memory, std::uint32_t{1}); }), 0);
    }

    std::uint32_t *words = nullptr;
    ASSERT_EQ(weir_host_whole(numbers.host, WEIR_ACCESS_READ, &words), WEIR_OK);
    EXPECT_EQ(words[63], last);
    ASSERT_EQ(weir_host_whole_end(numbers.host, WEIR_ACCESS_READ), WEIR_OK);
    std::int64_t ns = -1;
    EXPECT_EQ(weir_queue_timed(work, weir_queue_flush(work), &ns) == WEIR_OK,
              device.limits().timing_history > 0);
    expect_thrown(__LINE__, WEIR_ERROR_IO,
                  [&] { weir::kernel::of_file(device, "/no/such/file.cl", "k"); });
}

TEST(WeirHpp, TimeLimits)
{
    Rig rig;
    std::atomic<bool> gate{false};
    weir::check(weir_queue_host_call(rig.queue, hold, &gate));
    const weir::event after = rig.queue.record();
    EXPECT_FALSE(rig.queue.sync_for(1000));
    EXPECT_FALSE(after.sync_for(1000));
    EXPECT_FALSE(after.done());
    gate = true;
    EXPECT_TRUE(rig.queue.sync_for(WEIR_FOREVER));
    EXPECT_TRUE(after.done());
}

TEST(WeirHpp, ObjectsMove)
{
    Rig rig;
    weir::array<int> first(rig.device, 4);
    weir_buffer *object = first;
    weir::array<int> second = std::move(first);
    EXPECT_EQ(first.get(), nullptr);
    EXPECT_EQ(second.get(), object);
    second = weir::array<int>(rig.device, 8);
    EXPECT_EQ(second.count(), 8u);
    std::vector<weir::queue> queues;
    for (int i = 0; i < 20; i++)
        queues.emplace_back(rig.device);
    for (weir::queue &queue : queues)
        queue.sync();
    weir::buffer taken(second.release());
    EXPECT_EQ(taken.size(), 32u);
}

TEST(WeirHpp, LaunchesAndGraphs)
{
    Rig rig;
    if (std::strcmp(rig.runtime.backend(), "null") == 0)
        GTEST_SKIP() << "the null backend runs no kernels";
    weir::program program(rig.device, conformance_kernels);
    weir::kernel iota(program, "iota");
    weir::array<std::uint32_t> values(rig.device, 256);
    std::vector<std::uint32_t> back(256);
    rig.queue.launch(iota, weir_dim(4, 1, 1), weir_dim(64, 1, 1), values.out(), 5u, 256u);
    rig.queue.download(back, values);
    EXPECT_EQ(back[255], 260u);
    const weir::graph graph = rig.queue.capture([&] {
        rig.queue.fill(values, std::uint32_t{0});
        rig.queue.launch(iota, weir_dim(2, 1, 1), weir_dim(64, 1, 1), values.out(), 1u, 128u);
    });
    EXPECT_EQ(weir_graph_node_count(graph), 2u);
    rig.queue.launch(graph);
    rig.queue.download(back, values);
    EXPECT_EQ(back[127], 128u);
    EXPECT_EQ(back[128], 0u);
    EXPECT_THROW(rig.queue.capture([] { throw std::runtime_error("no"); }), std::runtime_error);
    rig.queue.sync();
    expect_thrown(__LINE__, WEIR_ERROR_INVALID, [&] {
        rig.queue.launch(iota, weir_dim(1, 1, 1), weir_dim(64, 1, 1), values.out());
    });
}

TEST(WeirHpp, SourceAtRunTime)
{
    Rig rig;
    if (std::strcmp(rig.runtime.backend(), "null") == 0)
        GTEST_SKIP() << "the null backend compiles no source";
    weir::program program(rig.device,
                          "__kernel void twice(__global int *v, uint n) { size_t i = "
                          "get_global_id(0); if (i < n) v[i] *= FACTOR; }",
                          "-DFACTOR=2");
    weir::kernel twice(program, "twice");
    weir::array<int> values(rig.device, 64);
    std::vector<int> numbers(64, 21);
    rig.queue.upload(values, numbers);
    rig.queue.launch(twice, 64, values.inout(), 64u);
    rig.queue.download(numbers, values);
    EXPECT_EQ(numbers, std::vector<int>(64, 42));
    EXPECT_THROW(weir::program(rig.device, "__kernel void broken("), weir::error);
}

TEST(WeirHpp, WhatIsLeftIsAnErrorOfClose)
{
    weir::runtime runtime;
    {
        weir::device device(runtime);
        weir::queue queue(device, "left");
        EXPECT_THROW(device.close(), weir::error);
    }
    runtime.close();
    EXPECT_EQ(runtime.get(), nullptr);
    runtime = weir::runtime();
    EXPECT_THROW(weir::device(runtime, "no such device"), weir::error);
}

// Launches by the macros of the C API.

struct LaunchRig : Rig {
    const bool runs = std::strcmp(runtime.backend(), "null") != 0;
    weir::program program{device, conformance_kernels};
    weir::array<std::uint64_t> out{device, 12};
    const weir_argument written = out.out();
    const weir_extent one = weir_dim(1, 1, 1);

    template <typename T> std::vector<T> words(const weir::array<T> &from)
    {
        std::vector<T> back(from.count());
        queue.download(back, from);
        return back;
    }
};

// Not defined, as an argument need not be.
struct Sizes {
    static const std::uint32_t all = 1000;
};

TEST(Launch, BuffersAndScalars)
{
    LaunchRig rig;
    const weir::kernel scale(rig.program, "scale");
    const weir::array<float> in(rig.device, 1000), out(rig.device, 1000);
    std::vector<float> values(1000);
    for (std::size_t i = 0; i < values.size(); i++)
        values[i] = static_cast<float>(i);
    rig.queue.upload(in, values);
    rig.queue.fill(out, 0.0f);
    WEIR_CHECK(weir_queue_launch_count(rig.queue, scale, 1000, weir_whole_in(in),
                                       weir_whole_out(out), 2.5f, Sizes::all));
    EXPECT_EQ(WEIR_TRY(weir_queue_sync(rig.queue, WEIR_FOREVER)), WEIR_OK);
    EXPECT_EQ(rig.words(out)[999], rig.runs ? 2497.5f : 0.0f);
    // One block can wait for itself on any device.
    weir::check(weir_queue_launch_cooperative(rig.queue, scale, rig.one, weir_dim(64, 1, 1),
                                              in.in(), out.out(), -1.0f, Sizes::all));
    EXPECT_EQ(rig.words(out)[63], rig.runs ? -63.0f : 0.0f);

    // The kind of each scalar reaches the check of the kernel's signature.
    EXPECT_EQ(weir_queue_launch(rig.queue, scale, rig.one, rig.one, in.in(), out.out(), 2.5,
                                Sizes::all),
              WEIR_ERROR_INVALID);
    EXPECT_NE(std::strstr(weir_last_error()->message, "a double"), nullptr);
    EXPECT_STREQ(weir_last_error()->file, __FILE__);
}

struct Values {
    std::uint32_t a;
    float b;
    std::uint64_t c;
};

TEST(Launch, ValuesOfEverySize)
{
    LaunchRig rig;
    const weir::kernel store(rig.program, "store_values");
    const Values values = {7, 1.0f, 9};
    const bool flag = true;
    weir::check(weir_queue_launch(rig.queue, store, rig.one, rig.one, rig.written,
                                  std::uint8_t{200}, std::uint16_t{60000},
                                  std::uint32_t{4000000000}, std::uint64_t{18000000000000000000u},
                                  std::int8_t{-100}, std::int16_t{-30000},
                                  std::int32_t{-2000000000}, std::int64_t{-9000000000000000000},
                                  0.0f, weir_value(&values, sizeof values)));
    const std::vector<std::uint64_t> sizes = rig.words(rig.out);
    weir::check(weir_queue_launch(rig.queue, store, rig.one, rig.one, rig.written, flag, !flag,
                                  flag, !flag, 'x', flag, !flag, flag, 0.0f,
                                  weir_value(&values, sizeof values)));
    const std::vector<std::uint64_t> bools = rig.words(rig.out);
    if (!rig.runs)
        return;
    const std::uint64_t wanted[] = {200,
                                    60000,
                                    4000000000,
                                    18000000000000000000u,
                                    static_cast<std::uint64_t>(-100),
                                    static_cast<std::uint64_t>(-30000),
                                    static_cast<std::uint64_t>(-2000000000),
                                    static_cast<std::uint64_t>(-9000000000000000000)};
    const std::uint64_t wanted_bools[] = {1, 0, 1, 0, 'x', 1, 0, 1};
    for (int i = 0; i < 8; i++) {
        EXPECT_EQ(sizes[i], wanted[i]);
        EXPECT_EQ(bools[i], wanted_bools[i]);
    }
    EXPECT_EQ(sizes[9], 7u);
    EXPECT_EQ(sizes[11], 9u);
}

TEST(Launch, VectorsAndNull)
{
    LaunchRig rig;
    const weir::kernel vectors(rig.program, "store_vectors"), present(rig.program, "store_present");
    const weir::array<std::uint32_t> out(rig.device, 24);
    weir::check(weir_queue_launch(rig.queue, vectors, rig.one, rig.one, out.out(),
                                  weir_vector(float, 1, 2, 3, 4), weir_vector(int, -1, 5),
                                  weir_vector(float, 1, 2, 3),
                                  weir_vector(std::uint8_t, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
                                              12, 13, 14, 15),
                                  weir_vector(std::uint64_t, 6, 7)));
    const std::vector<std::uint32_t> bits = rig.words(out);
    EXPECT_EQ(weir_queue_launch(rig.queue, vectors, rig.one, rig.one, out.out(),
                                weir_vector(float, 1, 2, 3), 0, 0, 0, 0),
              WEIR_ERROR_INVALID);
    EXPECT_NE(std::strstr(weir_last_error()->message, "a vector of 3 of float"), nullptr);
    weir::check(
        weir_queue_launch(rig.queue, present, rig.one, rig.one, out.out(), nullptr, weir_null()));
    const std::vector<std::uint32_t> nulls = rig.words(out);
    if (!rig.runs)
        return;
    EXPECT_EQ(bits[3], 0x40800000u);
    EXPECT_EQ(bits[4], 0xffffffffu);
    EXPECT_EQ(bits[8], 0x40400000u);
    EXPECT_EQ(bits[12], 0x0f0e0d0cu);
    EXPECT_EQ(bits[15], 7u);
    EXPECT_EQ(nulls[0], 1000u);
    EXPECT_EQ(nulls[1], 2000u);
}

TEST(Launch, NativeWork)
{
    Rig rig;
    const weir::buffer buffer(rig.device, 64);
    int calls = 0;
    const bool is_native = rig.device.limits().native;
    const auto count = [](const weir_native_queue *native, void *user) {
        *static_cast<int *>(user) += native->queue != nullptr;
        return WEIR_OK;
    };
    EXPECT_EQ(weir_queue_native(rig.queue, count, &calls, weir_in(buffer, 0, 32),
                                weir_out(buffer, 32, 32)),
              is_native ? WEIR_OK : WEIR_ERROR_UNSUPPORTED);
    EXPECT_EQ(calls, is_native);
    rig.queue.sync();
}

} // namespace

int main(int argc, char **argv)
{
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
