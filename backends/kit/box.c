// How boxes become smaller ones, and their parts.
#include "backends/kit/box.h"

static bool is_packed(const struct weir_volume *volume, size_t height)
{
    return volume->slice_pitch == volume->pitch * height;
}

void weir_kit_box_reduce(struct weir_box *box)
{
    struct weir_volume *dst = &box->dst;
    struct weir_volume *src = &box->src;
    if (box->depth > 1 && box->height == 1) { // slices of one row are rows
        dst->pitch = dst->slice_pitch;
        src->pitch = src->slice_pitch;
    }
    if (box->height == 1 || (is_packed(dst, box->height) && is_packed(src, box->height))) {
        box->height *= box->depth;
        box->depth = 1;
    }
    if (box->depth > 1)
        return;
    if (dst->pitch == box->width && (box->pattern || src->pitch == box->width)) {
        box->width *= box->height;
        box->height = 1;
    }
    if (box->height == 1)
        dst->pitch = src->pitch = box->width;
    dst->slice_pitch = dst->pitch * box->height;
    src->slice_pitch = src->pitch * box->height;
}

struct weir_box weir_kit_box_part(const struct weir_box *box, size_t index)
{
    const bool is_slice = box->depth > 1;
    struct weir_box part = *box;
    part.dst.offset += index * (is_slice ? box->dst.slice_pitch : box->dst.pitch);
    part.src.offset += index * (is_slice ? box->src.slice_pitch : box->src.pitch);
    part.height = is_slice ? box->height : 1;
    part.depth = 1;
    weir_kit_box_reduce(&part);
    return part;
}
