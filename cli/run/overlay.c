// The overlay, and what it draws with.
#include "cli/run/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Shapes are drawn by their signed distance: the coverage of a pixel is the distance of
// its centre from the edge, clamped to 0 … 1, which smooths every edge.

// Drawing on an RGB picture: smooth shapes, and text in strokes. Coordinates are
// pixels from the top left corner; a pixel's centre lies at .5.

struct color {
    float parts[3]; // red, green, blue: 0 … 1
};

static const struct color white = {{1, 1, 1}};
static const struct color black = {{0, 0, 0}};

struct box {
    float left, top, right, bottom;
};

static float clamp(float value, float low, float high)
{
    return value < low ? low : value > high ? high : value;
}

static void blend(struct canvas *canvas, long x, long y, struct color color, float opacity)
{
    unsigned char *at = canvas->rgb + 3 * ((size_t)y * canvas->width + (size_t)x);
    for (int i = 0; i < 3; i++) {
        const float mixed = (float)at[i] + (255.0f * color.parts[i] - (float)at[i]) * opacity;
        at[i] = (unsigned char)clamp(mixed + 0.5f, 0, 255);
    }
}

// How far a point lies outside of a box; negative inside.
static float outside_box(struct box box, float radius, float x, float y)
{
    const float half_width = (box.right - box.left) / 2;
    const float half_height = (box.bottom - box.top) / 2;
    const float dx = fabsf(x - box.left - half_width) - half_width + radius;
    const float dy = fabsf(y - box.top - half_height) - half_height + radius;
    const float corner = hypotf(dx > 0 ? dx : 0, dy > 0 ? dy : 0);
    const float inner = dx > dy ? dx : dy;
    return corner + (inner < 0 ? inner : 0) - radius;
}

struct area {
    long left, top, right, bottom; // pixels; right and bottom excluded
};

static struct area pixels_of(const struct canvas *canvas, struct box box)
{
    const float width = (float)canvas->width;
    const float height = (float)canvas->height;
    return (struct area){
        (long)clamp(floorf(box.left - 1), 0, width),
        (long)clamp(floorf(box.top - 1), 0, height),
        (long)clamp(ceilf(box.right + 1), 0, width),
        (long)clamp(ceilf(box.bottom + 1), 0, height),
    };
}

// Draws a frame of this weight along the inside of a box; all of it with INFINITY.
static void canvas_frame(struct canvas *canvas, struct box box, float radius, float weight,
                         struct color color, float opacity)
{
    const struct area area = pixels_of(canvas, box);
    for (long y = area.top; y < area.bottom; y++)
        for (long x = area.left; x < area.right; x++) {
            const float out = outside_box(box, radius, (float)x + 0.5f, (float)y + 0.5f);
            const float cover = clamp(0.5f - out, 0, 1) * clamp(0.5f + out + weight, 0, 1);
            if (cover > 0)
                blend(canvas, x, y, color, cover * opacity);
        }
}

// Text. A glyph is strokes of straight lines, separated by blanks. A point is a digit, x in halves,
// and a letter, y in halves from a = -3; 'g' is the baseline, 'q' the height of
// small letters, 'w' that of tall ones. There are glyphs of what the legend says.
enum {
    GLYPH_TOP = 8,
    GLYPH_BOTTOM = -3,
};

