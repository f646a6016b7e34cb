// Which functions of kernels/library a module calls, and the files that have them.
#include <stdlib.h>
#include <string.h>

#include "kernels/compiler/compiler.h"
#include "kernels/library/atomics.h"
#include "kernels/library/atomics64.h"
#include "kernels/library/conversions.h"
#include "kernels/library/corrections.h"
#include "kernels/library/dot_products.h"
#include "kernels/library/generic.h"
#include "kernels/library/grid_barrier.h"
#include "kernels/library/half.h"
#include "kernels/library/half_conversions.h"
#include "kernels/library/math.h"
#include "kernels/library/native.h"
#include "kernels/library/sub_groups.h"
#include "kernels/library/work_groups.h"
#include "kernels/library/work_items.h"

// In the order of the subjects in kc_library(), in which they are linked: work-groups call sub-groups,
// and conversions of halves those of floats.
enum {
    NONE,
    ATOMICS = 1 << 0,
    ATOMICS64 = 1 << 1,
    CORRECTIONS = 1 << 2,
    DOT_PRODUCTS = 1 << 3,
    GENERIC = 1 << 4,
    GRID_BARRIER = 1 << 5,
    HALF = 1 << 6,
    HALF_CONVERSIONS = 1 << 7,
    CONVERSIONS = 1 << 8,
    MATH = 1 << 9,
    NATIVE = 1 << 10,
    WORK_GROUPS = 1 << 11,
    SUB_GROUPS = 1 << 12,
    WORK_ITEMS = 1 << 13
};

// A function's mangled name has its types: "Dh" is half, "Vl" and "Vm" are volatile long and ulong.
// The first row whose parts are both in the name decides.
static const struct {
    const char *part;
    const char *type;
    unsigned subject;
} functions[] = {
    {"convert_half", "", HALF_CONVERSIONS},
    {"convert_", "Dh", HALF_CONVERSIONS | CONVERSIONS},
    {"convert_", "_sat", CONVERSIONS},
    {KC_GRID_BARRIER, "", GRID_BARRIER},
    {"sub_group", "", SUB_GROUPS},
    {"dot_4x8packed_", "", DOT_PRODUCTS},
    {"dot_acc_sat", "", DOT_PRODUCTS},
    {"_Z3dotDv4_h", "", DOT_PRODUCTS},
    {"_Z3dotDv4_c", "", DOT_PRODUCTS},
    {"_Z5isinfDv", "_f", CORRECTIONS},
    {"_Z5isinfDv", "_d", CORRECTIONS},
    {"_Z7mad_satl", "", CORRECTIONS},
    {"_Z7mad_satDv", "_l", CORRECTIONS},
    {"native_exp", "", NATIVE},
    {"native_log", "", NATIVE},
    {"native_powr", "", NATIVE},
    {"atomic_", "VU7_Atomic", ATOMICS},
    {"atomic_work_item_fence", "", ATOMICS},
    {"__to_", "", GENERIC},
    {"get_fence", "", GENERIC},
    {"work_group_barrier", "", WORK_ITEMS},
    {"work_group_", "", WORK_GROUPS | SUB_GROUPS},
    {"atom_", "Vl", ATOMICS64},
    {"atom_", "Vm", ATOMICS64},
    {"get_global_id", "", WORK_ITEMS},
    {"get_global_size", "", WORK_ITEMS},
    {"get_global_offset", "", WORK_ITEMS},
    {"get_work_dim", "", WORK_ITEMS},
    {"get_enqueued_local_size", "", WORK_ITEMS},
    {"get_global_linear_id", "", WORK_ITEMS},
    {"get_local_linear_id", "", WORK_ITEMS},
    {"vstore", "_rtp", HALF_CONVERSIONS},
    {"vstore", "_rtn", HALF_CONVERSIONS},
    {"load", "_half", NONE}, // libclc has these
    {"store", "_half", NONE},
    {"", "Dh", HALF | MATH},
    {"_Z3nant", "", HALF},
    {"_Z3nanDv", "_t", HALF},
};

// Those of MATH, as words.
static const char math[] =
    "exp exp2 exp10 expm1 log log2 log10 log1p cbrt erf erfc tgamma lgamma sin cos tan sinpi "
    "cospi asin acos atan sinh cosh tanh asinh acosh atanh sincos asinpi acospi atanpi tanpi "
    "atan2 atan2pi fmod hypot pow powr remainder ldexp rootn modf fract lgamma_r remquo sign";

// Whether the name is "_Z", the length of one of these, and that.
static bool is_math(const char *name)
{
    const char *mangled = strstr(name, "_Z");
    char *plain = NULL;
    const size_t length = mangled ? strtoul(mangled + 2, &plain, 10) : 0;
    for (const char *at = length > 0 ? math : ""; *at; at += strspn(at, " ")) {
        const size_t word = strcspn(at, " ");
        if (word == length && strncmp(plain, at, length) == 0)
            return true;
        at += word;
    }
    return false;
}

static unsigned subject_of(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strstr(name, functions[i].part) && strstr(name, functions[i].type))
            return functions[i].subject;
    return is_math(name) ? MATH : NONE;
}

unsigned kc_library_needed(const char *ir)
{
    unsigned needed = NONE;
    for (const char *line = ir; (line = strstr(line, "\ndeclare "));) {
        char name[256];
        const char *start = strchr(line, '@');
        line += strlen("\ndeclare ");
        const size_t length = start ? strcspn(start, "(") : 0;
        if (length == 0 || length >= sizeof name)
            continue;
        memcpy(name, start, length);
        name[length] = '\0';
        needed |= subject_of(name);
    }
    return needed;
}

size_t kc_library(unsigned needed, struct kc_subject *out_subjects)
{
    const struct kc_subject all[KC_SUBJECTS] = {
        {"atomics", weir_library_atomics, true, false},
        {"atomics64", weir_library_atomics64, false, true},
        {"corrections", weir_library_corrections, false, true},
        {"dot_products", weir_library_dot_products, false, true},
        {"generic", weir_library_generic, true, true},
        {"grid_barrier", weir_library_grid_barrier, false, true},
        {"half", weir_library_half, false, false},
        {"half_conversions", weir_library_half_conversions, false, false},
        {"conversions", weir_library_conversions, false, true},
        {"math", weir_library_math, false, true},
        {"native", weir_library_native, false, true},
        {"work_groups", weir_library_work_groups, false, true},
        {"sub_groups", weir_library_sub_groups, false, true},
        {"work_items", weir_library_work_items, false, true},
    };
    size_t count = 0;
    for (size_t i = 0; i < KC_SUBJECTS; i++)
        if (needed >> i & 1)
            out_subjects[count++] = all[i];
    return count;
}
