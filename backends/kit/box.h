// What copies and fills move, as boxes with few dimensions.
#ifndef WEIR_BACKENDS_KIT_BOX_H
#define WEIR_BACKENDS_KIT_BOX_H

#include <weir/module/module.h>

// Describes it in as few dimensions as possible: what has no gaps between its slices is one slice, and what has none
// between its rows is one row, whose pitches are its width.
void weir_kit_box_reduce(struct weir_box *box);
// One of its slices, or of one slice one of its rows.
struct weir_box weir_kit_box_part(const struct weir_box *box, size_t index);
static inline size_t weir_kit_box_parts(const struct weir_box *box)
{
    return box->depth > 1 ? box->depth : box->height;
}

static inline bool weir_kit_box_is_row(const struct weir_box *box)
{
    return box->height == 1 && box->depth == 1;
}

// Drivers count the rows from one slice to the next.
static inline bool weir_kit_box_has_whole_rows(const struct weir_box *box)
{
    return box->dst.slice_pitch % box->dst.pitch == 0 && box->src.slice_pitch % box->src.pitch == 0;
}

#endif