static const char *const glyphs[128] = {
    ['a'] = "8l7p4q1p0l1h4g7h8l 8q8g",
    ['c'] = "8o7q4q1p0l1h4g7g8i",
    ['d'] = "8w8g 8l7p4q1p0l1h4g7h8l",
    ['e'] = "0l8l7p4q1p0l1h4g7g8i",
    ['h'] = "0w0g 0m1p4q7p8m8g",
    ['i'] = "0q0g 0t0u",
    ['k'] = "0w0g 7q0k 2m8g",
    ['l'] = "0w0g",
    ['n'] = "0q0g 0m1p4q7p8m8g",
    ['o'] = "8l7p4q1p0l1h4g7h8l",
    ['p'] = "0q0b 0l1p4q7p8l7h4g1h0l",
    ['r'] = "0q0g 0m1p5q",
    ['s'] = "7o6q4q1p0n1l4l7l8j7h4g1g0i",
    ['t'] = "3u3j4h6g 0q6q",
    ['v'] = "0q4g8q",
    ['0'] = "8o7u4w1u0o1i4g7i8o",
    ['1'] = "1t4w4g",
    ['2'] = "0s1v4w7v8s6o0g8g",
    ['3'] = "0u1w4w7v8s7q3p7o8k7h4g1g0i",
    ['4'] = "6g6w0k8k",
    ['5'] = "7w1w1p2q4q7p8l7h4g1g0i",
    ['6'] = "7v6w5w1t0l1h4g7h8l7p4q1p0l",
    ['7'] = "0w8w3g",
    ['8'] = "4p6q7s6v4w2v1s2q4p7o8k7h4g1h0k1o4p",
    ['9'] = "8r7n4m1n0r1v4w7v8r7j3g2g1h",
    [','] = "1h0e",
};

struct point {
    float x, y;
};

static float glyph_x(char digit)
{
    return (float)(digit - '0') / 2;
}

// In units of the glyphs' grid, with the gap to the next one; NULL: a blank.
static float advance(const char *shape)
{
    float widest = 0;
    for (const char *at = shape; at && *at; at++)
        if (*at >= '0' && *at <= '9')
            widest = fmaxf(widest, glyph_x(*at));
    return shape ? widest + 2.2f : 3;
}

static struct point pixel_of(const char *text, struct point origin, float scale)
{
    const float y = (float)(text[1] - 'a') / 2 + GLYPH_BOTTOM;
    return (struct point){origin.x + glyph_x(text[0]) * scale, origin.y - y * scale};
}

static float distance_to(struct point a, struct point b, float x, float y)
{
    const float dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
    const float t = length > 0 ? clamp(((x - a.x) * dx + (y - a.y) * dy) / length, 0, 1) : 0;
    return hypotf(x - a.x - t * dx, y - a.y - t * dy);
}

static void draw_glyph(struct canvas *canvas, const char *shape, struct point origin, float scale)
{
    const float radius = GLYPH_TOP * scale * 0.062f;
    const struct box box = {origin.x - radius, origin.y - GLYPH_TOP * scale - radius,
                            origin.x + advance(shape) * scale,
                            origin.y - GLYPH_BOTTOM * scale + radius};
    const struct area area = pixels_of(canvas, box);
    for (long y = area.top; y < area.bottom; y++)
        for (long x = area.left; x < area.right; x++) {
            float nearest = INFINITY;
            for (const char *at = shape; at[2]; at += at[2] == ' ' ? 3 : 2)
                if (at[2] != ' ')
                    nearest = fminf(nearest, distance_to(pixel_of(at, origin, scale),
                                                         pixel_of(at + 2, origin, scale),
                                                         (float)x + 0.5f, (float)y + 0.5f));
            const float cover = clamp(0.5f + radius - nearest, 0, 1);
            if (cover > 0)
                blend(canvas, x, y, white, cover);
        }
}

// Resizing with a cubic filter, which averages where it shrinks: each row of the result gathers its rows of the
// source into one line of floats, and that line is then gathered into the result's columns.

struct taps {
    long first;
    long last; // included
    float center;
    float step; // how many pixels of the source are as wide as one of the result, at least 1
    float total;
};

// Catmull and Rom's cubic.
static float weight_of(const struct taps *taps, long index)
{
    const float x = fabsf((float)index - taps->center) / taps->step;
    if (x < 1)
        return 1 + x * x * (1.5f * x - 2.5f);
    return x < 2 ? 2 + x * (-4 + x * (2.5f - 0.5f * x)) : 0;
}

