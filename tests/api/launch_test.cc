// A C++17 program that uses the API as a C++ programmer would: every public
// header, launches with buffers and scalars of every kind through the C++ form of
// weir_queue_launch, and the other calls of a small pipeline.

#include <weir/buffer.h>
#include <weir/common.h>
#include <weir/config.h>
#include <weir/device.h>
#include <weir/event.h>
#include <weir/launch.h>
#include <weir/log.h>
#include <weir/program.h>
#include <weir/queue.h>
#include <weir/runtime.h>
#include <weir/status.h>
#include <weir/weir.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/conformance/conformance.h"
#include "tests/support/test_shim.h"

namespace
{

constexpr std::uint32_t count = 1000;
constexpr std::size_t bytes = count * sizeof(float);
constexpr std::uint64_t guard_ns = 60000000000u;

// Handles in C++: deleters that call the destroy functions.
template <typename T, void (*Destroy)(T **, const char *, int)> struct Deleter {
    void operator()(T *object) const
    {
        Destroy(&object, nullptr, 0);
    }
};

using Queue = std::unique_ptr<weir_queue, Deleter<weir_queue, weir_queue_destroy_at>>;
using Buffer = std::unique_ptr<weir_buffer, Deleter<weir_buffer, weir_buffer_destroy_at>>;
using Program = std::unique_ptr<weir_program, Deleter<weir_program, weir_program_destroy_at>>;
using Kernel = std::unique_ptr<weir_kernel, Deleter<weir_kernel, weir_kernel_destroy_at>>;

struct Session {
    weir_runtime *runtime = nullptr;
    weir_device *device = nullptr;

    Session()
    {
        EXPECT_EQ(weir_open(nullptr, &runtime), WEIR_OK) << weir_last_error_text();
        EXPECT_EQ(weir_device_open(runtime, nullptr, &device), WEIR_OK) << weir_last_error_text();
    }
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;
    ~Session()
    {
        EXPECT_EQ(weir_device_close(&device), WEIR_OK) << weir_last_error_text();
        EXPECT_EQ(weir_close(&runtime), WEIR_OK) << weir_last_error_text();
    }

    Queue queue() const
    {
        weir_queue *made = nullptr;
        weir_queue_params params = {};
        params.struct_size = sizeof params;
        params.label = "from C++";
        EXPECT_EQ(weir_queue_create(device, &params, &made), WEIR_OK) << weir_last_error_text();
        return Queue(made);
    }

    Buffer buffer(std::size_t size) const
    {
        weir_buffer *made = nullptr;
        weir_buffer_params params = {};
        params.struct_size = sizeof params;
        params.size = size;
        EXPECT_EQ(weir_buffer_create(device, &params, &made), WEIR_OK) << weir_last_error_text();
        return Buffer(made);
    }

