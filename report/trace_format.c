#include "report/trace_format.h"

#include <math.h>
#include <string.h>

#include <weir/region.h>

#include "base/c_locale.h"
#include "report/findings.h"

// Names of the parts of a trace, in files and for users.

static const struct {
    const char *name;
    const char *colour;
} engines[WEIR_ENGINE_COUNT] = {
    [WEIR_ENGINE_NONE] = {"none", "#8a9199"},
    [WEIR_ENGINE_TO_DEVICE] = {"to_device", "#3b75b4"},
    [WEIR_ENGINE_TO_HOST] = {"to_host", "#d9822b"},
    [WEIR_ENGINE_ON_DEVICE] = {"on_device", "#8d6cab"},
    [WEIR_ENGINE_KERNELS] = {"kernels", "#2f9e77"},
    [WEIR_ENGINE_HOST] = {"host", "#8a9199"},
    [WEIR_ENGINE_COMMUNICATION] = {"communication", "#b8503f"},
};

const char *weir_trace_engine_name(enum weir_trace_engine engine)
{
    return engines[(unsigned)engine < WEIR_ENGINE_COUNT ? engine : WEIR_ENGINE_NONE].name;
}

const char *weir_trace_engine_colour(enum weir_trace_engine engine)
{
    return engines[(unsigned)engine < WEIR_ENGINE_COUNT ? engine : WEIR_ENGINE_NONE].colour;
}

const char *weir_trace_kind_name(enum weir_trace_kind kind)
{
    static const char *const names[] = {
        [WEIR_TRACE_COPY] = "copy",
        [WEIR_TRACE_FILL] = "fill",
        [WEIR_TRACE_LAUNCH] = "launch",
        [WEIR_TRACE_HOST_CALL] = "host_call",
        [WEIR_TRACE_GRAPH] = "graph",
        [WEIR_TRACE_NATIVE] = "native",
        [WEIR_TRACE_COLLECTIVE] = "collective",
        [WEIR_TRACE_NOTE] = "note",
    };
    const bool known = (unsigned)kind < sizeof names / sizeof *names && names[kind];
    return known ? names[kind] : "operation";
}

static const char *memory_name(enum weir_trace_memory memory)
{
    static const char *const names[] = {"Unknown", "Device", "Pinned", "Pageable", "Managed"};
    return names[(unsigned)memory < sizeof names / sizeof *names ? memory : 0];
}

static char letter(enum weir_trace_memory memory)
{
    return memory == WEIR_TRACE_DEVICE_MEMORY || memory == WEIR_TRACE_MANAGED_MEMORY ? 'D' : 'H';
}

struct weir_trace_name weir_trace_operation_title(const struct weir_trace_operation *operation)
{
    struct weir_trace_name title;
    const char *name = operation->name ? operation->name : "";
    switch (operation->kind) {
    case WEIR_TRACE_COPY:
        snprintf(title.text, sizeof title.text, "Memcpy %cto%c (%s -> %s)",
                 letter(operation->src_memory), letter(operation->dst_memory),
                 memory_name(operation->src_memory), memory_name(operation->dst_memory));
        break;
    case WEIR_TRACE_FILL:
        snprintf(title.text, sizeof title.text, "Memset (%s)", memory_name(operation->dst_memory));
        break;
    case WEIR_TRACE_HOST_CALL:
    case WEIR_TRACE_GRAPH:
    case WEIR_TRACE_NATIVE:
        snprintf(title.text, sizeof title.text, "%s%s%s",
                 operation->kind == WEIR_TRACE_HOST_CALL ? "host call"
                 : operation->kind == WEIR_TRACE_GRAPH   ? "graph"
                                                         : "native work",
                 *name ? " " : "", name);
        break;
    default:
        snprintf(title.text, sizeof title.text, "%s",
                 *name ? name : weir_trace_kind_name(operation->kind));
        break;
    }
    return title;
}

struct weir_trace_name weir_trace_queue_name(const struct weir_trace_queue *queue)
{
    struct weir_trace_name name;
    if (queue->label && *queue->label)
        snprintf(name.text, sizeof name.text, "%s", queue->label);
    else
        snprintf(name.text, sizeof name.text, "queue %llu", (unsigned long long)queue->id);
    return name;
}

