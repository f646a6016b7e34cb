// Copies and fills of rows and of slices; see operation.h. Written so that nothing wraps.
#include "core/queue/operation_parts.h"

#include <stdint.h>

#include "core/support/error.h"

// Bytes from the first to the last of a plane's rows; false if that wraps.
static bool plane_extent(const struct weir_plane *plane, size_t width, size_t height,
                         size_t *out_size)
{
    *out_size = 0;
    if (width == 0 || height == 0)
        return true;
    if (height > 1 && plane->pitch > (SIZE_MAX - width) / (height - 1))
        return false;
    *out_size = (height - 1) * plane->pitch + width;
    return true;
}

static weir_status check_pitch(const struct weir__caller *caller, const struct weir__role *role,
                               size_t pitch, size_t width)
{
    if (pitch >= width)
        return WEIR_OK;
    return weir__fail_at(caller->file, caller->line, caller->label, WEIR_ERROR_INVALID,
                         "both count bytes; a pitch leads from a row to the next",
                         "%s: the pitch of %s, %zu, is below the width, %zu", role->call,
                         role->name, pitch, width);
}

static weir_status check_plane(const struct weir__caller *caller, const struct weir__role *role,
                               const struct weir_plane *plane, size_t width, size_t height,
                               const weir_buffer *other)
{
    size_t size;
    weir_status status = check_pitch(caller, role, plane->pitch, width);
    if (status < 0)
        return status;
    if (!plane_extent(plane, width, height, &size))
        size = SIZE_MAX;
    return weir__operation_check_side(caller, role, plane->buffer, plane->offset, size, other);
}

// Rows interleave freely, so two planes of one buffer are refused if their whole extents
// intersect, unless they share a pitch and no byte is in both.
static bool planes_overlap(const struct weir_plane *dst, const struct weir_plane *src, size_t width,
                           size_t height)
{
    size_t dst_size;
    size_t src_size;
    if (dst->buffer != src->buffer || !plane_extent(dst, width, height, &dst_size) ||
        !plane_extent(src, width, height, &src_size))
        return false;
    size_t low = dst->offset < src->offset ? dst->offset : src->offset;
    size_t high = dst->offset < src->offset ? src->offset : dst->offset;
    size_t low_size = dst->offset < src->offset ? dst_size : src_size;
    if (high - low >= low_size)
        return false;
    if (dst->pitch != src->pitch)
        return true;
    size_t shift = (high - low) % dst->pitch;
    return shift < width || dst->pitch - shift < width;
}

weir_status weir__operation_copy_2d(const struct weir__caller *caller, const struct weir_plane *dst,
                                    const struct weir_plane *src, size_t width, size_t height,
                                    struct weir_operation *out_operation)
{
    static const struct weir__role to = {"copy_2d", "dst"}, from = {"copy_2d", "src"};
    weir_status status = check_plane(caller, &to, dst, width, height, src->buffer);
    if (status < 0)
        return status;
    status = check_plane(caller, &from, src, width, height, dst->buffer);
    if (status < 0)
        return status;
    bool empty = width == 0 || height == 0;
    if (!empty && planes_overlap(dst, src, width, height))
        return weir__fail_at(caller->file, caller->line, dst->buffer->member.object.label,
                             WEIR_ERROR_INVALID, "copy through a second buffer",
                             "copy_2d within one buffer: source and destination overlap");

    weir__operation_begin(out_operation, WEIR_OPERATION_COPY_2D, empty ? WEIR_OPERATION_EMPTY : 0,
                          caller->file, caller->line);
    out_operation->u.copy_2d.dst = *dst;
    out_operation->u.copy_2d.src = *src;
    out_operation->u.copy_2d.width = width;
    out_operation->u.copy_2d.height = height;
    return WEIR_OK;
}

static struct weir_plane slice_of(const struct weir_volume *volume)
{
    return (struct weir_plane){volume->buffer, volume->offset, volume->pitch};
}

// The bytes from the first to the last that a volume touches. False: more than SIZE_MAX.
static bool volume_extent(const struct weir_volume *volume, size_t width, size_t height,
                          size_t depth, size_t *out_size)
{
    const struct weir_plane slice = slice_of(volume);
    if (depth == 0) {
        *out_size = 0;
        return true;
    }
    if (!plane_extent(&slice, width, height, out_size))
        return false;
    if (*out_size == 0 || depth == 1)
        return true;
    if (volume->slice_pitch > (SIZE_MAX - *out_size) / (depth - 1))
        return false;
    *out_size += (depth - 1) * volume->slice_pitch;
    return true;
}

static weir_status check_volume(const struct weir__caller *caller, const struct weir__role *role,
                                const struct weir_volume *volume, size_t width, size_t height,
                                size_t depth, const weir_buffer *other)
{
    size_t size;
    weir_status status = check_pitch(caller, role, volume->pitch, width);
    if (status < 0)
        return status;
    if (depth > 1 && volume_extent(volume, width, height, 1, &size) && volume->slice_pitch < size)
        return weir__fail_at(caller->file, caller->line, caller->label, WEIR_ERROR_INVALID,
                             "a slice pitch counts bytes, and leads from a slice to the next",
                             "copy_3d: the slice pitch of %s, %zu, is below the %zu bytes that the "
                             "rows of a slice take",
                             role->name, volume->slice_pitch, size);
    if (!volume_extent(volume, width, height, depth, &size))
        size = SIZE_MAX;
    return weir__operation_check_side(caller, role, volume->buffer, volume->offset, size, other);
}

