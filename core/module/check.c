// Modules are trusted code, but may be incomplete: a missing slot is found and
// named here, once, instead of crashing at its first call.
#include "core/module/loader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/sized.h"

// The minimum size of a key of a module's table.
#define SIZE_OF_KEY WEIR_SIZED_UP_TO(struct weir_key, help)

enum {
    MOST_KEYS = 1024
};

// One slot of the ops table. Its partner is the slot that must be set together
// with it, such as create and destroy.
struct slot {
    const char *name;
    bool mandatory; // for backends
    size_t partner; // an index; its own if it has none
};

#define INDEX(slot) (offsetof(struct weir_module_ops, slot) / sizeof(void (*)(void)))
#define PAIR(slot, mandatory, partner) [INDEX(slot)] = {#slot, mandatory, INDEX(partner)}
#define SLOT(slot, mandatory) PAIR(slot, mandatory, slot)

static const struct slot slots[] = {
    PAIR(open, true, close),
    PAIR(close, true, open),
    PAIR(device_count, true, device_describe),
    PAIR(device_describe, true, device_count),
    PAIR(device_create, true, device_destroy),
    PAIR(device_destroy, true, device_create),
    SLOT(device_limits, true),
    SLOT(device_trim, false),
    PAIR(queue_create, true, queue_destroy),
    PAIR(queue_destroy, true, queue_create),
    SLOT(queue_submit, true),
    SLOT(queue_flush, false),
    SLOT(queue_finish, true),
    SLOT(event_query, true),
    SLOT(event_wait, true),
    SLOT(event_time, false),
    PAIR(buffer_create, true, buffer_destroy),
    PAIR(buffer_destroy, true, buffer_create),
    PAIR(program_create, true, program_destroy),
    PAIR(program_destroy, true, program_create),
    SLOT(program_signatures, false),
    PAIR(kernel_create, true, kernel_destroy),
    PAIR(kernel_destroy, true, kernel_create),
    PAIR(graph_create, false, graph_destroy),
    PAIR(graph_destroy, false, graph_create),
    SLOT(graph_update, false),
    SLOT(device_native, false),
    SLOT(queue_native, false),
    SLOT(buffer_native, false),
    SLOT(device_peer, false),
    SLOT(queue_times, false),
    SLOT(device_clock, false),
    SLOT(region, false),
    SLOT(queue_retire, false),
    SLOT(queue_leave, false),
    SLOT(device_reach, false),
    SLOT(kernel_occupancy, false),
    SLOT(buffer_address, false),
    SLOT(host_note, false),
    SLOT(extension, false),
    // All of an engine, or none: each is the partner of the one before.
    PAIR(comm_create, false, comm_destroy),
    PAIR(comm_destroy, false, comm_takes),
    PAIR(comm_takes, false, comm_abort),
    PAIR(comm_abort, false, comm_query),
    PAIR(comm_query, false, comm_engine),
    PAIR(comm_engine, false, comm_create),
    SLOT(comm_captures, false),
    SLOT(graph_takes, false),
    SLOT(comm_give_up, false),
};
#undef SLOT
#undef PAIR
#undef INDEX

enum {
    SLOTS = sizeof slots / sizeof slots[0]
};

static bool refuse(struct weir__finding *finding, const char *remedy, const char *format, ...)
    WEIR_PRINTF(3, 4);

// Writes the finding and returns false, for return statements.
static bool refuse(struct weir__finding *finding, const char *remedy, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(finding->reason, sizeof finding->reason, format, arguments);
    va_end(arguments);
    snprintf(finding->remedy, sizeof finding->remedy, "%s", remedy);
    return false;
}

static const struct {
    const char *name;
    const char *remedy; // where a module of that kind is named in the configuration
} kinds[] = {
    [WEIR_MODULE_BACKEND] = {"backend", "name it under `backend` in [weir]"},
    [WEIR_MODULE_PLUGIN] = {"plugin", "name it under `plugins` in [weir]"},
    [WEIR_MODULE_TRANSPORT] = {"transport", "name it under `transport` in [comm]"},
};

const char *weir__module_kind_name(enum weir_module_kind kind)
{
    return kinds[kind ? kind : WEIR_MODULE_BACKEND].name;
}

