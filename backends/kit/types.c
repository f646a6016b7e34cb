// What the types of parameters tell by their names, as the compilers of OpenCL C report them and as people write
// them in CUDA C++.
#include <stdlib.h>
#include <string.h>
#include <weir/kit/signature.h>

#define MOST_COMPONENTS 16

struct scalar_type {
    const char *name;
    weir_scalar scalar;
    uint32_t size;
};

static const struct scalar_type types[] = {
    {"char", WEIR_SCALAR_I8, 1},       {"uchar", WEIR_SCALAR_U8, 1},
    {"short", WEIR_SCALAR_I16, 2},     {"ushort", WEIR_SCALAR_U16, 2},
    {"int", WEIR_SCALAR_I32, 4},       {"uint", WEIR_SCALAR_U32, 4},
    {"long", WEIR_SCALAR_I64, 8},      {"ulong", WEIR_SCALAR_U64, 8},
    {"float", WEIR_SCALAR_F32, 4},     {"double", WEIR_SCALAR_F64, 8},
    {"half", WEIR_SCALAR_F16, 2},      {"longlong", WEIR_SCALAR_I64, 8}, // from here on CUDA's
    {"ulonglong", WEIR_SCALAR_U64, 8}, {"__half", WEIR_SCALAR_F16, 2},
};

// What there are no vectors of.
static const struct scalar_type other_types[] = {
    {"bool", WEIR_SCALAR_BOOL, 1},          {"signed char", WEIR_SCALAR_I8, 1},
    {"int8_t", WEIR_SCALAR_I8, 1},          {"unsigned char", WEIR_SCALAR_U8, 1},
    {"uint8_t", WEIR_SCALAR_U8, 1},         {"int16_t", WEIR_SCALAR_I16, 2},
    {"unsigned short", WEIR_SCALAR_U16, 2}, {"uint16_t", WEIR_SCALAR_U16, 2},
    {"int32_t", WEIR_SCALAR_I32, 4},        {"unsigned int", WEIR_SCALAR_U32, 4},
    {"unsigned", WEIR_SCALAR_U32, 4},       {"uint32_t", WEIR_SCALAR_U32, 4},
    {"long long", WEIR_SCALAR_I64, 8},      {"int64_t", WEIR_SCALAR_I64, 8},
    {"unsigned long", WEIR_SCALAR_U64, 8},  {"unsigned long long", WEIR_SCALAR_U64, 8},
    {"uint64_t", WEIR_SCALAR_U64, 8},       {"size_t", WEIR_SCALAR_U64, 8},
    {"void", WEIR_SCALAR_OTHER, 1},
};

static const struct scalar_type *find(const struct scalar_type *table, size_t count,
                                      const char *name, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(table[i].name) == length && memcmp(table[i].name, name, length) == 0)
            return &table[i];
    return NULL;
}

// Splits "float4"; the name of a structure may begin or end like one.
static const struct scalar_type *find_vector(const char *name, size_t length, uint32_t *out_width)
{
    size_t letters = length;
    while (letters > 0 && name[letters - 1] >= '0' && name[letters - 1] <= '9')
        letters--;
    const unsigned long width = strtoul(name + letters, NULL, 10);
    const bool is_width = letters < length && name[letters] != '0' && width > 1 &&
                          width <= MOST_COMPONENTS && (width <= 4 || (width & (width - 1)) == 0);
    *out_width = (uint32_t)width;
    return is_width ? find(types, sizeof types / sizeof *types, name, letters) : NULL;
}

static const struct scalar_type *find_type(const char *name, size_t length, bool cuda,
                                           uint32_t *out_width)
{
    *out_width = 1;
    const struct scalar_type *type = find(types, sizeof types / sizeof *types, name, length);
    if (!type)
        type = find(other_types, sizeof other_types / sizeof *other_types, name, length);
    if (!type)
        type = find_vector(name, length, out_width);
    // CUDA has no larger vectors; a type of such a name is the program's own.
    if (type && cuda && *out_width > (type->scalar == WEIR_SCALAR_F16 ? 2u : 4u))
        return NULL;
    return type;
}

void weir_kit_parameter_describe(struct weir_parameter *parameter, bool cuda)
{
    const char *name = parameter->type_name;
    if (strncmp(name, "const ", 6) == 0)
        name += 6;
    size_t length = strlen(name);
    while (length > 0 && (name[length - 1] == '*' || name[length - 1] == ' '))
        length--;
    uint32_t width;
    const struct scalar_type *type = find_type(name, length, cuda, &width);
    if (!type)
        return;
    const uint32_t bytes = type->size * (width == 3 && !cuda ? 4 : width);
    parameter->element = type->scalar;
    parameter->width = type->scalar == WEIR_SCALAR_OTHER ? 0 : width;
    if (parameter->kind == WEIR_PARAMETER_VALUE) {
        parameter->scalar = width == 1 ? type->scalar : WEIR_SCALAR_OTHER;
        parameter->size = bytes;
    } else {
        // CUDA aligns a vector to 16 bytes at most, and one of three as its element.
        parameter->alignment = cuda && width == 3 ? type->size : cuda && bytes > 16 ? 16 : bytes;
    }
}