bool weir_trace_is_communication(const char *name)
{
    return strncmp(name, "nccl", 4) == 0 && strstr(name + 4, "Kernel");
}

static const char *name_of(enum weir__field_type type, unsigned number)
{
    static const char *const accesses[] = {"none", "read", "write", "read-write"};
    switch (type) {
    case WEIR__KIND:
        return weir_trace_kind_name((enum weir_trace_kind)number);
    case WEIR__ENGINE:
        return weir_trace_engine_name((enum weir_trace_engine)number);
    case WEIR__MEMORY:
        return memory_name((enum weir_trace_memory)number);
    case WEIR__FINDING:
        return weir_findings_kind_name((weir_check_kind)number);
    default:
        return accesses[number % 4];
    }
}

unsigned weir__named(enum weir__field_type type, const char *name, size_t length)
{
    for (unsigned number = 0; length > 0 && number < 128; number++) { // more than any type has
        const char *known = name_of(type, number);
        if (strncmp(known, name, length) == 0 && known[length] == '\0')
            return number;
    }
    return 0;
}

// The fields: those that are always there, those that are not if they are 0, and items of lists.

const struct weir__field weir__head_fields[] = {
    WEIR__ALWAYS(weir_trace_meta, weir, WEIR__TEXT, "version"),
    WEIR__ALWAYS(weir_trace_meta, program, WEIR__TEXT, "program"),
    WEIR__ALWAYS(weir_trace_meta, backend, WEIR__TEXT, "backend"),
    WEIR__ALWAYS(weir_trace_meta, plugins, WEIR__TEXT, "plugins"),
    WEIR__ALWAYS(weir_trace_meta, source, WEIR__TEXT, "source"),
    WEIR__ALWAYS(weir_trace_meta, process, WEIR__COUNT, "process"),
    {0},
};

const struct weir__field weir__end_fields[] = {
    WEIR__ALWAYS(weir_trace_meta, end_ns, WEIR__COUNT, "weir.end"),
    WEIR__ALWAYS(weir_trace_meta, dropped, WEIR__COUNT, "weir.dropped"),
    WEIR__UNLESS_0(weir_trace_meta, beyond, WEIR__COUNT, "weir.beyond"),
    WEIR__ALWAYS(weir_trace_meta, unfinished, WEIR__COUNT, "weir.unfinished"),
    {0},
};

const struct weir__field weir__device_fields[] = {
    WEIR__ALWAYS(weir_trace_device, name, WEIR__TEXT, "weir.name"),
    WEIR__ALWAYS(weir_trace_device, platform, WEIR__TEXT, "weir.platform"),
    WEIR__ALWAYS(weir_trace_device, driver, WEIR__TEXT, "weir.driver"),
    WEIR__ALWAYS(weir_trace_device, label, WEIR__TEXT, "weir.label"),
    WEIR__UNLESS_0(weir_trace_device, memory_bytes, WEIR__COUNT, "weir.memory_bytes"),
    WEIR__UNLESS_0(weir_trace_device, compute_units, WEIR__SMALL, "weir.compute_units"),
    WEIR__UNLESS_0(weir_trace_device, copy_engines_to_device, WEIR__SMALL,
                   "weir.copy_engines_to_device"),
    WEIR__UNLESS_0(weir_trace_device, copy_engines_to_host, WEIR__SMALL,
                   "weir.copy_engines_to_host"),
    WEIR__UNLESS_0(weir_trace_device, concurrent_kernels, WEIR__SMALL, "weir.concurrent_kernels"),
    WEIR__UNLESS_0(weir_trace_device, kind, WEIR__SMALL, "weir.device_kind"),
    {0},
};

// As PyTorch's profiler has them.
const struct weir__field weir__property_fields[] = {
    WEIR__ALWAYS(weir_trace_device, index, WEIR__SMALL, "id"),
    WEIR__ALWAYS(weir_trace_device, name, WEIR__TEXT, "name"),
    WEIR__ALWAYS(weir_trace_device, memory_bytes, WEIR__COUNT, "totalGlobalMem"),
    WEIR__ALWAYS(weir_trace_device, compute_units, WEIR__SMALL, "numSms"),
    {0},
};

const struct weir__field weir__queue_fields[] = {
    WEIR__ALWAYS(weir_trace_queue, label, WEIR__TEXT, "weir.label"),
    WEIR__ALWAYS(weir_trace_queue, priority, WEIR__INT, "weir.priority"),
    {0},
};

