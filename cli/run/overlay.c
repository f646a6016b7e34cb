#include "cli/run/overlay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/run/canvas.h"
#include "io/image.h"

enum {
    LONGER_MINIMUM = 1200,
    LONGER_MAXIMUM = 2400,
    SIDE_MINIMUM = 8,
    SIDE_MAXIMUM = 20
};

static const struct color white = {1, 1, 1};
static const struct color black = {0, 0, 0};

static uint32_t scaled(uint32_t size, uint32_t longer, uint32_t target)
{
    const double value = (double)size * target / longer;
    return value < 1 ? 1 : (uint32_t)(value + 0.5);
}

static void choose_size(uint32_t width, uint32_t height, struct canvas *canvas)
{
    const uint32_t longer = width > height ? width : height;
    const uint32_t target = longer < LONGER_MINIMUM   ? LONGER_MINIMUM
                            : longer > LONGER_MAXIMUM ? LONGER_MAXIMUM
                                                      : longer;
    canvas->width = scaled(width, longer, target);
    canvas->height = scaled(height, longer, target);
}

// The relevance map.

// Interpolates four neighbours a, b, c, d at `t`, counted from b to c (Catmull and Rom).
static float cubic(float a, float b, float c, float d, float t)
{
    return b + 0.5f * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
}

static float patch(const float *map, long grid, long row, long column)
{
    row = row < 0 ? 0 : row >= grid ? grid - 1 : row;
    column = column < 0 ? 0 : column >= grid ? grid - 1 : column;
    return map[row * grid + column];
}

// The map at a point in units of patches; a patch's value is that of its centre.
static float relevance_at(const float *map, uint32_t grid, float x, float y)
{
    const float left = floorf(x - 0.5f), top = floorf(y - 0.5f);
    float rows[4];
    for (int i = 0; i < 4; i++) {
        const long row = (long)top - 1 + i, column = (long)left - 1;
        rows[i] = cubic(patch(map, grid, row, column), patch(map, grid, row, column + 1),
                        patch(map, grid, row, column + 2), patch(map, grid, row, column + 3),
                        x - 0.5f - left);
    }
    const float value = cubic(rows[0], rows[1], rows[2], rows[3], y - 0.5f - top);
    return value < 0 ? 0 : value > 1 ? 1 : value;
}

// The photo keeps its lightness and little of its colour; the map adds its own.
static void tint(unsigned char *rgb, float relevance)
{
    const struct color map = canvas_magma(0.06f + 0.94f * relevance);
    const float parts[3] = {map.r, map.g, map.b};
    const float gray =
        (0.299f * (float)rgb[0] + 0.587f * (float)rgb[1] + 0.114f * (float)rgb[2]) / 255.0f;
    const float weight = 0.42f + 0.36f * relevance;
    for (int i = 0; i < 3; i++) {
        const float photo = 0.55f * (0.6f * gray + 0.4f * (float)rgb[i] / 255.0f);
        const float lit = parts[i] * (0.62f + 0.5f * gray);
        const float mixed = photo + (lit - photo) * weight;
        rgb[i] = (unsigned char)(255.0f * (mixed < 1 ? mixed : 1) + 0.5f);
    }
}

// `bare` patches show the photo unchanged.
static void draw_map(struct canvas *canvas, const float *map, const bool *bare, uint32_t grid)
{
    for (uint32_t y = 0; y < canvas->height; y++)
        for (uint32_t x = 0; x < canvas->width; x++) {
            const float column = ((float)x + 0.5f) * (float)grid / (float)canvas->width;
            const float row = ((float)y + 0.5f) * (float)grid / (float)canvas->height;
            if (!bare[(uint32_t)row * grid + (uint32_t)column])
                tint(canvas->rgb + 3 * ((size_t)y * canvas->width + x),
                     relevance_at(map, grid, column, row));
        }
}

// The patches.

// From the coarsest side to the finest: blue to the brightest cyan.
static struct color side_color(float finest)
{
    const struct color color = {0.25f + 0.30f * finest, 0.55f + 0.45f * finest, 1.0f};
    return color;
}

