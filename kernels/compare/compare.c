// The file of cases; what arguments hold, and whether two results are equal; and the device: launches, and the
// lines that are printed.
#include "kernels/compare/compare.h"

#include <math.h>
#include <stdarg.h>

#include "base/file.h"
#include "base/json/json.h"

// A type's name, its form in C, and its numbers: from the first on, below the second.
#define EACH_TYPE(DO)                                 \
    DO(char, int8_t, -0x1p7, 0x1p7)                   \
    DO(uchar, uint8_t, 0, 0x1p8)                      \
    DO(short, int16_t, -0x1p15, 0x1p15)               \
    DO(ushort, uint16_t, 0, 0x1p16)                   \
    DO(int, int32_t, -0x1p31, 0x1p31)                 \
    DO(uint, uint32_t, 0, 0x1p32)                     \
    DO(long, int64_t, -0x1p63, 0x1p63)                \
    DO(ulong, uint64_t, 0, 0x1p64)                    \
    DO(float, float, -0x1.fffffep127, 0x1.ffffffp127) \
    DO(double, double, -0x1.fffffffffffffp1023, INFINITY)

#define FUNCTIONS(name, type, least, beyond)                       \
    static double get_##name(const void *data, size_t index)       \
    {                                                              \
        return (double)((const type *)data)[index];                \
    }                                                              \
    static void set_##name(void *data, size_t index, double value) \
    {                                                              \
        ((type *)data)[index] = (type)value;                       \
    }
EACH_TYPE(FUNCTIONS)
#undef FUNCTIONS

static const struct compare_type types[] = {
#define ROW(name, type, least, beyond) {#name, sizeof(type), least, beyond, get_##name, set_##name},
    EACH_TYPE(ROW)
#undef ROW
};

static bool is_real(const struct compare_type *type)
{
    return type->beyond > 0x1p64;
}

static bool fits(const struct compare_type *type, double value)
{
    return value >= type->least && value < type->beyond && (is_real(type) || floor(value) == value);
}

// 1, 2, 3, 4, 8 or 16 from what stands after a type's name; 0: another.
static unsigned lanes_of(const char *text)
{
    const char *rest = text + strspn(text, "0123456789");
    const unsigned long number = rest > text ? strtoul(text, NULL, 10) : 1;
    const bool fine = number == 2 || number == 3 || number == 4 || number == 8 || number == 16;
    if ((rest > text && !fine) || rest[strspn(rest, " *")])
        return 0;
    return number == 3 ? 4 : (unsigned)number;
}

bool compare_read_type(const char *type, struct compare_argument *argument)
{
    static const char constant[] = "const ";
    if (strncmp(type, constant, sizeof constant - 1) == 0)
        type += sizeof constant - 1;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const size_t length = strlen(types[i].name);
        if (strncmp(type, types[i].name, length) != 0 ||
            (argument->lanes = lanes_of(type + length)) == 0)
            continue;
        argument->type = &types[i];
        return true;
    }
    return false;
}

struct compare_difference {
    size_t beyond;  // how many elements differ by more than the tolerance
    size_t worst;   // the element that exceeds, or comes nearest to, its tolerance
    double largest; // its difference
    size_t nans;    // of the second
};

static void compare_results(const struct compare_case *one, const struct compare_argument *argument,
                            struct compare_difference *out)
{
    const void *x = argument->twin, *y = argument->opencl;
    const struct compare_type *type = argument->type;
    double most = -1;
    *out = (struct compare_difference){0};
    for (size_t i = 0; i < argument->count; i++) {
        const double a = type->get(x, i), b = type->get(y, i);
        const size_t at = i * type->size;
        const bool same = memcmp((const char *)x + at, (const char *)y + at, type->size) == 0 ||
                          (is_real(type) && a == b);
        const double difference = fabs(a - b), allowed = one->absolute + one->relative * fabs(b);
        // By how much of the tolerance the element differs: above 1 is too much.
        const double beyond = same                                ? 0
                              : allowed > 0 && !isnan(difference) ? difference / allowed
                                                                  : INFINITY;
        out->beyond += beyond > 1;
        out->nans += isnan(b) != 0;
        if (beyond > most) {
            most = beyond;
            out->worst = i;
            out->largest = difference;
        }
    }
}