// An extent.
static const struct weir__field triple_fields[] = {
    {0, WEIR__SMALL, NULL, true, NULL},
    {sizeof(uint32_t), WEIR__SMALL, NULL, true, NULL},
    {2 * sizeof(uint32_t), WEIR__SMALL, NULL, true, NULL},
    {0},
};

const struct weir__field weir__operation_fields[] = {
    WEIR__UNLESS_0(weir_trace_operation, bytes, WEIR__COUNT, "bytes"),
    {offsetof(struct weir_trace_operation, grid), WEIR__ITEM, "grid", false, triple_fields},
    {offsetof(struct weir_trace_operation, block), WEIR__ITEM, "block", false, triple_fields},
    WEIR__ALWAYS(weir_trace_operation, sequence, WEIR__COUNT, "weir.sequence"),
    WEIR__ALWAYS(weir_trace_operation, kind, WEIR__KIND, "weir.kind"),
    WEIR__ALWAYS(weir_trace_operation, engine, WEIR__ENGINE, "weir.engine"),
    WEIR__UNLESS_0(weir_trace_operation, name, WEIR__TEXT, "weir.name"),
    WEIR__UNLESS_0(weir_trace_operation, label, WEIR__TEXT, "weir.label"),
    WEIR__UNLESS_0(weir_trace_operation, dst_label, WEIR__TEXT, "weir.dst"),
    WEIR__UNLESS_0(weir_trace_operation, src_label, WEIR__TEXT, "weir.src"),
    WEIR__UNLESS_0(weir_trace_operation, dst_memory, WEIR__MEMORY, "weir.dst_memory"),
    WEIR__UNLESS_0(weir_trace_operation, src_memory, WEIR__MEMORY, "weir.src_memory"),
    WEIR__UNLESS_0(weir_trace_operation, argument_bytes, WEIR__COUNT, "weir.argument_bytes"),
    WEIR__UNLESS_0(weir_trace_operation, file, WEIR__TEXT, "weir.file"),
    WEIR__UNLESS_0(weir_trace_operation, line, WEIR__INT, "weir.line"),
    WEIR__UNLESS_0(weir_trace_operation, region, WEIR__TEXT, "weir.region"),
    WEIR__UNLESS_0(weir_trace_operation, thread, WEIR__COUNT, "weir.thread"),
    WEIR__ALWAYS(weir_trace_operation, submit_ns, WEIR__COUNT, "weir.submit"),
    WEIR__UNLESS_0(weir_trace_operation, submit_end_ns, WEIR__COUNT, "weir.submit_end"),
    WEIR__UNLESS_0(weir_trace_operation, start_is_earliest, WEIR__BOOL, "weir.start_is_earliest"),
    WEIR__UNLESS_0(weir_trace_operation, failed, WEIR__BOOL, "weir.failed"),
    WEIR__UNLESS_0(weir_trace_operation, finding_kind, WEIR__TEXT, "weir.finding_kind"),
    WEIR__UNLESS_0(weir_trace_operation, finding, WEIR__TEXT, "weir.finding"),
    WEIR__UNLESS_0(weir_trace_operation, remedy, WEIR__TEXT, "weir.remedy"),
    {0},
};

const struct weir__field weir__wait_fields[] = {
    WEIR__ALWAYS(weir_trace_wait, queue, WEIR__COUNT, NULL),
    WEIR__ALWAYS(weir_trace_wait, sequence, WEIR__COUNT, NULL),
    WEIR__ALWAYS(weir_trace_wait, file, WEIR__TEXT, NULL),
    WEIR__ALWAYS(weir_trace_wait, line, WEIR__INT, NULL),
    {0},
};

const struct weir__field weir__scalar_fields[] = {
    WEIR__ALWAYS(weir_trace_scalar, argument, WEIR__SMALL, NULL),
    WEIR__ALWAYS(weir_trace_scalar, value, WEIR__REAL, NULL),
    {0},
};