    Program program() const
    {
        weir_program *made = nullptr;
        weir_program_params params = {};
        params.struct_size = sizeof params;
        params.bundle = &conformance_kernels;
        EXPECT_EQ(weir_program_create(device, &params, &made), WEIR_OK) << weir_last_error_text();
        return Program(made);
    }
};

Kernel kernel_of(const Program &program, const char *name)
{
    weir_kernel *made = nullptr;
    EXPECT_EQ(weir_kernel_create(program.get(), name, &made), WEIR_OK) << weir_last_error_text();
    return Kernel(made);
}

// Whether launches do anything on this device.
bool kernels_run(const Session &session, const Program &program)
{
    const Queue queue = session.queue();
    const Buffer buffer = session.buffer(64);
    const Kernel kernel = kernel_of(program, "iota");
    std::uint32_t first = 0;
    EXPECT_EQ(weir_upload(queue.get(), buffer.get(), 0, &first, sizeof first), WEIR_OK);
    EXPECT_EQ(weir_queue_launch(queue.get(), kernel.get(), weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_out(buffer.get(), 0, 64), 4711u, 1u),
              WEIR_OK)
        << weir_last_error_text();
    EXPECT_EQ(weir_download(queue.get(), &first, buffer.get(), 0, sizeof first), WEIR_OK);
    return first == 4711;
}

// Not defined, as an argument need not be.
struct Sizes {
    static const std::uint32_t all = count;
};

void launches_buffers_and_scalars()
{
    const Session session;
    const Program program = session.program();
    const bool runs = kernels_run(session, program);
    const Kernel scale = kernel_of(program, "scale");
    const Queue queue = session.queue();
    const Buffer in = session.buffer(bytes);
    const Buffer out = session.buffer(bytes);
    std::vector<float> values(count);
    for (std::uint32_t i = 0; i < count; i++)
        values[i] = static_cast<float>(i);

    ASSERT_EQ(weir_upload(queue.get(), in.get(), 0, values.data(), bytes), WEIR_OK);
    ASSERT_EQ(weir_queue_launch(queue.get(), scale.get(), weir_dim((count + 63) / 64, 1, 1),
                                weir_dim(64, 1, 1), weir_in(in.get(), 0, bytes),
                                weir_out(out.get(), 0, bytes), 2.5f, count),
              WEIR_OK)
        << weir_last_error_text();
    ASSERT_EQ(weir_download(queue.get(), values.data(), out.get(), 0, bytes), WEIR_OK);
    for (std::uint32_t i = 0; runs && i < count; i++)
        ASSERT_EQ(values[i], 2.5f * static_cast<float>(i));

    EXPECT_EQ(weir_queue_launch_count(queue.get(), scale.get(), count, weir_whole_in(in.get()),
                                      weir_whole_out(out.get()), 3.0f, Sizes::all),
              WEIR_OK)
        << weir_last_error_text();
    WEIR_CHECK(weir_download(queue.get(), values.data(), in.get(), 0, bytes));
    EXPECT_EQ(WEIR_TRY(weir_queue_sync(queue.get(), WEIR_FOREVER)), WEIR_OK);

    // One block can wait for itself on any device.
    EXPECT_EQ(weir_queue_launch_cooperative(queue.get(), scale.get(), weir_dim(1, 1, 1),
                                            weir_dim(64, 1, 1), weir_in(in.get(), 0, bytes),
                                            weir_out(out.get(), 0, bytes), -1.0f, count),
              WEIR_OK)
        << weir_last_error_text();
    ASSERT_EQ(weir_download(queue.get(), values.data(), out.get(), 0, bytes), WEIR_OK);
    for (std::uint32_t i = 0; runs && i < 64; i++)
        ASSERT_EQ(values[i], -static_cast<float>(i));

    // The kind of each scalar reaches the check of the kernel's signature.
    EXPECT_EQ(weir_queue_launch(queue.get(), scale.get(), weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_in(in.get(), 0, bytes), weir_out(out.get(), 0, bytes), 2.5,
                                count),
              WEIR_ERROR_INVALID);
    const int line = __LINE__ - 1;
    EXPECT_NE(std::strstr(weir_last_error()->message, "a double"), nullptr);
    EXPECT_STREQ(weir_last_error()->file, __FILE__);
    EXPECT_LE(weir_last_error()->line, line);
    EXPECT_GE(weir_last_error()->line, line - 4);
    EXPECT_EQ(weir_queue_sync(queue.get(), guard_ns), WEIR_OK);
}

struct Values {
    std::uint32_t a;
    float b;
    std::uint64_t c;
};

void launches_values_of_every_size()
{
    const Session session;
    const Program program = session.program();
    const bool runs = kernels_run(session, program);
    const Kernel store = kernel_of(program, "store_values");
    const Queue queue = session.queue();
    const Buffer out = session.buffer(12 * sizeof(std::uint64_t));
    const Values values = {7, 1.0f, 9};
    std::uint64_t words[12] = {};

    ASSERT_EQ(weir_queue_launch(queue.get(), store.get(), weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_out(out.get(), 0, sizeof words), std::uint8_t{200},
                                std::uint16_t{60000}, std::uint32_t{4000000000},
                                std::uint64_t{18000000000000000000u}, std::int8_t{-100},
                                std::int16_t{-30000}, std::int32_t{-2000000000},
                                std::int64_t{-9000000000000000000}, 0.0f,
                                weir_value(&values, sizeof values)),
              WEIR_OK)
        << weir_last_error_text();
    ASSERT_EQ(weir_download(queue.get(), words, out.get(), 0, sizeof words), WEIR_OK);
    if (!runs)
        return;
    EXPECT_EQ(words[0], 200u);
    EXPECT_EQ(words[1], 60000u);
    EXPECT_EQ(words[2], 4000000000u);
    EXPECT_EQ(words[3], 18000000000000000000u);
    EXPECT_EQ(static_cast<std::int64_t>(words[4]), -100);
    EXPECT_EQ(static_cast<std::int64_t>(words[5]), -30000);
    EXPECT_EQ(static_cast<std::int64_t>(words[6]), -2000000000);
    EXPECT_EQ(static_cast<std::int64_t>(words[7]), -9000000000000000000);
    EXPECT_EQ(words[8], 0u);
    EXPECT_EQ(words[9], 7u);
    EXPECT_EQ(words[11], 9u);
}

// Bools, chars, vectors and NULL.
void launches_other_arguments()
{
    const Session session;
    const Program program = session.program();
    const bool runs = kernels_run(session, program);
    const Kernel store = kernel_of(program, "store_values");
    const Kernel vectors = kernel_of(program, "store_vectors");
    const Kernel present = kernel_of(program, "store_present");
    const Queue queue = session.queue();
    const Buffer out = session.buffer(12 * sizeof(std::uint64_t));
    const weir_argument written = weir_out(out.get(), 0, 12 * sizeof(std::uint64_t));
    const Values values = {7, 1.0f, 9};
    std::uint64_t words[12] = {};
    std::uint32_t bits[17] = {};
    const bool flag = true;

    ASSERT_EQ(weir_queue_launch(queue.get(), store.get(), weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                written, flag, !flag, flag, !flag, 'x', flag, !flag, flag, 0.0f,
                                weir_value(&values, sizeof values)),
              WEIR_OK)
        << weir_last_error_text();
    ASSERT_EQ(weir_download(queue.get(), words, out.get(), 0, sizeof words), WEIR_OK);
    const std::uint64_t expected[] = {1, 0, 1, 0, 'x', 1, 0, 1};
    for (int i = 0; runs && i < 8; i++)
        EXPECT_EQ(words[i], expected[i]);
    ASSERT_EQ(weir_queue_launch(queue.get(), vectors.get(), weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                written, weir_vector(float, 1, 2, 3, 4), weir_vector(int, -1, 5),
                                weir_vector(float, 1, 2, 3),
                                weir_vector(std::uint8_t, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
                                            13, 14, 15),
                                weir_vector(std::uint64_t, 6, 7)),
              WEIR_OK)
        << weir_last_error_text();
    ASSERT_EQ(weir_download(queue.get(), bits, out.get(), 0, sizeof bits), WEIR_OK);
    if (runs) {
        EXPECT_EQ(bits[3], 0x40800000u);
        EXPECT_EQ(bits[4], 0xffffffffu);
        EXPECT_EQ(bits[8], 0x40400000u);
        EXPECT_EQ(bits[12], 0x0f0e0d0cu);
        EXPECT_EQ(bits[15], 7u);
    }
    EXPECT_EQ(weir_queue_launch(queue.get(), vectors.get(), weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                written, weir_vector(float, 1, 2, 3), 0, 0, 0, 0),
              WEIR_ERROR_INVALID);
    EXPECT_NE(std::strstr(weir_last_error()->message, "a vector of 3 of float"), nullptr);
    ASSERT_EQ(weir_queue_launch(queue.get(), present.get(), weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                written, nullptr, weir_null()),
              WEIR_OK)
        << weir_last_error_text();
    ASSERT_EQ(weir_download(queue.get(), bits, out.get(), 0, sizeof bits), WEIR_OK);
    if (runs) {
        EXPECT_EQ(bits[0], 1000u);
        EXPECT_EQ(bits[1], 2000u);
    }
    EXPECT_EQ(weir_queue_sync(queue.get(), guard_ns), WEIR_OK);
}

// Two queues and a host call, from lambdas.
void orders_queues_and_host_calls()
{
    const Session session;
    const Queue producer = session.queue();
    const Queue consumer = session.queue();
    const Buffer buffer = session.buffer(64);
    bool called = false;
    weir_event event = {};

    ASSERT_EQ(weir_queue_fill(producer.get(), buffer.get(), 0, 64, "\x2a", 1), WEIR_OK);
    ASSERT_EQ(weir_queue_host_call(
                  producer.get(),
                  [](void *user) {
                      *static_cast<bool *>(user) = true;
                      return WEIR_OK;
                  },
                  &called),
              WEIR_OK);
    ASSERT_EQ(weir_queue_record(producer.get(), &event), WEIR_OK);
    ASSERT_EQ(weir_queue_wait(consumer.get(), event), WEIR_OK);
    unsigned char back[64] = {};
    ASSERT_EQ(weir_download(consumer.get(), back, buffer.get(), 0, sizeof back), WEIR_OK);
    EXPECT_TRUE(called);
    EXPECT_EQ(back[63], 42);
    EXPECT_EQ(weir_event_sync(event, guard_ns), WEIR_OK);
    EXPECT_STREQ(weir_status_name(WEIR_TIMEOUT), "WEIR_TIMEOUT");
}

weir_status count_native(const weir_native_queue *native, void *user)
{
    *static_cast<int *>(user) += native->queue != nullptr;
    return WEIR_OK;
}

void calls_natively()
{
    const Session session;
    const Queue queue = session.queue();
    const Buffer buffer = session.buffer(64);
    int calls = 0;
    const weir_status wanted =
        weir_device_limits(session.device)->native ? WEIR_OK : WEIR_ERROR_UNSUPPORTED;

    EXPECT_EQ(weir_queue_native(queue.get(), count_native, &calls, weir_in(buffer.get(), 0, 32),
                                weir_out(buffer.get(), 32, 32)),
              wanted);
    EXPECT_EQ(calls, wanted == WEIR_OK);
    EXPECT_EQ(weir_queue_sync(queue.get(), guard_ns), WEIR_OK);
}

weir_test tests[] = {
    {"Cplusplus", "CallsNatively", __FILE__, __LINE__, calls_natively, nullptr, nullptr},
    {"Cplusplus", "LaunchesBuffersAndScalars", __FILE__, __LINE__, launches_buffers_and_scalars,
     nullptr, nullptr},
    {"Cplusplus", "LaunchesOtherArguments", __FILE__, __LINE__, launches_other_arguments, nullptr,
     nullptr},
    {"Cplusplus", "LaunchesValuesOfEverySize", __FILE__, __LINE__, launches_values_of_every_size,
     nullptr, nullptr},
    {"Cplusplus", "OrdersQueuesAndHostCalls", __FILE__, __LINE__, orders_queues_and_host_calls,
     nullptr, nullptr},
};

const bool added = [] {
    for (weir_test &test : tests)
        weir_test_add(&test);
    return true;
}();

} // namespace