// Whether a multiple of `pitch` is less than `width` away from `shift`, for one of the two
// multiples next to it, which is then `*out_rows`.
static bool meets(size_t shift, size_t pitch, size_t width, bool upper, size_t *out_rows)
{
    *out_rows = shift / pitch + upper;
    return upper ? pitch - shift % pitch < width : shift % pitch < width;
}

// Whether two boxes with the same pitches have a byte in common, if one begins `shift` bytes after
// the other and a slice pitch is `rows` pitches: row and byte are counted like digits, and a
// distance has the two representations that `meets` finds.
static bool boxes_meet(size_t shift, const struct weir_volume *box, size_t width, size_t height,
                       size_t depth)
{
    const size_t rows = box->slice_pitch / box->pitch;
    for (int upper_row = 0; upper_row < 2; upper_row++) {
        size_t row;
        if (!meets(shift, box->pitch, width, upper_row, &row))
            continue;
        for (int upper_slice = 0; upper_slice < 2; upper_slice++) {
            size_t slice;
            if (meets(row, rows, height, upper_slice, &slice) && slice < depth)
                return true;
        }
    }
    return false;
}

// Slices and rows interleave freely, so two volumes of one buffer are refused if their whole
// extents intersect, unless they share both pitches, a slice pitch is a multiple of the pitch and
// no byte is in both.
static bool volumes_overlap(const struct weir_volume *dst, const struct weir_volume *src,
                            size_t width, size_t height, size_t depth)
{
    if (depth == 1) {
        const struct weir_plane to = slice_of(dst);
        const struct weir_plane from = slice_of(src);
        return planes_overlap(&to, &from, width, height);
    }
    const struct weir_volume *low = dst->offset < src->offset ? dst : src;
    const struct weir_volume *high = low == dst ? src : dst;
    size_t low_size;
    if (dst->buffer != src->buffer || !volume_extent(low, width, height, depth, &low_size) ||
        high->offset - low->offset >= low_size)
        return false;
    if (dst->pitch != src->pitch || dst->slice_pitch != src->slice_pitch ||
        dst->slice_pitch < dst->pitch || dst->slice_pitch % dst->pitch)
        return true;
    return boxes_meet(high->offset - low->offset, low, width, height, depth);
}

weir_status weir__operation_copy_3d(const struct weir__caller *caller,
                                    const struct weir_volume *dst, const struct weir_volume *src,
                                    size_t width, size_t height, size_t depth,
                                    struct weir_operation *out_operation)
{
    static const struct weir__role to = {"copy_3d", "dst"}, from = {"copy_3d", "src"};
    weir_status status = check_volume(caller, &to, dst, width, height, depth, src->buffer);
    if (status < 0)
        return status;
    status = check_volume(caller, &from, src, width, height, depth, dst->buffer);
    if (status < 0)
        return status;
    const bool empty = width == 0 || height == 0 || depth == 0;
    if (!empty && volumes_overlap(dst, src, width, height, depth))
        return weir__fail_at(caller->file, caller->line, dst->buffer->member.object.label,
                             WEIR_ERROR_INVALID, "copy through a second buffer",
                             "copy_3d within one buffer: source and destination overlap");

    weir__operation_begin(out_operation, WEIR_OPERATION_COPY_3D, empty ? WEIR_OPERATION_EMPTY : 0,
                          caller->file, caller->line);
    out_operation->u.copy_3d.dst = *dst;
    out_operation->u.copy_3d.src = *src;
    out_operation->u.copy_3d.width = width;
    out_operation->u.copy_3d.height = height;
    out_operation->u.copy_3d.depth = depth;
    return WEIR_OK;
}
// The range of a plane that is filled. A single row has no pitch.
static weir_status check_filled(const struct weir__caller *caller, const struct weir_plane *dst,
                                size_t width, size_t height, size_t pattern_size)
{
    size_t size;
    static const struct weir__role to = {"fill_2d", "dst"};
    weir_status status = check_pitch(caller, &to, dst->pitch, width);
    if (status < 0)
        return status;
    if (!plane_extent(dst, width, height, &size))
        size = SIZE_MAX;
    status = weir__operation_check_buffer(caller, &to, dst->buffer, dst->offset, size);
    if (status < 0)
        return status;
    const size_t pitch = height > 1 ? dst->pitch : 0;
    if (dst->offset % pattern_size == 0 && pitch % pattern_size == 0 && width % pattern_size == 0)
        return WEIR_OK;
    return weir__fail_at(caller->file, caller->line, dst->buffer->member.object.label,
                         WEIR_ERROR_INVALID, "they count bytes, not patterns",
                         "fill_2d: offset %zu, pitch %zu and width %zu must be multiples of the "
                         "pattern's %zu bytes",
                         dst->offset, dst->pitch, width, pattern_size);
}

weir_status weir__operation_fill_2d(const struct weir__caller *caller, const struct weir_plane *dst,
                                    size_t width, size_t height, const void *pattern,
                                    size_t pattern_size, struct weir_operation *out_operation)
{
    weir_status status = weir__operation_check_pattern(caller, "fill_2d", pattern_size);
    if (status == WEIR_OK)
        status = check_filled(caller, dst, width, height, pattern_size);
    if (status < 0)
        return status;
    const bool empty = width == 0 || height == 0;

    weir__operation_begin(out_operation, WEIR_OPERATION_FILL_2D, empty ? WEIR_OPERATION_EMPTY : 0,
                          caller->file, caller->line);
    out_operation->u.fill_2d.dst = *dst;
    out_operation->u.fill_2d.width = width;
    out_operation->u.fill_2d.height = height;
    out_operation->u.fill_2d.pattern = pattern;
    out_operation->u.fill_2d.pattern_size = pattern_size;
    return WEIR_OK;
}