static bool fails(FILE *to, const struct compare_case *one, const struct compare_argument *argument,
                  const char *sentence)
{
    fprintf(to, "FAIL  %s: '%s': %s\n", one->name, argument->parameter->name, sentence);
    return false;
}

bool compare_judge(FILE *to, const struct compare_case *one,
                   const struct compare_argument *argument)
{
    const void *x = argument->twin, *y = argument->opencl;
    struct compare_difference found;
    char sentence[256];
    compare_results(one, argument, &found);
    if (found.nans > 0)
        return fails(to, one, argument,
                     "the OpenCL C writes NaN, which nothing can be compared "
                     "with; give it other values");
    if (memcmp(y, argument->data, argument->size) == 0)
        return fails(to, one, argument,
                     "the OpenCL C leaves it as it was, so nothing is compared; "
                     "give it other values");
    if (found.beyond == 0 && found.largest <= 0) {
        fprintf(to, "ok    %s: '%s': %zu elements, equal\n", one->name, argument->parameter->name,
                argument->count);
        return true;
    }
    snprintf(sentence, sizeof sentence,
             "%zu of %zu elements differ too much; element %zu: %.9g, "
             "and %.9g by the OpenCL C",
             found.beyond, argument->count, found.worst, argument->type->get(x, found.worst),
             argument->type->get(y, found.worst));
    if (found.beyond > 0)
        return fails(to, one, argument, sentence);
    fprintf(to, "ok    %s: '%s': %zu elements; the worst, %zu, differs by %.3g\n", one->name,
            argument->parameter->name, argument->count, found.worst, found.largest);
    return true;
}

// Everything in the file is known: a key or a value that is not is an error, which names the nearest
// place.

// Where a sentence about the file goes, and what it begins with.
struct reader {
    char *message;
    const char *name;      // of the case
    const char *parameter; // NULL: it is about the case
};

static bool refuse(const struct reader *reader, const char *format, ...)
{
    char sentence[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (reader->parameter)
        snprintf(reader->message, COMPARE_MESSAGE, "case '%.80s', parameter '%.80s': %s",
                 reader->name, reader->parameter, sentence);
    else
        snprintf(reader->message, COMPARE_MESSAGE, "case '%.80s': %s", reader->name, sentence);
    return false;
}

// `known` ends with NULL.
static bool check_keys(const struct reader *reader, const json_t *object, const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        size_t i = 0;
        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (!known[i])
            return refuse(reader, "there is no key '%.40s'; docs/kernels.md lists them", key);
    }
    return true;
}

#define FILE_LIMIT ((size_t)64 << 20)