static struct taps taps_of(uint32_t index, uint32_t size, uint32_t source)
{
    const float ratio = (float)source / (float)size;
    struct taps taps = {.center = ((float)index + 0.5f) * ratio - 0.5f,
                        .step = ratio > 1 ? ratio : 1};
    taps.first = (long)ceilf(taps.center - 2 * taps.step);
    taps.last = (long)floorf(taps.center + 2 * taps.step);
    for (long i = taps.first; i <= taps.last; i++)
        taps.total += weight_of(&taps, i);
    return taps;
}

static size_t inside(long index, uint32_t size)
{
    return index < 0 ? 0 : index >= (long)size ? size - 1 : (size_t)index;
}

static void gather_row(const unsigned char *source, size_t row_bytes, uint32_t height,
                       struct taps taps, float *line)
{
    memset(line, 0, row_bytes * sizeof *line);
    for (long row = taps.first; row <= taps.last; row++) {
        const float weight = weight_of(&taps, row) / taps.total;
        const unsigned char *from = source + row_bytes * inside(row, height);
        for (size_t i = 0; i < row_bytes; i++)
            line[i] += weight * (float)from[i];
    }
}

static void gather_pixel(const float *line, uint32_t width, size_t channels,
                         const struct taps *taps, unsigned char *out)
{
    float sum[3] = {0, 0, 0};
    for (long column = taps->first; column <= taps->last; column++) {
        const float weight = weight_of(taps, column) / taps->total;
        const float *from = line + channels * inside(column, width);
        for (size_t i = 0; i < channels; i++)
            sum[i] += weight * from[i];
    }
    for (size_t i = 0; i < channels; i++)
        out[i] = (unsigned char)clamp(sum[i] + 0.5f, 0, 255);
}

// Of a picture whose pixels have 1 or 3 bytes. False if out of memory.
static bool resize(const unsigned char *source, uint32_t width, uint32_t height, size_t channels,
                   const struct canvas *size, unsigned char *out)
{
    float *line = malloc(channels * width * sizeof *line);
    struct taps *columns = malloc(size->width * sizeof *columns);
    const bool fine = line && columns;
    for (uint32_t x = 0; fine && x < size->width; x++)
        columns[x] = taps_of(x, size->width, width);
    for (uint32_t y = 0; fine && y < size->height; y++) {
        gather_row(source, channels * width, height, taps_of(y, size->height, height), line);
        for (uint32_t x = 0; x < size->width; x++, out += channels)
            gather_pixel(line, width, channels, &columns[x], out);
    }
    free(columns);
    free(line);
    return fine;
}

// A polynomial through matplotlib's table (bids.github.io/colormap), after
// Matt Zucker, shadertoy.com/view/WlfXRN.
static struct color canvas_magma(float value)
{
    static const float c[7][3] = {{-0.002136485f, -0.000749655f, -0.005386128f},
                                  {0.251660541f, 0.677523244f, 2.494026599f},
                                  {8.353717279f, -3.577719515f, 0.314467903f},
                                  {-27.66873309f, 14.26473078f, -13.64921319f},
                                  {52.17613981f, -27.94360607f, 12.94416944f},
                                  {-50.76852537f, 29.04658282f, 4.234152994f},
                                  {18.65570507f, -11.48977352f, -5.601961509f}};
    const float t = clamp(value, 0, 1);
    struct color color;
    for (int i = 0; i < 3; i++) {
        float sum = c[6][i];
        for (int k = 5; k >= 0; k--)
            sum = sum * t + c[k][i];
        color.parts[i] = clamp(sum, 0, 1);
    }
    return color;
}

enum {
    LONGER_MINIMUM = 1200,
    LONGER_MAXIMUM = 2400,
    SIDE_MINIMUM = 8,
    SIDE_MAXIMUM = 20
};

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

