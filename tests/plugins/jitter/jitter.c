// A plugin for tests that reads the clocks of a device as a thread does that sleeps between the two
// readings: the host's is late, by 3.5 ms at first and by 0.5 ms less each time.
#include <stdatomic.h>
#include <weir/module/module.h>

#define LATE_NS UINT64_C(500000)

static atomic_uint readings;

static weir_status jitter_clock(const struct weir_link *link, weir_device *device,
                                uint64_t *out_host_ns, uint64_t *out_device_ns)
{
    const weir_status status =
        link->next->ops->device_clock(link->next, device, out_host_ns, out_device_ns);
    *out_host_ns += (7 - atomic_fetch_add(&readings, 1) % 8) * LATE_NS;
    return status;
}

static const struct weir_module_ops jitter_ops = {
    .device_clock = jitter_clock,
};

WEIR_MODULE(WEIR_MODULE_PLUGIN, "jitter", WEIR_VERSION_STRING, WEIR_MODULE_OPS(jitter_ops))
