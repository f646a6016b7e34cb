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

WEIR_MODULE(WEIR_MODULE_PLUGIN, "strange", WEIR_VERSION_STRING, WEIR_MODULE_OPS(strange_ops))
