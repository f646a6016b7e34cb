// What copies and fills move, as boxes with few dimensions.
#ifndef WEIR_BACKENDS_KIT_BOX_H
#define WEIR_BACKENDS_KIT_BOX_H

#include <weir/module/module.h>

// Describes it in as few dimensions as possible: what has no gaps between its slices is one slice, and what has none
// between its rows is one row, whose pitches are its width.
void weir_kit_box_reduce(struct weir_box *box);
// One of its slices, and one of the rows of a slice.
struct weir_box weir_kit_box_slice(const struct weir_box *box, size_t index);
struct weir_box weir_kit_box_row(const struct weir_box *box, size_t index);

static inline bool weir_kit_box_is_row(const struct weir_box *box)
{
    return box->height == 1 && box->depth == 1;
}

#endif
