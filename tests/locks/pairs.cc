// Pairs of the C++ library's primitives.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "tests/locks/pair.h"

namespace
{

using namespace std::chrono_literals;

int other(bool mended)
{
    return mended ? 0 : 1;
}

std::mutex mutexes[2];
std::recursive_mutex recursive[2];
std::timed_mutex timed[2];
std::shared_mutex shared[2];
std::shared_timed_mutex shared_timed[2];

void give_mutex(bool)
{
    const std::lock_guard<std::mutex> lock(mutexes[0]);
}

void take_mutex(bool mended)
{
    const std::lock_guard<std::mutex> lock(mutexes[other(mended)]);
}

void take_scoped(bool mended)
{
    static std::mutex third;
    const std::scoped_lock lock(mutexes[other(mended)], third);
}

void take_unique(bool mended)
{
    std::unique_lock<std::mutex> lock(mutexes[other(mended)], std::try_to_lock);
    if (!lock)
        std::abort();
}

void give_recursive(bool)
{
    const std::lock_guard<std::recursive_mutex> lock(recursive[0]);
}

void take_recursive(bool mended)
{
    const std::lock_guard<std::recursive_mutex> lock(recursive[other(mended)]);
}

void give_timed(bool)
{
    const std::lock_guard<std::timed_mutex> lock(timed[0]);
}

void take_timed(bool mended)
{
    if (!timed[other(mended)].try_lock_for(20s))
        std::abort();
    timed[other(mended)].unlock();
}

void give_shared(bool)
{
    const std::unique_lock<std::shared_mutex> lock(shared[0]);
}

void take_shared(bool mended)
{
    const std::shared_lock<std::shared_mutex> lock(shared[other(mended)]);
}

void give_as_reader(bool)
{
    const std::shared_lock<std::shared_mutex> lock(shared[0]);
}

void take_as_writer_or_reader(bool mended)
{
    if (mended)
        const std::unique_lock<std::shared_mutex> lock(shared[0]);
    else
        const std::shared_lock<std::shared_mutex> lock(shared[0]);
}

void give_shared_timed(bool)
{
    const std::unique_lock<std::shared_timed_mutex> lock(shared_timed[0]);
}

void take_shared_timed(bool mended)
{
    if (!shared_timed[other(mended)].try_lock_shared_for(20s))
        std::abort();
    shared_timed[other(mended)].unlock_shared();
}

// Conditions. The broken form sets its flag without the mutex.

std::condition_variable condition;

std::atomic<bool> ready, taken;

void give_condition(bool mended)
{
    if (mended) {
        const std::lock_guard<std::mutex> lock(mutexes[0]);
        ready = true;
    }
    ready = true;
    while (!taken) {
        condition.notify_all();
        std::this_thread::sleep_for(200us);
    }
    ready = taken = false;
}

void take_condition(bool)
{
    {
        std::unique_lock<std::mutex> lock(mutexes[0]);
        condition.wait(lock, [] { return ready.load(); });
    }
    taken = true;
}

void take_condition_timed(bool)
{
    {
        std::unique_lock<std::mutex> lock(mutexes[0]);
        condition.wait_for(lock, 20s, [] { return ready.load(); });
    }
    taken = true;
}

void run_once(bool mended)
{
    std::once_flag flag;
    std::thread thread([&] {
        std::call_once(flag, pair_write);
        pair_send();
    });
    pair_receive();
    if (mended)
        std::call_once(flag, pair_write);
    pair_read();
    thread.join();
}

// Threads.

void join(bool mended)
{
    std::thread thread([] {
        pair_write();
        pair_send();
    });
    pair_receive();
    if (mended)
        thread.join();
    pair_read();
    if (!mended)
        thread.join();
}

void create(bool mended)
{
    if (mended)
        pair_write();
    std::thread thread([] {
        pair_receive();
        pair_read();
    });
    if (!mended)
        pair_write();
    pair_send();
    thread.join();
}

void async(bool mended)
{
    auto result = std::async(std::launch::async, [] {
        pair_write();
        pair_send();
    });
    pair_receive();
    if (mended)
        result.get();
    pair_read();
}

// Objects of a thread end with it, before it is joined.

struct writes_at_the_end {
    bool on = false;
    ~writes_at_the_end()
    {
        if (on)
            pair_write();
    }
};

thread_local writes_at_the_end object;

void end_of_objects(bool mended)
{
    std::thread thread([] { object.on = true; });
    if (mended)
        thread.join();
    else
        std::this_thread::sleep_for(20ms);
    pair_read();
    if (!mended)
        thread.join();
}

const struct pair pairs[] = {
    {"mutex", give_mutex, take_mutex, false, false, nullptr},
    {"scoped_lock", give_mutex, take_scoped, false, false, nullptr},
    {"unique_lock", give_mutex, take_unique, false, false, nullptr},
    {"recursive_mutex", give_recursive, take_recursive, false, false, nullptr},
    {"timed_mutex", give_timed, take_timed, false, false, nullptr},
    {"shared_mutex", give_shared, take_shared, false, false, nullptr},
    {"shared_mutex, reader first", give_as_reader, take_as_writer_or_reader, false, true, nullptr},
    {"shared_timed_mutex", give_shared_timed, take_shared_timed, false, false, nullptr},
    {"condition_variable", give_condition, take_condition, true, false, nullptr},
    {"condition_variable timed", give_condition, take_condition_timed, true, false, nullptr},
    {"call_once", nullptr, nullptr, false, false, run_once},
    {"thread join", nullptr, nullptr, false, false, join},
    {"thread create", nullptr, nullptr, false, false, create},
    {"async", nullptr, nullptr, false, false, async},
    {"thread_local", nullptr, nullptr, false, false, end_of_objects},
};

} // namespace

int main(int argc, char **argv)
{
    return pair_main(pairs, sizeof pairs / sizeof *pairs, argc, argv);
}