static float finest_of(int32_t side)
{
    const float value = (float)(side - SIDE_MINIMUM) / (SIDE_MAXIMUM - SIDE_MINIMUM);
    return value < 0 ? 0 : value > 1 ? 1 : value;
}

// Lines grow with the picture, up to a fifth of a patch.
static float line_weight(const struct canvas *canvas, uint32_t grid, float finest)
{
    const float shorter =
        (float)(canvas->width < canvas->height ? canvas->width : canvas->height) / (float)grid;
    const float longer = (float)(canvas->width > canvas->height ? canvas->width : canvas->height);
    const float wanted = longer / LONGER_MINIMUM * (1.2f + 2.0f * finest);
    return wanted < shorter / 5 ? wanted : shorter / 5;
}

static void draw_marker(struct canvas *canvas, struct box box, float weight, float finest)
{
    const struct box casing = {box.left + weight, box.top + weight, box.right - weight,
                               box.bottom - weight};
    const float radius = 2 * weight;
    canvas_frame(canvas, casing, radius / 2, weight / 2 + 0.5f, black, 0.55f);
    canvas_frame(canvas, box, radius, weight, side_color(finest), 0.75f + 0.25f * finest);
}

static void draw_patches(struct canvas *canvas, const struct weir_arr_coc_output *output,
                         uint32_t grid)
{
    const float width = (float)canvas->width / (float)grid;
    const float height = (float)canvas->height / (float)grid;
    for (uint32_t i = 0; i < output->patch_count; i++) {
        const uint32_t index = (uint32_t)output->patches[(size_t)3 * i];
        const uint32_t column = index % grid, row = index / grid;
        const float finest = finest_of(output->patches[(size_t)3 * i + 1]);
        const struct box box = {
            .left = (float)column * width + 0.5f,
            .top = (float)row * height + 0.5f,
            .right = (float)(column + 1) * width - 0.5f,
            .bottom = (float)(row + 1) * height - 0.5f,
        };
        draw_marker(canvas, box, line_weight(canvas, grid, finest), finest);
    }
}

// The legend is in the corner with the fewest chosen patches.

struct legend {
    struct box box;
    float unit; // the height of its tall letters
};

static unsigned patches_under(const struct canvas *canvas, struct box box,
                              const struct weir_arr_coc_output *output, uint32_t grid)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < output->patch_count; i++) {
        const uint32_t index = (uint32_t)output->patches[(size_t)3 * i];
        const uint32_t column = index % grid, row = index / grid;
        const float x = ((float)column + 0.5f) * (float)canvas->width / (float)grid;
        const float y = ((float)row + 0.5f) * (float)canvas->height / (float)grid;
        count += x > box.left && x < box.right && y > box.top && y < box.bottom;
    }
    return count;
}

// False where the picture is too narrow for one.
static bool place_legend(const struct canvas *canvas, const struct weir_arr_coc_output *output,
                         uint32_t grid, struct legend *legend)
{
    const uint32_t longer = canvas->width > canvas->height ? canvas->width : canvas->height;
    const float unit = (float)longer / 100;
    const float width = 34 * unit, height = 9.4f * unit, margin = 1.6f * unit;
    const float right = (float)canvas->width - margin - width;
    const float bottom = (float)canvas->height - margin - height;
    const float corners[4][2] = {{margin, bottom},
                                 {right, bottom},
                                 {margin, margin},
                                 {right, margin}};
    unsigned fewest = UINT32_MAX;

    legend->unit = unit;
    if (right < margin || bottom < margin)
        return false;
    for (int i = 0; i < 4; i++) {
        const struct box box = {corners[i][0], corners[i][1], corners[i][0] + width,
                                corners[i][1] + height};
        const unsigned count = patches_under(canvas, box, output, grid);
        if (count >= fewest)
            continue;
        fewest = count;
        legend->box = box;
    }
    return true;
}