const struct weir__field weir__collective_fields[] = {
    WEIR__ALWAYS(weir_trace_collective, kind, WEIR__TEXT, NULL),
    WEIR__ALWAYS(weir_trace_collective, element, WEIR__TEXT, NULL),
    WEIR__ALWAYS(weir_trace_collective, reduction, WEIR__TEXT, NULL),
    WEIR__ALWAYS(weir_trace_collective, count, WEIR__COUNT, NULL),
    WEIR__ALWAYS(weir_trace_collective, number, WEIR__COUNT, NULL),
    WEIR__ALWAYS(weir_trace_collective, rank, WEIR__SMALL, NULL),
    WEIR__ALWAYS(weir_trace_collective, rank_count, WEIR__SMALL, NULL),
    WEIR__ALWAYS(weir_trace_collective, root, WEIR__SMALL, NULL),
    {0},
};

// JSON.

static void put(struct weir_long_text *out, const char *bytes, size_t size)
{
    weir_long_text_put(out, bytes, size);
}

void weir__out_raw(struct weir_long_text *out, const char *text)
{
    put(out, text, strlen(text));
}

void weir__out_string(struct weir_long_text *out, const char *text)
{
    const char *at = text ? text : "";
    put(out, "\"", 1);
    while (*at) {
        size_t length = 0;
        char escape[8];
        while (at[length] >= ' ' && at[length] < 0x7f && at[length] != '"' && at[length] != '\\')
            length++;
        length = length ? length : weir_text_character(at, SIZE_MAX);
        if (length == 0) {
            put(out, "?", 1);
        } else if (*at == '"' || *at == '\\') {
            escape[0] = '\\';
            escape[1] = *at;
            put(out, escape, 2);
        } else if ((unsigned char)*at < 0x20 || *at == 0x7f) {
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*at);
            put(out, escape, 6);
        } else {
            put(out, at, length);
        }
        at += length ? length : 1;
    }
    put(out, "\"", 1);
}

void weir__out_uint(struct weir_long_text *out, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;
    if (number > INT64_MAX)
        number = INT64_MAX;
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    put(out, digits + at, sizeof digits - at);
}

static void put_int(struct weir_long_text *out, int number)
{
    if (number < 0)
        put(out, "-", 1);
    weir__out_uint(out, (uint64_t)llabs(number));
}

static void put_double(struct weir_long_text *out, double number)
{
    char text[40];
    weir_c_format(text, sizeof text, "%.17g", isfinite(number) ? number : 0.0);
    weir__out_raw(out, text);
}

void weir__out_key(struct weir_long_text *out, const char *name)
{
    if (out->used == 0 || !strchr("{[", out->text[out->used - 1]))
        put(out, ",", 1);
    if (!name)
        return;
    put(out, "\"", 1);
    weir__out_raw(out, name);
    put(out, "\":", 2);
}

void weir__out_string_field(struct weir_long_text *out, const char *name, const char *text)
{
    weir__out_key(out, name);
    weir__out_string(out, text);
}

void weir__out_uint_field(struct weir_long_text *out, const char *name, uint64_t number)
{
    weir__out_key(out, name);
    weir__out_uint(out, number);
}

// Microseconds with three decimals, of nanoseconds.
void weir__out_us_field(struct weir_long_text *out, const char *name, uint64_t ns)
{
    const unsigned rest = (unsigned)(ns % 1000);
    const char decimals[4] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
                              (char)('0' + rest % 10)};
    weir__out_key(out, name);
    weir__out_uint(out, ns / 1000);
    put(out, decimals, sizeof decimals);
}

void weir__out_double_field(struct weir_long_text *out, const char *name, double number)
{
    weir__out_key(out, name);
    put_double(out, number);
}

static void put_value(struct weir_long_text *out, const struct weir__field *field,
                      const void *value)
{
    switch (field->type) {
    case WEIR__TEXT:
        weir__out_string(out, *(const char *const *)value);
        break;
    case WEIR__REASON:
        if (*(const char *const *)value)
            weir__out_string(out, *(const char *const *)value);
        else
            weir__out_raw(out, "null");
        break;
    case WEIR__COUNT:
        weir__out_uint(out, *(const uint64_t *)value);
        break;
    case WEIR__NUMBER:
        if (*(const uint64_t *)value == WEIR_NO_NUMBER)
            weir__out_raw(out, "null");
        else
            weir__out_uint(out, *(const uint64_t *)value);
        break;
    case WEIR__SMALL:
        weir__out_uint(out, *(const uint32_t *)value);
        break;
    case WEIR__INT:
        put_int(out, *(const int *)value);
        break;
    case WEIR__BOOL:
        weir__out_raw(out, *(const bool *)value ? "true" : "false");
        break;
    case WEIR__REAL:
        put_double(out, *(const double *)value);
        break;
    case WEIR__ITEM:
        weir__out_item(out, field->own, value);
        break;
    case WEIR__HINT:
        weir__out_raw(out, *(const unsigned *)value >= WEIR_CHECK_FIRST_HINT ? "true" : "false");
        break;
    default:
        weir__out_string(out, name_of(field->type, *(const unsigned *)value));
        break;
    }
}

