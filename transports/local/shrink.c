// Groups of the ranks that are left: what both wires need.
#include "transports/local/local.h"

uint64_t local_shrink_patience(const struct weir_transport_shrink *shrink)
{
    return shrink->timeout_ns / 4;
}

weir_status local_shrink_without(const struct local_group *group)
{
    return weir_host_fail(group->host, WEIR_ERROR_COMM,
                          "end this rank, or let all ranks create another communicator",
                          "'%s': the other ranks have gone on without rank %u, which came late",
                          group->label, group->rank);
}

weir_status local_shrink(void *group, const struct weir_transport_shrink *shrink, void **out_group)
{
    struct local_group *whole = group;
    struct local_group *part = NULL;
    char cause[LOCAL_CAUSE_SIZE];
    *out_group = NULL;
    if (!whole->wire->failed(whole, cause))
        local_abort(whole, "it goes on with the ranks that are left");
    const weir_status status = whole->wire->shrink(whole, shrink, &part);
    *out_group = part;
    return status;
}
