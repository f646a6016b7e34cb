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
    float r, g, b; // 0 … 1
};

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
    const float parts[3] = {color.r, color.g, color.b};
    for (int i = 0; i < 3; i++) {
        const float mixed = (float)at[i] + (255.0f * parts[i] - (float)at[i]) * opacity;
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
    const struct area area = {
        (long)clamp(floorf(box.left - 1), 0, width),
        (long)clamp(floorf(box.top - 1), 0, height),
        (long)clamp(ceilf(box.right + 1), 0, width),
        (long)clamp(ceilf(box.bottom + 1), 0, height),
    };
    return area;
}

// Draws a frame of this weight along the inside of a box.
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

// Fills a box with corners of this radius, blended in with `opacity`.
static void canvas_fill_box(struct canvas *canvas, struct box box, float radius, struct color color,
                            float opacity)
{
    canvas_frame(canvas, box, radius, INFINITY, color, opacity); // all of it is frame
}

// Text. A glyph is strokes, separated by blanks. A point is a digit, x in halves,
// and a letter, y in halves from a = -3; 'g' is the baseline, 'q' the height of
// small letters, 'w' that of tall ones. A point after '~' bends the stroke
// between its neighbours (a quadratic curve's control point).
enum {
    GLYPH_TOP = 8,
    CURVE_STEPS = 8
};

static const char *const letters[26] = {
    "8l~8q4q~0q0l~0g4g~8g8l 8q8g",
    "0w0g 0l~0q4q~8q8l~8g4g~0g0l",
    "8o~7q4q~0q0l~0g4g~7g8i",
    "8w8g 8l~8q4q~0q0l~0g4g~8g8l",
    "0l8l~8q4q~0q0l~0g4g~7g8i",
    "6w~3w3s3g 0q6q",
    "8q8e~8b4b~1b0d 8l~8q4q~0q0l~0g4g~8g8l",
    "0w0g 0m~0q4q~8q8m8g",
    "0q0g 0t0u",
    "2q2e~2b0b 2t2u",
    "0w0g 7q0k 2m8g",
    "0w0g",
    "0q0g 0m~0q3q~5q5n5g 5n~5q7q~9q9n9g",
    "0q0g 0m~0q4q~8q8m8g",
    "8l~8q4q~0q0l~0g4g~8g8l",
    "0q0b 0l~0q4q~8q8l~8g4g~0g0l",
    "8q8b 8l~8q4q~0q0l~0g4g~8g8l",
    "0q0g 0m~0q5q",
    "7o~6q4q~0q0n~0l4l~8l8j~8g4g~1g0i",
    "3u3j~3g6g 0q6q",
    "0q0k~0g4g~8g8k 8q8g",
    "0q4g8q",
    "0q2g4p6g8q",
    "0q8g 8q0g",
    "0q4g 8q2b",
    "0q8q0g8g",
};

static const char *const digits[10] = {
    "8o~8w4w~0w0o~0g4g~8g8o",           "1t4w4g",   "0s~0w4w~8w8s~8p0g8g",
    "0u~1w4w~8w8s~8p3p~8p8k~8g4g~1g0i", "6g6w0k8k", "7w1w1p~2q4q~8q8l~8g4g~1g0i",
    "7v~6w5w~0w0l~0g4g~8g8l~8q4q~0q0l", "0w8w3g",   "4p~7p7s~7w4w~1w1s~1p4p~8p8k~8g4g~0g0k~0p4p",
    "8r~8m4m~0m0r~0w4w~8w8r~8g3g~2g1h",
};

static const char *glyph(char character)
{
    static const char signs[] = ".,:-/=";
    static const char *const shapes[] = {"0g0h", "1h0e", "0g0h 0p0q", "0l5l", "0e6w", "0n6n 0j6j"};
    if (character >= 'a' && character <= 'z')
        return letters[character - 'a'];
    if (character >= '0' && character <= '9')
        return digits[character - '0'];
    const char *sign = character ? strchr(signs, character) : NULL;
    return sign ? shapes[sign - signs] : "";
}

struct point {
    float x, y;
};

static struct point read_point(const char *text)
{
    const struct point point = {(float)(text[0] - '0') / 2, (float)(text[1] - 'a') / 2 - 3};
    return point;
}

