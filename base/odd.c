// The vote of R. S. Boyer and J S. Moore: what more than half have in common is what is left when
// each is struck out together with one that differs.
#include "base/odd.h"

static uint32_t elect(const void *things, uint32_t count,
                      bool (*same)(const void *things, uint32_t a, uint32_t b))
{
    uint32_t elected = 0;
    uint32_t votes = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (votes == 0)
            elected = i;
        if (votes == 0 || same(things, elected, i))
            votes++;
        else
            votes--;
    }
    return elected;
}

uint32_t weir_odd_one(const void *things, uint32_t count,
                      bool (*same)(const void *things, uint32_t a, uint32_t b),
                      uint32_t *out_common)
{
    const uint32_t elected = elect(things, count, same);
    uint32_t odd = WEIR_ODD_NONE;
    uint32_t common = elected;
    uint32_t alike = 0;
    for (uint32_t i = count; i-- > 0;) {
        if (same(things, elected, i)) {
            alike++;
            common = i;
        } else if (same(things, i, i)) {
            odd = i;
        }
    }
    if (alike <= count / 2 || odd == WEIR_ODD_NONE)
        return WEIR_ODD_NONE;
    *out_common = common;
    return odd;
}
