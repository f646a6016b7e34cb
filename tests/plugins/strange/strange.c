// A plugin for tests that makes operations of a kind that no header has: each FILL becomes one.
#include <weir/module/module.h>

enum {
    STRANGE_KIND = 257 // in 8 bits a copy
};

static weir_status strange_submit(const struct weir_link *link, weir_queue *queue,
                                  const struct weir_operation *operation)
{
    struct weir_operation_room room;

    if (operation->kind == WEIR_OPERATION_FILL) {
        weir_operation_copy(&room, operation)->kind = (enum weir_operation_kind)STRANGE_KIND;
        operation = &room.operation;
    }
    return link->next->ops->queue_submit(link->next, queue, operation);
}

static const struct weir_module_ops strange_ops = {
    .queue_submit = strange_submit,
};

static const struct weir_module strange_module = {
    .abi = WEIR_MODULE_ABI,
    .struct_size = sizeof strange_module,
    .kind = WEIR_MODULE_PLUGIN,
    .name = "strange",
    .version = WEIR_VERSION_STRING,
    .build_id = "",
    .sanitizer = WEIR_MODULE_SANITIZER,
    .slot_count = WEIR_MODULE_SLOT_COUNT,
    .operation_kinds = WEIR_OPERATION_KINDS,
    .ops = &strange_ops,
};

const struct weir_module *weir_module_query(uint32_t host_abi, const struct weir_host *host)
{
    (void)host_abi;
    (void)host;
    return &strange_module;
}