json_t *compare_read_file(const char *path, char *message)
{
    static const char *const keys[] = {"cases", NULL};
    const struct reader reader = {message, "", NULL};
    json_error_t error;
    void *text;
    size_t size;
    if (!weir_file_read(path, FILE_LIMIT, &text, &size, message, COMPARE_MESSAGE))
        return NULL;
    json_t *root = weir_json_load(text, size, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (!root) {
        snprintf(message, COMPARE_MESSAGE, "%.200s:%d: %s", path, error.line, error.text);
        return NULL;
    }
    json_t *cases = json_object_get(root, "cases");
    const bool fine = json_array_size(cases) > 0 && check_keys(&reader, root, keys);
    if (!fine)
        snprintf(message, COMPARE_MESSAGE,
                 "%.200s: it is an object with one key, 'cases', an array that is not empty", path);
    json_incref(fine ? cases : NULL);
    json_decref(root);
    return fine ? cases : NULL;
}

static bool read_extent(const struct reader *reader, const json_t *from, const char *key,
                        struct weir_extent *out)
{
    const json_t *list = json_object_get(from, key);
    uint32_t values[3] = {1, 1, 1};
    const size_t count = json_array_size(list);
    bool fine = count >= 1 && count <= 3;
    for (size_t i = 0; i < count && fine; i++) {
        const json_int_t value = json_integer_value(json_array_get(list, i));
        fine = value > 0 && value <= UINT32_MAX;
        values[i] = fine ? (uint32_t)value : 1;
    }
    *out = (struct weir_extent){values[0], values[1], values[2]};
    return fine || refuse(reader, "'%s' is an array of one to three numbers from 1 on", key);
}

static bool read_tolerance(const struct reader *reader, const json_t *from,
                           struct compare_case *one)
{
    static const char *const keys[] = {"absolute", "relative", NULL};
    const json_t *tolerance = json_object_get(from, "tolerance");
    if (!tolerance)
        return true;
    if (!json_is_object(tolerance))
        return refuse(reader, "'tolerance' is an object with 'absolute', 'relative' or both");
    one->absolute = json_number_value(json_object_get(tolerance, "absolute"));
    one->relative = json_number_value(json_object_get(tolerance, "relative"));
    if (one->absolute < 0 || one->relative < 0 || one->absolute + one->relative <= 0)
        return refuse(reader, "'tolerance' has numbers above 0; without it results are equal");
    return check_keys(reader, tolerance, keys);
}

// Values.

// What an argument begins with: one of these, as in the file.
struct filling {
    const json_t *values, *fill, *random, *from;
    double low, high;
    uint64_t state; // of random numbers
};

// A number between the two, the same in every run; a whole one for whole types.
static double next_random(struct filling *filling, const struct compare_type *type)
{
    const bool whole = !is_real(type);
    filling->state = filling->state * 6364136223846793005u + 1442695040888963407u;
    const double part = (double)(filling->state >> 11) * 0x1p-53;
    const double value = filling->low + part * (filling->high - filling->low + (whole ? 1 : 0));
    return whole ? fmin(floor(value), filling->high) : value;
}

// The JSON that element `index` comes from, and its number.
static const json_t *value_at(struct filling *filling, const struct compare_type *type,
                              size_t index, double *out)
{
    const json_t *json = filling->values   ? json_array_get(filling->values, index)
                         : filling->fill   ? filling->fill
                         : filling->random ? json_array_get(filling->random, 0)
                                           : filling->from;
    *out = filling->random ? next_random(filling, type)
                           : json_number_value(json) + (filling->from ? (double)index : 0);
    return json;
}

static bool fill(const struct reader *reader, struct compare_argument *argument,
                 struct filling *filling)
{
    const struct compare_type *type = argument->type;
    filling->state = 1; // a seed of the parameter's name
    for (const char *name = reader->parameter; *name; name++)
        filling->state = filling->state * 31 + (unsigned char)*name;
    filling->state *= 0x9e3779b97f4a7c15u;
    filling->low = json_number_value(json_array_get(filling->random, 0));
    filling->high = json_number_value(json_array_get(filling->random, 1));
    if (filling->random &&
        (json_array_size(filling->random) != 2 || !(filling->low < filling->high) ||
         !fits(type, filling->low) || !fits(type, filling->high)))
        return refuse(reader, "'random' is an array of the lowest and the highest %s",
                      argument->parameter->type_name);
    for (size_t i = 0; i < argument->count; i++) {
        double number;
        if (!json_is_number(value_at(filling, type, i, &number)))
            return refuse(reader, "its values are numbers");
        if (!fits(type, number))
            return refuse(reader, "%g is no %s", number, argument->parameter->type_name);
        type->set(argument->data, i, number);
    }
    return true;
}

// Arguments.

static bool find_type(const struct reader *reader, const json_t *from,
                      struct compare_argument *argument)
{
    const char *type = argument->parameter->type_name;
    const json_t *given = json_object_get(from, "type");
    if (given)
        type = json_is_string(given) ? json_string_value(given) : "";
    return compare_read_type(type, argument) ||
           refuse(reader,
                  "a %.60s is no number or vector of numbers; if it is made of those, say of "
                  "which with 'type', such as \"float\"",
                  argument->parameter->type_name);
}

static bool allocate(const struct reader *reader, struct compare_argument *argument)
{
    const size_t each = argument->type->size;
    if (argument->count == 0)
        return refuse(reader, "it has no elements, or too many");
    argument->size = argument->count * each;
    argument->data = calloc(3 * argument->count, each);
    if (!argument->data)
        return refuse(reader, "no memory for %zu elements", argument->count);
    argument->twin = (char *)argument->data + argument->size;
    argument->opencl = (char *)argument->twin + argument->size;
    return true;
}

static bool read_buffer(const struct reader *reader, const json_t *from,
                        struct compare_argument *argument)
{
    static const char *const keys[] = {"count", "type", "random", "fill", "from", "values", NULL};
    struct filling filling = {.values = json_object_get(from, "values"),
                              .fill = json_object_get(from, "fill"),
                              .random = json_object_get(from, "random"),
                              .from = json_object_get(from, "from")};
    const json_t *count = json_object_get(from, "count");
    if (!check_keys(reader, from, keys) || !find_type(reader, from, argument))
        return false;
    if ((filling.values != NULL) + (filling.fill != NULL) + (filling.from != NULL) +
                (filling.random != NULL) !=
            1 ||
        (count != NULL) == (filling.values != NULL))
        return refuse(reader, "a buffer has 'values', or a 'count' and one of 'random', 'fill' and "
                              "'from'");
    const json_int_t elements = json_integer_value(count);
    argument->count = filling.values                       ? json_array_size(filling.values)
                      : elements > 0 && elements < 1 << 30 ? (size_t)elements * argument->lanes
                                                           : 0;
    return allocate(reader, argument) && fill(reader, argument, &filling);
}

static bool read_value(const struct reader *reader, const json_t *from,
                       struct compare_argument *argument)
{
    static const char *const keys[] = {"value", "type", NULL};
    const json_t *value = json_object_get(from, "value");
    struct filling filling = {.fill = value};
    if (!value)
        return refuse(reader, "it is passed by value, so it has 'value'");
    if (!check_keys(reader, from, keys) || !find_type(reader, from, argument))
        return false;
    if (json_is_array(value))
        filling = (struct filling){.values = value};
    argument->count = json_is_array(value) ? json_array_size(value) : 1;
    if (!allocate(reader, argument))
        return false;
    if (argument->size != argument->parameter->size)
        return refuse(reader, "a %.60s has %u bytes, and the value %zu",
                      argument->parameter->type_name, (unsigned)argument->parameter->size,
                      argument->size);
    return fill(reader, argument, &filling);
}

static bool read_local(const struct reader *reader, const json_t *from,
                       struct compare_argument *argument)
{
    static const char *const keys[] = {"local", NULL};
    const json_int_t bytes = json_integer_value(json_object_get(from, "local"));
    argument->size = (size_t)bytes;
    if (bytes <= 0)
        return refuse(reader, "it is local memory, so it has 'local', its bytes");
    return check_keys(reader, from, keys);
}

static bool read_arguments(struct reader *reader, const json_t *from,
                           const struct weir_kernel_signature *kernel, struct compare_case *one)
{
    const json_t *list = json_object_get(from, "arguments");
    if (kernel->parameter_count > COMPARE_ARGUMENTS)
        return refuse(reader, "kernel '%.60s' has more than %d parameters", kernel->name,
                      COMPARE_ARGUMENTS);
    if (json_array_size(list) != kernel->parameter_count)
        return refuse(reader, "'arguments' has %zu, and kernel '%.60s' %u", json_array_size(list),
                      kernel->name, (unsigned)kernel->parameter_count);
    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        struct compare_argument *argument = &one->arguments[i];
        const json_t *value = json_array_get(list, i);
        argument->parameter = weir_signature_parameter(kernel, i);
        one->argument_count = i + 1;
        reader->parameter = argument->parameter->name;
        const weir_parameter_kind kind = argument->parameter->kind;
        if (!(kind == WEIR_PARAMETER_BUFFER  ? read_buffer(reader, value, argument)
              : kind == WEIR_PARAMETER_LOCAL ? read_local(reader, value, argument)
                                             : read_value(reader, value, argument)))
            return false;
    }
    reader->parameter = NULL;
    return true;
}