// In units of the glyphs' grid, with the gap to the next one.
static float advance(char character)
{
    float widest = 0;
    const char *shape = glyph(character);
    if (!*shape)
        return 3;
    for (; *shape; shape++)
        if (*shape >= '0' && *shape <= '9' && (float)(*shape - '0') / 2 > widest)
            widest = (float)(*shape - '0') / 2;
    return widest + 2.2f;
}

// How wide canvas_text() writes.
static float canvas_text_width(float size, const char *text)
{
    float width = 0;
    for (; *text; text++)
        width += advance(*text);
    return width * size / GLYPH_TOP;
}

// The position of a glyph, and its pen.
struct pen {
    struct canvas *canvas;
    struct point origin;
    float scale;
    float radius;
    struct color color;
    float *cover; // of the whole text's area, so that strokes that cross are not darker
    struct area area;
};

static void draw_line(struct pen *pen, struct point a, struct point b)
{
    const struct point from = {pen->origin.x + a.x * pen->scale, pen->origin.y - a.y * pen->scale};
    const struct point to = {pen->origin.x + b.x * pen->scale, pen->origin.y - b.y * pen->scale};
    const float reach = pen->radius + 1;
    const struct box box = {fminf(from.x, to.x) - reach, fminf(from.y, to.y) - reach,
                            fmaxf(from.x, to.x) + reach, fmaxf(from.y, to.y) + reach};
    const struct area area = pixels_of(pen->canvas, box);
    const float dx = to.x - from.x, dy = to.y - from.y;
    const float length = dx * dx + dy * dy;
    for (long y = area.top; y < area.bottom; y++)
        for (long x = area.left; x < area.right; x++) {
            const float px = (float)x + 0.5f - from.x, py = (float)y + 0.5f - from.y;
            const float t = length > 0 ? clamp((px * dx + py * dy) / length, 0, 1) : 0;
            const float out = hypotf(px - t * dx, py - t * dy) - pen->radius;
            const float cover = clamp(0.5f - out, 0, 1);
            if (x < pen->area.left || x >= pen->area.right || y < pen->area.top ||
                y >= pen->area.bottom)
                continue;
            float *at = &pen->cover[(y - pen->area.top) * (pen->area.right - pen->area.left) + x -
                                    pen->area.left];
            *at = fmaxf(*at, cover);
        }
}

static void draw_curve(struct pen *pen, struct point a, struct point control, struct point b)
{
    struct point last = a;
    for (int i = 1; i <= CURVE_STEPS; i++) {
        const float t = (float)i / CURVE_STEPS, u = 1 - t;
        const struct point next = {u * u * a.x + 2 * u * t * control.x + t * t * b.x,
                                   u * u * a.y + 2 * u * t * control.y + t * t * b.y};
        draw_line(pen, last, next);
        last = next;
    }
}

static void draw_glyph(struct pen *pen, const char *shape)
{
    struct point last = {0, 0};
    bool begun = false;
    while (*shape) {
        if (*shape == ' ') {
            begun = false;
            shape++;
        } else if (*shape == '~') {
            const struct point control = read_point(shape + 1);
            const struct point next = read_point(shape + 3);
            draw_curve(pen, last, control, next);
            last = next;
            shape += 5;
        } else {
            const struct point next = read_point(shape);
            if (begun)
                draw_line(pen, last, next);
            begun = true;
            last = next;
            shape += 2;
        }
    }
}

// Writes lower-case letters, digits, blanks and ".,:-/=" with their baseline at
// `y` and tall ones `size` pixels high. Other characters are blanks.
static void canvas_text(struct canvas *canvas, float x, float y, float size, const char *text,
                        struct color color)
{
    const struct box box = {x - size, y - 2 * size, x + canvas_text_width(size, text) + size,
                            y + size};
    struct pen pen = {
        .canvas = canvas,
        .origin = {x, y},
        .scale = size / GLYPH_TOP,
        .radius = size * 0.062f,
        .color = color,
        .area = pixels_of(canvas, box),
    };
    const long columns = pen.area.right - pen.area.left;
    const long rows = pen.area.bottom - pen.area.top;
    if (columns <= 0 || rows <= 0)
        return;
    pen.cover = calloc((size_t)columns * (size_t)rows, sizeof *pen.cover);
    if (!pen.cover)
        return; // if out of memory the text is omitted
    for (; *text; text++) {
        draw_glyph(&pen, glyph(*text));
        pen.origin.x += advance(*text) * pen.scale;
    }
    for (long row = 0; row < rows; row++)
        for (long column = 0; column < columns; column++)
            if (pen.cover[row * columns + column] > 0)
                blend(canvas, pen.area.left + column, pen.area.top + row, color,
                      pen.cover[row * columns + column]);
    free(pen.cover);
}

