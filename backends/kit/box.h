// Copies and fills as boxes of bytes.
#ifndef WEIR_BACKENDS_KIT_BOX_H
#define WEIR_BACKENDS_KIT_BOX_H

#include <weir/module/module.h>

// In as few dimensions as possible: what has no gaps between its slices is one slice, and what has none between
// its rows is one row, whose pitches are its width.
struct weir_kit_box {
    struct weir_volume dst;
    struct weir_volume src; // a copy's
    size_t width;           // in bytes
    size_t height;          // in rows
    size_t depth;           // in slices
    const char *pattern;    // a fill's
    size_t pattern_size;
};

// Describes a COPY, COPY_2D, COPY_3D, FILL or FILL_2D.
void weir_kit_box_describe(struct weir_kit_box *box, const struct weir_operation *operation);
// One of its slices, and one of the rows of a slice.
struct weir_kit_box weir_kit_box_slice(const struct weir_kit_box *box, size_t index);
struct weir_kit_box weir_kit_box_row(const struct weir_kit_box *box, size_t index);

static inline bool weir_kit_box_is_row(const struct weir_kit_box *box)
{
    return box->height == 1 && box->depth == 1;
}

#endif