bool compare_read_case(const json_t *from, const struct weir_bundle *bundle,
                       struct compare_case *out_case, char *message)
{
    static const char *const keys[] = {"name",      "kernel",    "grid", "block",
                                       "arguments", "tolerance", NULL};
    const char *name = json_string_value(json_object_get(from, "name"));
    const struct weir_kernel_signature *kernel = NULL;
    struct reader reader = {message, name ? name : "?", NULL};
    *out_case = (struct compare_case){.name = reader.name};
    message[0] = '\0';
    if (!name)
        return refuse(&reader, "a case is an object with a 'name'");
    out_case->kernel = json_string_value(json_object_get(from, "kernel"));
    for (uint32_t i = 0; out_case->kernel && i < bundle->kernel_count && !kernel; i++)
        if (strcmp(weir_bundle_kernel(bundle, i)->name, out_case->kernel) == 0)
            kernel = weir_bundle_kernel(bundle, i);
    if (!kernel)
        return refuse(&reader, "'kernel' names none of %.100s", bundle->name);
    return check_keys(&reader, from, keys) && read_extent(&reader, from, "grid", &out_case->grid) &&
           read_extent(&reader, from, "block", &out_case->block) &&
           read_tolerance(&reader, from, out_case) &&
           read_arguments(&reader, from, kernel, out_case);
}

