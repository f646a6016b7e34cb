// <weir/weir.hpp>, through its own names; the C API has its own tests.
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
    const int line = __LINE__ + 2;
    try {
        rig.queue.copy(values, 0, values, 0, 64);
        FAIL() << "nothing was thrown";
    } catch (const weir::error &error) {
        EXPECT_EQ(error.status, WEIR_ERROR_INVALID);
        EXPECT_NE(std::string(error.what()).find("weir_hpp_test.cc:" + std::to_string(line)),
                  std::string::npos)
            << error.what();
    }
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
    const int line = __LINE__ + 2;
    try {
        weir::kernel::of_file(device, "/no/such/file.cl", "k");
        FAIL() << "nothing was thrown";
    } catch (const weir::error &error) {
        EXPECT_EQ(error.status, WEIR_ERROR_IO);
        EXPECT_NE(std::string(error.what()).find("weir_hpp_test.cc:" + std::to_string(line)),
                  std::string::npos)
            << error.what();
    }
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
}

TEST(WeirHpp, LaunchesNameTheirLine)
{
    Rig rig;
    if (std::strcmp(rig.runtime.backend(), "null") == 0)
        GTEST_SKIP() << "the null backend runs no kernels";
    weir::program program(rig.device, conformance_kernels);
    weir::kernel iota(program, "iota");
    weir::array<std::uint32_t> values(rig.device, 256);
    const int line = __LINE__ + 2;
    try {
        rig.queue.launch(iota, weir_dim(1, 1, 1), weir_dim(64, 1, 1), values.out());
        FAIL() << "nothing was thrown";
    } catch (const weir::error &error) {
        EXPECT_NE(std::string(error.what()).find("weir_hpp_test.cc:" + std::to_string(line)),
                  std::string::npos)
            << error.what();
    }
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

} // namespace

int main(int argc, char **argv)
{
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
