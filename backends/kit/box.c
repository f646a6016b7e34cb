// How operations become boxes, and boxes their slices and rows.
#include "backends/kit/box.h"

static bool is_packed(const struct weir_volume *volume, size_t height)
{
    return volume->slice_pitch == volume->pitch * height;
}

static void reduce(struct weir_kit_box *box)
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

struct weir_kit_box weir_kit_box_row(const struct weir_kit_box *box, size_t index)
{
    struct weir_kit_box row = *box;
    row.dst.offset += index * box->dst.pitch;
    row.src.offset += index * box->src.pitch;
    row.height = row.depth = 1;
    reduce(&row);
    return row;
}

struct weir_kit_box weir_kit_box_slice(const struct weir_kit_box *box, size_t index)
{
    struct weir_kit_box slice = *box;
    slice.dst.offset += index * box->dst.slice_pitch;
    slice.src.offset += index * box->src.slice_pitch;
    slice.depth = 1;
    reduce(&slice);
    return slice;
}

static struct weir_volume volume_of(const struct weir_plane *plane)
{
    return (struct weir_volume){plane->buffer, plane->offset, plane->pitch, 0};
}

static struct weir_kit_box fill_of(const struct weir_operation *operation)
{
    if (operation->kind == WEIR_OPERATION_FILL)
        return (struct weir_kit_box){
            .dst = {operation->u.fill.dst, operation->u.fill.dst_offset, 0, 0},
            .width = operation->u.fill.size,
            .height = 1,
            .depth = 1,
            .pattern = operation->u.fill.pattern,
            .pattern_size = operation->u.fill.pattern_size,
        };
    return (struct weir_kit_box){
        .dst = volume_of(&operation->u.fill_2d.dst),
        .width = operation->u.fill_2d.width,
        .height = operation->u.fill_2d.height,
        .depth = 1,
        .pattern = operation->u.fill_2d.pattern,
        .pattern_size = operation->u.fill_2d.pattern_size,
    };
}

static struct weir_kit_box describe(const struct weir_operation *operation)
{
    switch (operation->kind) {
    case WEIR_OPERATION_COPY:
        return (struct weir_kit_box){
            .dst = {operation->u.copy.dst, operation->u.copy.dst_offset, 0, 0},
            .src = {operation->u.copy.src, operation->u.copy.src_offset, 0, 0},
            .width = operation->u.copy.size,
            .height = 1,
            .depth = 1,
        };
    case WEIR_OPERATION_COPY_2D:
        return (struct weir_kit_box){
            .dst = volume_of(&operation->u.copy_2d.dst),
            .src = volume_of(&operation->u.copy_2d.src),
            .width = operation->u.copy_2d.width,
            .height = operation->u.copy_2d.height,
            .depth = 1,
        };
    case WEIR_OPERATION_COPY_3D:
        return (struct weir_kit_box){
            .dst = operation->u.copy_3d.dst,
            .src = operation->u.copy_3d.src,
            .width = operation->u.copy_3d.width,
            .height = operation->u.copy_3d.height,
            .depth = operation->u.copy_3d.depth,
        };
    default:
        return fill_of(operation);
    }
}

void weir_kit_box_describe(struct weir_kit_box *box, const struct weir_operation *operation)
{
    *box = describe(operation);
    reduce(box);
}