// The photo keeps its lightness and little of its colour; the map adds its own.
static void tint(unsigned char *rgb, float relevance)
{
    const struct color map = canvas_magma(0.06f + 0.94f * relevance);
    const float gray =
        (0.299f * (float)rgb[0] + 0.587f * (float)rgb[1] + 0.114f * (float)rgb[2]) / 255.0f;
    const float weight = 0.42f + 0.36f * relevance;
    for (int i = 0; i < 3; i++) {
        const float photo = 0.55f * (0.6f * gray + 0.4f * (float)rgb[i] / 255.0f);
        const float lit = map.parts[i] * (0.62f + 0.5f * gray);
        const float mixed = photo + (lit - photo) * weight;
        rgb[i] = (unsigned char)(255.0f * (mixed < 1 ? mixed : 1) + 0.5f);
    }
}

// A patch's value is that of its centre. Patches that were chosen show the photo unchanged. False if out of memory.
static bool draw_map(struct canvas *canvas, const struct weir_arr_coc_output *output, uint32_t grid)
{
    const size_t patches = (size_t)grid * grid;
    unsigned char *map = calloc(patches, 1);
    unsigned char *plane = malloc((size_t)canvas->width * canvas->height);
    bool *bare = calloc(patches, sizeof *bare);
    for (size_t i = 0; map && i < patches; i++)
        map[i] = (unsigned char)(255 * clamp(output->relevance[i], 0, 1) + 0.5f);
    for (uint32_t i = 0; bare && i < output->patch_count; i++)
        bare[output->patches[(size_t)3 * i]] = true;
    const bool fine = map && plane && bare && resize(map, grid, grid, 1, canvas, plane);
    for (uint32_t y = 0; fine && y < canvas->height; y++)
        for (uint32_t x = 0; x < canvas->width; x++) {
            const size_t at = (size_t)y * canvas->width + x;
            const uint32_t column = (uint32_t)(((uint64_t)x * 2 + 1) * grid / 2 / canvas->width);
            const uint32_t row = (uint32_t)(((uint64_t)y * 2 + 1) * grid / 2 / canvas->height);
            if (!bare[(size_t)row * grid + column])
                tint(canvas->rgb + 3 * at, (float)plane[at] / 255);
        }
    free(bare);
    free(plane);
    free(map);
    return fine;
}

// The patches.

static float finest_of(int32_t side)
{
    return clamp((float)(side - SIDE_MINIMUM) / (SIDE_MAXIMUM - SIDE_MINIMUM), 0, 1);
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

// From the coarsest side to the finest: blue to the brightest cyan.
static void draw_marker(struct canvas *canvas, struct box box, float weight, float finest)
{
    const struct color color = {{0.25f + 0.30f * finest, 0.55f + 0.45f * finest, 1.0f}};
    const struct box casing = {box.left + weight, box.top + weight, box.right - weight,
                               box.bottom - weight};
    const float radius = 2 * weight;
    canvas_frame(canvas, casing, radius / 2, weight / 2 + 0.5f, black, 0.55f);
    canvas_frame(canvas, box, radius, weight, color, 0.75f + 0.25f * finest);
}

// Of the i-th patch that was chosen.
static struct box box_of(const struct canvas *canvas, const struct weir_arr_coc_output *output,
                         uint32_t grid, uint32_t i)
{
    const float width = (float)canvas->width / (float)grid;
    const float height = (float)canvas->height / (float)grid;
    const uint32_t index = (uint32_t)output->patches[(size_t)3 * i];
    const uint32_t column = index % grid, row = index / grid;
    return (struct box){
        .left = (float)column * width + 0.5f,
        .top = (float)row * height + 0.5f,
        .right = (float)(column + 1) * width - 0.5f,
        .bottom = (float)(row + 1) * height - 0.5f,
    };
}

// The legend is in the corner with the fewest chosen patches.

struct legend {
    struct box box;
    float unit; // of places and sizes in it; tall letters are 1.25 high
};

// Writes with the baseline at `y`.
static void write_text(struct canvas *canvas, const struct legend *legend, float x, float y,
                       const char *text)
{
    const float scale = 1.25f * legend->unit / GLYPH_TOP;
    struct point origin = {legend->box.left + x * legend->unit, legend->box.top + y * legend->unit};
    for (; *text; text++) {
        const char *shape = glyphs[(unsigned char)*text & 127];
        if (shape)
            draw_glyph(canvas, shape, origin, scale);
        origin.x += advance(shape) * scale;
    }
}

static unsigned patches_under(const struct canvas *canvas, struct box box,
                              const struct weir_arr_coc_output *output, uint32_t grid)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < output->patch_count; i++) {
        const struct box patch = box_of(canvas, output, grid, i);
        const float x = (patch.left + patch.right) / 2, y = (patch.top + patch.bottom) / 2;
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
    const float unit = legend->unit, top = legend->box.top + 1.7f * unit;
    const float left = legend->box.left + 13.0f * unit, right = legend->box.left + 30.4f * unit;
    write_text(canvas, legend, 1.6f, 2.9f, "relevance");
    write_text(canvas, legend, 11.3f, 2.9f, "0");
    write_text(canvas, legend, 31.2f, 2.9f, "1");
    for (int i = 0; left + (float)i < right; i++) {
        const float x = left + (float)i;
        const struct box strip = {x, top, x + 1 < right ? x + 1 : right, top + 1.2f * unit};
        canvas_frame(canvas, strip, 0, INFINITY, canvas_magma((x - left) / (right - left)), 1);
    }
    const struct box around = {left - 1, top - 1, right + 1, top + 1.2f * unit + 1};
    canvas_frame(canvas, around, 1, 1, white, 0.5f);
}

