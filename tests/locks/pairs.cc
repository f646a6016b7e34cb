// Pairs of the C++ library's primitives that do not merely call one of those in pairs.c.
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

std::mutex mutex;
std::shared_timed_mutex shared_timed[2];

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
        const std::lock_guard<std::mutex> lock(mutex);
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
        std::unique_lock<std::mutex> lock(mutex);
        condition.wait(lock, [] { return ready.load(); });
    }
    taken = true;
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
    {"shared_timed_mutex", give_shared_timed, take_shared_timed, false, false, nullptr},
    {"condition_variable", give_condition, take_condition, true, false, nullptr},
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