static bool check_abi(const struct weir_module *module, struct weir__finding *finding)
{
    if (module->abi != WEIR_MODULE_ABI)
        return refuse(finding,
                      "use the module that came with this Weir, or rebuild it with the headers of "
                      "this Weir",
                      "the module is of module ABI %u, and this library takes ABI %u only",
                      (unsigned)module->abi, WEIR_MODULE_ABI);
    if (!WEIR_HAS(module, transport_slot_count))
        return refuse(finding, "set struct_size to sizeof(struct weir_module)",
                      "the module's header says %u bytes, and ABI %u has %zu",
                      (unsigned)module->struct_size, (unsigned)module->abi,
                      WEIR_SIZED_UP_TO(struct weir_module, transport_slot_count));
    return true;
}

static const char *sanitizer_words(const char *sanitizer)
{
    if (sanitizer[0] == '\0')
        return "no sanitizer";
    if (strcmp(sanitizer, "address") == 0)
        return "the address sanitizer";
    if (strcmp(sanitizer, "thread") == 0)
        return "the thread sanitizer";
    return sanitizer;
}

static bool check_identity(const struct weir_module *module, const char *name,
                           enum weir_module_kind kind, struct weir__finding *finding)
{
    const char *sanitizer = module->sanitizer ? module->sanitizer : "";

    if (module->kind < WEIR_MODULE_BACKEND || module->kind > WEIR_MODULE_TRANSPORT)
        return refuse(finding,
                      "set kind to WEIR_MODULE_BACKEND, WEIR_MODULE_PLUGIN or "
                      "WEIR_MODULE_TRANSPORT",
                      "the module is of kind %d, which is neither a backend nor a plugin nor a "
                      "transport",
                      (int)module->kind);
    if (!module->name || strcmp(module->name, name) != 0)
        return refuse(finding, "give the file the module's own name",
                      "the module in weir_%s.so calls itself '%s'", name,
                      module->name ? module->name : "");
    if (kind != 0 && module->kind != kind)
        return refuse(finding, kinds[module->kind].remedy, "'%s' is a %s, and a %s was asked for",
                      name, weir__module_kind_name(module->kind), weir__module_kind_name(kind));
    if (strcmp(sanitizer, WEIR_MODULE_SANITIZER) != 0)
        return refuse(finding, "build both with the same sanitizer configuration",
                      "the module was built with %s, and this library with %s",
                      sanitizer_words(sanitizer), sanitizer_words(WEIR_MODULE_SANITIZER));
    return true;
}

static bool is_set(const struct weir_module *module, size_t index)
{
    void (*function)(void) = NULL;

    if (index >= module->slot_count)
        return false;
    memcpy(&function, (const char *)module->ops + index * sizeof function, sizeof function);
    return function != NULL;
}

static const char *const transport_slots[] = {
    "open", "close", "join", "split", "place", "run", "abort", "leave",
};

static bool check_transport(const struct weir_module *module, struct weir__finding *finding)
{
    const size_t mandatory = sizeof transport_slots / sizeof *transport_slots;
    if (!module->transport)
        return refuse(finding, "set weir_module.transport", "the transport has no functions");
    for (size_t i = 0; i < mandatory; i++) {
        void (*function)(void) = NULL;
        if (i < module->transport_slot_count)
            memcpy(&function, (const char *)module->transport + i * sizeof function,
                   sizeof function);
        if (!function)
            return refuse(finding, "implement the function, and check transport_slot_count",
                          "the mandatory function `%s` is missing from the %u of the transport",
                          transport_slots[i], (unsigned)module->transport_slot_count);
    }
    return true;
}

static bool check_slots(const struct weir_module *module, struct weir__finding *finding)
{
    if (module->kind == WEIR_MODULE_TRANSPORT)
        return check_transport(module, finding);
    if (!module->ops)
        return refuse(finding, "set ops to the module's table", "the module has no ops table");
    for (size_t i = 0; i < SLOTS; i++) {
        const struct slot *slot = &slots[i];
        const struct slot *partner = &slots[slot->partner];

        if (slot->mandatory && module->kind == WEIR_MODULE_BACKEND && !is_set(module, i))
            return refuse(finding, "implement the slot, and check slot_count",
                          "the mandatory slot `%s` is missing from the %u slots of the backend",
                          slot->name, (unsigned)module->slot_count);
        if (is_set(module, i) && !is_set(module, slot->partner))
            return refuse(finding, "implement both or neither",
                          "the module has the slot `%s` without `%s`", slot->name, partner->name);
    }
    return true;
}

