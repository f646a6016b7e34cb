// The transport is loaded when the first communicator is created, so that a program without
// communicators needs none.
#include "core/module/loader.h"
#include "core/runtime/runtime.h"
#include "core/support/error.h"

static weir_status load(weir_runtime *runtime)
{
    struct weir__transport *transport = &runtime->transport;
    struct weir__loaded loaded;
    weir_status status = weir__loader_load(weir__config_comm(runtime->config, "transport")->text,
                                           WEIR_MODULE_TRANSPORT,
                                           weir__config_weir(runtime->config, "module_path")->text,
                                           &weir__host, NULL, &loaded);
    if (status < 0)
        return status;
    transport->settings = weir__runtime_take_module(runtime, loaded.module);
    if (!transport->settings)
        return weir_last_error()->status;
    status = loaded.transport->open(&weir__host, transport->settings, &transport->state);
    if (status == WEIR_OK) {
        transport->ops = loaded.transport;
        return WEIR_OK;
    }
    weir__runtime_release_section(transport->settings);
    transport->settings = NULL;
    return status;
}

weir_status weir__transport_get(weir_runtime *runtime, const struct weir_transport_ops **out_ops,
                                void **out_state)
{
    struct weir__transport *transport = &runtime->transport;
    weir_lock_take(&transport->lock);
    weir_status status = transport->ops ? WEIR_OK : load(runtime);
    *out_ops = transport->ops;
    *out_state = transport->state;
    weir_lock_release(&transport->lock);
    return status;
}

const char *weir__transport_name(const weir_runtime *runtime)
{
    const struct weir_transport_ops *ops = runtime->transport.ops;
    return ops->library ? ops->library(runtime->transport.state)
                        : weir__config_comm(runtime->config, "transport")->text;
}

void weir__transport_finish(weir_runtime *runtime)
{
    struct weir__transport *transport = &runtime->transport;
    if (transport->ops)
        transport->ops->close(transport->state);
    weir__runtime_release_section(transport->settings);
    weir_lock_finish(&transport->lock);
}