static void draw_scale(struct canvas *canvas, const struct legend *legend)
{
    const float unit = legend->unit;
    const float top = legend->box.top + 1.7f * unit;
    const float left = legend->box.left + 13.0f * unit, right = legend->box.right - 3.6f * unit;
    canvas_text(canvas, legend->box.left + 1.6f * unit, top + 1.2f * unit, 1.25f * unit,
                "relevance", white);
    canvas_text(canvas, left - 1.7f * unit, top + 1.2f * unit, 1.25f * unit, "0", white);
    canvas_text(canvas, right + 0.8f * unit, top + 1.2f * unit, 1.25f * unit, "1", white);
    for (int i = 0; left + (float)i < right; i++) {
        const float x = left + (float)i;
        const struct box strip = {x, top, x + 1 < right ? x + 1 : right, top + 1.2f * unit};
        canvas_fill_box(canvas, strip, 0, canvas_magma((x - left) / (right - left)), 1);
    }
    const struct box around = {left - 1, top - 1, right + 1, top + 1.2f * unit + 1};
    canvas_frame(canvas, around, 1, 1, white, 0.5f);
}

static void draw_sides(struct canvas *canvas, const struct legend *legend, uint32_t grid)
{
    static const int32_t sides[] = {8, 14, 20};
    const float unit = legend->unit;
    const float base = legend->box.top + 5.6f * unit;
    float x = legend->box.left + 13.0f * unit;
    canvas_text(canvas, legend->box.left + 1.6f * unit, base, 1.25f * unit, "cells a side", white);
    for (int i = 0; i < 3; i++) {
        char text[16];
        const float finest = finest_of(sides[i]);
        const struct box box = {x, base - 1.6f * unit, x + 2.6f * unit, base + 0.4f * unit};
        draw_marker(canvas, box, line_weight(canvas, grid, finest), finest);
        snprintf(text, sizeof text, "%d", (int)sides[i]);
        canvas_text(canvas, x + 3.2f * unit, base, 1.25f * unit, text, white);
        x += 6.6f * unit;
    }
}

static void draw_legend(struct canvas *canvas, const struct weir_arr_coc_output *output,
                        uint32_t grid)
{
    struct legend legend;
    char text[96];
    if (!place_legend(canvas, output, grid, &legend))
        return;
    const float unit = legend.unit;
    canvas_fill_box(canvas, legend.box, unit, black, 0.72f);
    canvas_frame(canvas, legend.box, unit, 1, white, 0.25f);
    draw_scale(canvas, &legend);
    draw_sides(canvas, &legend, grid);
    snprintf(text, sizeof text, "%u patches, %u tokens", (unsigned)output->patch_count,
             (unsigned)output->token_count);
    canvas_text(canvas, legend.box.left + 1.6f * unit, legend.box.top + 8.2f * unit, 1.25f * unit,
                text, white);
}

static void draw(struct canvas *canvas, const struct weir_arr_coc_output *output, bool *bare,
                 uint32_t grid)
{
    for (uint32_t i = 0; i < output->patch_count; i++)
        bare[output->patches[(size_t)3 * i]] = true;
    draw_map(canvas, output->relevance, bare, grid);
    draw_patches(canvas, output, grid);
    draw_legend(canvas, output, grid);
}

bool cli_overlay_draw(const unsigned char *photo, const struct weir_arr_coc_output *output,
                      uint32_t grid, struct canvas *out_canvas)
{
    choose_size(output->width, output->height, out_canvas);
    out_canvas->rgb = malloc((size_t)3 * out_canvas->width * out_canvas->height);
    bool *bare = calloc((size_t)grid * grid, sizeof *bare);
    const bool fine =
        out_canvas->rgb && bare && canvas_resize(photo, output->width, output->height, out_canvas);
    if (fine)
        draw(out_canvas, output, bare, grid);
    else
        free(out_canvas->rgb);
    free(bare);
    return fine;
}

bool cli_overlay_write(const char *path, const unsigned char *photo,
                       const struct weir_arr_coc_output *output, uint32_t grid,
                       struct weir_io_error *error)
{
    struct canvas canvas;
    if (!cli_overlay_draw(photo, output, grid, &canvas))
        return weir_io_fail(error, path, "no memory to draw it");
    const bool fine = weir_io_png_write_rgb8(path, canvas.width, canvas.height, canvas.rgb, error);
    free(canvas.rgb);
    return fine;
}