static bool is_there(const struct weir__field *field, const void *value)
{
    switch (field->type) {
    case WEIR__TEXT:
        return *(const char *const *)value && **(const char *const *)value;
    case WEIR__COUNT:
        return *(const uint64_t *)value > 0;
    case WEIR__BOOL:
        return *(const bool *)value;
    default:
        return *(const unsigned *)value != 0; // also of an int, and the first of an extent
    }
}

void weir__out_fields(struct weir_long_text *out, const struct weir__field *fields,
                      const void *item)
{
    for (const struct weir__field *field = fields; field->type != WEIR__END; field++) {
        const void *value = (const char *)item + field->offset;
        if (!field->always && !is_there(field, value))
            continue;
        weir__out_key(out, field->name);
        put_value(out, field, value);
    }
}

void weir__out_item(struct weir_long_text *out, const struct weir__field *fields, const void *item)
{
    put(out, fields->name ? "{" : "[", 1);
    weir__out_fields(out, fields, item);
    put(out, fields->name ? "}" : "]", 1);
}

void weir__out_items(struct weir_long_text *out, const char *name, const struct weir__field *fields,
                     const void *items, size_t count, size_t size)
{
    weir__out_key(out, name);
    put(out, "[", 1);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            put(out, ",\n", fields->name ? 2 : 1);
        weir__out_item(out, fields, (const char *)items + i * size);
    }
    put(out, "]", 1);
}

// Values.

uint64_t weir__in_count(const json_t *value)
{
    if (json_is_integer(value))
        return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
    const double number = json_real_value(value);
    return number >= 1 && number < 9e18 ? (uint64_t)number : 0;
}

static uint32_t small_of(const json_t *value)
{
    const uint64_t number = weir__in_count(value);
    return number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

static int int_of(const json_t *value)
{
    const json_int_t number = json_integer_value(value);
    return number > INT32_MAX ? INT32_MAX : number < INT32_MIN ? INT32_MIN : (int)number;
}

static const char *text_of(const json_t *value, struct weir_names *texts)
{
    const char *text = json_string_value(value);
    if (texts && text && *text)
        text = weir_names_keep(texts, text);
    return text && *text ? text : "";
}

void weir__in_value(const struct weir__field *field, const json_t *value, struct weir_names *texts,
                    void *out)
{
    const char *text = text_of(value, NULL);
    switch (field->type) {
    case WEIR__TEXT:
        *(const char **)out = text_of(value, texts);
        break;
    case WEIR__REASON:
        *(const char **)out = json_is_string(value) ? text_of(value, texts) : NULL;
        break;
    case WEIR__COUNT:
        *(uint64_t *)out = weir__in_count(value);
        break;
    case WEIR__NUMBER:
        *(uint64_t *)out = json_is_number(value) ? weir__in_count(value) : WEIR_NO_NUMBER;
        break;
    case WEIR__SMALL:
        *(uint32_t *)out = small_of(value);
        break;
    case WEIR__INT:
        *(int *)out = int_of(value);
        break;
    case WEIR__BOOL:
        *(bool *)out = json_is_true(value);
        break;
    case WEIR__REAL:
        *(double *)out = json_number_value(value);
        break;
    case WEIR__ITEM:
        weir__in_fields(field->own, value, texts, out);
        break;
    case WEIR__HINT:
        break;
    default:
        *(unsigned *)out = weir__named(field->type, text, strlen(text));
        break;
    }
}

void weir__in_fields(const struct weir__field *fields, const json_t *value,
                     struct weir_names *texts, void *item)
{
    for (size_t i = 0; fields[i].type != WEIR__END; i++)
        weir__in_value(&fields[i],
                       fields->name ? json_object_get(value, fields[i].name)
                                    : json_array_get(value, i),
                       texts, (char *)item + fields[i].offset);
}