void compare_case_finish(struct compare_case *one)
{
    for (size_t i = 0; i < one->argument_count; i++)
        free(one->arguments[i].data);
    *one = (struct compare_case){0};
}

struct run {
    const struct compare_params *params;
    weir_device *device;
    weir_queue *queue;
    weir_program *twin;   // NULL where it cannot run
    weir_program *opencl; // in place of the twin's there, a second run
};

static bool fail_weir(void)
{
    fprintf(stderr, "%s\n", weir_last_error_text());
    return false;
}

static bool is_result(const struct compare_argument *argument)
{
    return argument->parameter->kind == WEIR_PARAMETER_BUFFER && argument->parameter->writable;
}

// Launching.

static weir_status make_buffer(const struct run *run, const struct compare_argument *from,
                               struct weir_argument *argument)
{
    const weir_status status =
        weir_buffer_create(run->device,
                           WEIR_PARAMS(weir_buffer, .label = from->parameter->name,
                                       .size = from->size),
                           &argument->buffer);
    argument->size = from->size;
    argument->access = from->parameter->writable ? WEIR_ACCESS_READ_WRITE : WEIR_ACCESS_READ;
    return status < 0 ? status
                      : weir_upload(run->queue, argument->buffer, 0, from->data, from->size);
}

static weir_status make_arguments(const struct run *run, const struct compare_case *one,
                                  struct weir_argument *arguments)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < one->argument_count && status == WEIR_OK; i++) {
        const struct compare_argument *from = &one->arguments[i];
        if (from->parameter->kind == WEIR_PARAMETER_LOCAL) {
            arguments[i] = weir_local(from->size);
        } else if (from->parameter->kind == WEIR_PARAMETER_VALUE) {
            arguments[i] = weir_value(from->data, from->size);
        } else {
            arguments[i].kind = WEIR_PARAMETER_BUFFER;
            status = make_buffer(run, from, &arguments[i]);
        }
    }
    return status;
}