static void draw_sides(struct canvas *canvas, const struct legend *legend, uint32_t grid)
{
    static const int32_t sides[] = {8, 14, 20};
    const float unit = legend->unit, base = legend->box.top + 5.6f * unit;
    write_text(canvas, legend, 1.6f, 5.6f, "cells a side");
    for (int i = 0; i < 3; i++) {
        char text[16];
        const float x = 13.0f + 6.6f * (float)i, left = legend->box.left + x * unit;
        const float finest = finest_of(sides[i]);
        const struct box box = {left, base - 1.6f * unit, left + 2.6f * unit, base + 0.4f * unit};
        draw_marker(canvas, box, line_weight(canvas, grid, finest), finest);
        snprintf(text, sizeof text, "%d", (int)sides[i]);
        write_text(canvas, legend, x + 3.2f, 5.6f, text);
    }
}

static void draw_legend(struct canvas *canvas, const struct weir_arr_coc_output *output,
                        uint32_t grid)
{
    struct legend legend;
    char text[96];
    if (!place_legend(canvas, output, grid, &legend))
        return;
    canvas_frame(canvas, legend.box, legend.unit, INFINITY, black, 0.72f);
    canvas_frame(canvas, legend.box, legend.unit, 1, white, 0.25f);
    draw_scale(canvas, &legend);
    draw_sides(canvas, &legend, grid);
    snprintf(text, sizeof text, "%u patches, %u tokens", (unsigned)output->patch_count,
             (unsigned)output->token_count);
    write_text(canvas, &legend, 1.6f, 8.2f, text);
}

bool cli_overlay_draw(const unsigned char *photo, const struct weir_arr_coc_output *output,
                      uint32_t grid, struct canvas *out_canvas)
{
    choose_size(output->width, output->height, out_canvas);
    out_canvas->rgb = malloc((size_t)3 * out_canvas->width * out_canvas->height);
    if (!out_canvas->rgb ||
        !resize(photo, output->width, output->height, 3, out_canvas, out_canvas->rgb) ||
        !draw_map(out_canvas, output, grid)) {
        free(out_canvas->rgb);
        out_canvas->rgb = NULL;
        return false;
    }
    for (uint32_t i = 0; i < output->patch_count; i++) {
        const float finest = finest_of(output->patches[(size_t)3 * i + 1]);
        draw_marker(out_canvas, box_of(out_canvas, output, grid, i),
                    line_weight(out_canvas, grid, finest), finest);
    }
    draw_legend(out_canvas, output, grid);
    return true;
}