// Resizing: each row of the result gathers its rows of the source into one
// line of floats, and that line is then gathered into the result's columns.

// Catmull and Rom's cubic, as wide as `step` source pixels where that is more
// than one.
static float filter(float distance)
{
    const float x = fabsf(distance);
    if (x < 1)
        return 1 + x * x * (1.5f * x - 2.5f);
    return x < 2 ? 2 + x * (-4 + x * (2.5f - 0.5f * x)) : 0;
}

struct taps {
    long first;
    long last; // included
    float center;
    float step;
};

static struct taps taps_of(uint32_t index, uint32_t size, uint32_t source)
{
    const float ratio = (float)source / (float)size;
    struct taps taps = {.center = ((float)index + 0.5f) * ratio - 0.5f,
                        .step = ratio > 1 ? ratio : 1};
    taps.first = (long)ceilf(taps.center - 2 * taps.step);
    taps.last = (long)floorf(taps.center + 2 * taps.step);
    return taps;
}

static long inside(long index, uint32_t size)
{
    return index < 0 ? 0 : index >= (long)size ? (long)size - 1 : index;
}

static void gather_row(const unsigned char *rgb, uint32_t width, uint32_t height, struct taps taps,
                       float *line)
{
    float total = 0;
    for (long row = taps.first; row <= taps.last; row++)
        total += filter(((float)row - taps.center) / taps.step);
    memset(line, 0, (size_t)3 * width * sizeof *line);
    for (long row = taps.first; row <= taps.last; row++) {
        const float weight = filter(((float)row - taps.center) / taps.step) / total;
        const unsigned char *source = rgb + (size_t)3 * width * (size_t)inside(row, height);
        for (size_t i = 0; i < (size_t)3 * width; i++)
            line[i] += weight * (float)source[i];
    }
}

static void gather_pixel(const float *line, uint32_t width, struct taps taps, unsigned char *out)
{
    float total = 0;
    float sum[3] = {0, 0, 0};
    for (long column = taps.first; column <= taps.last; column++) {
        const float weight = filter(((float)column - taps.center) / taps.step);
        const float *source = line + 3 * inside(column, width);
        total += weight;
        for (int i = 0; i < 3; i++)
            sum[i] += weight * source[i];
    }
    for (int i = 0; i < 3; i++)
        out[i] = (unsigned char)clamp(sum[i] / total + 0.5f, 0, 255);
}

// Resizes an RGB picture with a cubic filter, which averages where it shrinks.
//
// Errors: false if out of memory.
static bool canvas_resize(const unsigned char *rgb, uint32_t width, uint32_t height,
                          struct canvas *canvas)
{
    float *line = malloc((size_t)3 * width * sizeof *line);
    if (!line)
        return false;
    for (uint32_t y = 0; y < canvas->height; y++) {
        unsigned char *out = canvas->rgb + (size_t)3 * canvas->width * y;
        gather_row(rgb, width, height, taps_of(y, canvas->height, height), line);
        for (uint32_t x = 0; x < canvas->width; x++)
            gather_pixel(line, width, taps_of(x, canvas->width, width), out + (size_t)3 * x);
    }
    free(line);
    return true;
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
    float sum[3];
    for (int i = 0; i < 3; i++) {
        sum[i] = c[6][i];
        for (int k = 5; k >= 0; k--)
            sum[i] = sum[i] * t + c[k][i];
        sum[i] = clamp(sum[i], 0, 1);
    }
    const struct color color = {sum[0], sum[1], sum[2]};
    return color;
}

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
    if (!fine) {
        free(out_canvas->rgb);
        out_canvas->rgb = NULL;
    }
    free(bare);
    return fine;
}