// Each form begins with buffers of its own, so neither sees what the other has left.
static bool launch(const struct run *run, const struct compare_case *one, weir_program *program,
                   bool of_twin)
{
    struct weir_argument arguments[COMPARE_ARGUMENTS] = {{0}};
    weir_kernel *kernel = NULL;
    weir_status status = weir_kernel_create(program, one->kernel, &kernel);
    if (status == WEIR_OK)
        status = make_arguments(run, one, arguments);
    if (status == WEIR_OK)
        status = weir_queue_launch_array(run->queue, kernel, one->grid, one->block, arguments,
                                         one->argument_count);
    for (size_t i = 0; i < one->argument_count; i++) {
        const struct compare_argument *to = &one->arguments[i];
        if (status == WEIR_OK && is_result(to))
            status = weir_download(run->queue, of_twin ? to->twin : to->opencl, arguments[i].buffer,
                                   0, to->size);
        weir_buffer_destroy(&arguments[i].buffer);
    }
    weir_kernel_destroy(&kernel);
    if (status < 0)
        printf("FAIL  %s: %s\n", one->name, weir_last_error_text());
    return status == WEIR_OK;
}

static bool run_case(struct run *run, const json_t *from)
{
    char message[COMPARE_MESSAGE];
    struct compare_case one;
    size_t results = 0;
    bool fine = compare_read_case(from, run->params->opencl, &one, message);
    if (!fine)
        fprintf(stderr, "%s\n", message);
    weir_program *first = run->twin ? run->twin : run->opencl;
    const bool ran =
        fine && launch(run, &one, run->opencl, false) && launch(run, &one, first, true);
    for (size_t i = 0; i < one.argument_count && ran; i++) {
        results += is_result(&one.arguments[i]);
        if (is_result(&one.arguments[i]))
            fine = compare_judge(stdout, &one, &one.arguments[i]) && fine;
    }
    if (ran && results == 0)
        printf("FAIL  %s: kernel '%s' has no buffer that it may write\n", one.name, one.kernel);
    compare_case_finish(&one);
    return fine && results > 0;
}

// The machine.

static const char *twin_name(const struct weir_bundle *bundle)
{
    for (uint32_t i = 0; i < bundle->image_count; i++)
        if (weir_image_is(weir_bundle_image(bundle, i), WEIR_IMAGE_TWIN))
            return weir_bundle_image(bundle, i)->data;
    return "the other form";
}

static bool open_device(struct run *run)
{
    const struct compare_params *params = run->params;
    if (weir_device_open(params->runtime, NULL, &run->device) < 0)
        return fail_weir();
    const char *backend = weir_runtime_backend(weir_device_runtime(run->device));
    const bool cuda = strcmp(backend, "cuda") == 0;
    if (weir_queue_create(run->device, NULL, &run->queue) < 0 ||
        weir_program_load(run->device, params->opencl, &run->opencl) < 0 ||
        (cuda && weir_program_load(run->device, params->twin, &run->twin) < 0))
        return fail_weir();
    if (cuda)
        printf("%s against the OpenCL C of %s\n", twin_name(params->twin), params->opencl->name);
    else
        printf("skipped: %s needs a CUDA device, and the backend is %s; the OpenCL C runs twice\n",
               twin_name(params->twin), backend);
    return true;
}

int compare_kernels(const struct compare_params *params)
{
    struct run run = {.params = params};
    char message[COMPARE_MESSAGE];
    json_t *cases = compare_read_file(params->cases, message);
    if (!cases)
        fprintf(stderr, "%s\n", message);
    bool fine = cases && open_device(&run);
    const bool opened = fine;
    for (size_t i = 0; i < json_array_size(cases) && opened; i++)
        fine = run_case(&run, json_array_get(cases, i)) && fine;
    weir_program_destroy(&run.twin);
    weir_program_destroy(&run.opencl);
    weir_queue_destroy(&run.queue);
    fine = (!run.device || weir_device_close(&run.device) == WEIR_OK || fail_weir()) && fine;
    json_decref(cases);
    return fine && fflush(stdout) == 0 ? 0 : 1;
}