static const struct weir_key *key_of(const struct weir_module *module, size_t index)
{
    return weir_key_at(module->keys, module->key_size, index);
}

// Types and defaults are checked where a configuration is read: weir__config_section().
static bool check_key(const struct weir_module *module, size_t index, struct weir__finding *finding)
{
    const struct weir_key *key = key_of(module, index);
    const char *remedy = "correct the module's key table";

    if (!key->name || key->name[0] == '\0')
        return refuse(finding, remedy, "key %zu of the module's table has no name", index);
    for (size_t i = 0; i < index; i++)
        if (strcmp(key_of(module, i)->name, key->name) == 0)
            return refuse(finding, remedy, "key '%s' occurs twice in the module's table",
                          key->name);
    if (!key->help || key->help[0] == '\0')
        return refuse(finding, remedy, "key '%s' has no help text", key->name);
    return true;
}

static bool check_keys(const struct weir_module *module, struct weir__finding *finding)
{
    if (module->key_count > MOST_KEYS || (module->key_count > 0 && !module->keys))
        return refuse(finding, "correct the module's key table",
                      "the module says that it has %u keys, and %s", (unsigned)module->key_count,
                      module->keys ? "1024 is the limit" : "has no table of them");
    if (module->key_count > 0 && module->key_size < SIZE_OF_KEY)
        return refuse(finding, "set key_size to sizeof(struct weir_key)",
                      "the module says that a key has %u bytes, and a key has %zu at least",
                      (unsigned)module->key_size, SIZE_OF_KEY);
    for (size_t i = 0; i < module->key_count; i++)
        if (!check_key(module, i, finding))
            return false;
    return true;
}

static bool check_kinds(const struct weir_module *module, struct weir__finding *finding)
{
    if (module->operation_kinds > WEIR_OPERATION_COLLECTIVE ||
        module->kind == WEIR_MODULE_TRANSPORT)
        return true;
    return refuse(finding, "set operation_kinds to WEIR_OPERATION_KINDS",
                  "the module says that it knows operations below kind %u, and ABI %u has %d",
                  (unsigned)module->operation_kinds, (unsigned)module->abi,
                  WEIR_OPERATION_COLLECTIVE + 1);
}

bool weir__module_check(const struct weir_module *module, const char *name,
                        enum weir_module_kind kind, struct weir__finding *out_finding)
{
    return check_abi(module, out_finding) && check_identity(module, name, kind, out_finding) &&
           check_slots(module, out_finding) && check_keys(module, out_finding) &&
           check_kinds(module, out_finding);
}

void weir__module_read(const struct weir_module *module, struct weir_module *out_module,
                       struct weir_module_ops *out_ops, struct weir_transport_ops *out_transport)
{
    const size_t slot_bytes = module->slot_count * sizeof(void (*)(void));
    const size_t function_bytes = module->transport_slot_count * sizeof(void (*)(void));
    weir_sized_write(out_module, sizeof *out_module, module, module->struct_size);
    *out_ops = (struct weir_module_ops){0};
    *out_transport = (struct weir_transport_ops){0};
    if (module->kind == WEIR_MODULE_TRANSPORT)
        memcpy(out_transport, module->transport,
               function_bytes < sizeof *out_transport ? function_bytes : sizeof *out_transport);
    else
        memcpy(out_ops, module->ops, slot_bytes < sizeof *out_ops ? slot_bytes : sizeof *out_ops);
}

struct weir_section weir__module_section(const struct weir_module *module)
{
    return (struct weir_section){
        .struct_size = sizeof(struct weir_section),
        .name = module->name,
        .keys = module->keys,
        .key_count = module->key_count,
        .key_size = module->key_size,
    };
}
