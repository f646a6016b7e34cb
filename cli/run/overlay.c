// The overlay, and what it draws with.
#include "cli/run/run.h"

#include <math.h>

// Drawing on an RGB picture: filled boxes, and lines, of which frames and letters are made. The coverage of a pixel is
// the distance of its centre from the edge, clamped to 0 … 1, which smooths every edge. Coordinates are pixels from
// the top left corner; a pixel's centre lies at .5.

struct color {
    float parts[3]; // red, green, blue: 0 … 1
};

static const struct color white = {{1, 1, 1}};
static const struct color black = {{0, 0, 0}};

struct point {
    float x, y;
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
    for (int i = 0; i < 3; i++) {
        const float mixed = (float)at[i] + (255.0f * color.parts[i] - (float)at[i]) * opacity;
        at[i] = (unsigned char)clamp(mixed + 0.5f, 0, 255);
    }
}

static float distance_to(struct point a, struct point b, struct point p)
{
    const float dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
    const float t = length > 0 ? clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0, 1) : 0;
    return hypotf(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

// Draws lines from each point to the next, as thick as the weight.
static void draw_lines(struct canvas *canvas, const struct point *points, size_t count,
                       float weight, struct color color, float opacity)
{
    struct box box = {INFINITY, INFINITY, -INFINITY, -INFINITY};
    for (size_t i = 0; i < count; i++)
        box = (struct box){fminf(box.left, points[i].x), fminf(box.top, points[i].y),
                           fmaxf(box.right, points[i].x), fmaxf(box.bottom, points[i].y)};
    const float around = weight / 2 + 1;
    const long right = (long)clamp(ceilf(box.right + around), 0, (float)canvas->width);
    const long bottom = (long)clamp(ceilf(box.bottom + around), 0, (float)canvas->height);
    for (long y = (long)fmaxf(box.top - around, 0); y < bottom; y++)
        for (long x = (long)fmaxf(box.left - around, 0); x < right; x++) {
            float nearest = INFINITY;
            for (size_t i = 1; i < count; i++)
                nearest =
                    fminf(nearest, distance_to(points[i - 1], points[i],
                                               (struct point){(float)x + 0.5f, (float)y + 0.5f}));
            const float cover = clamp(0.5f + weight / 2 - nearest, 0, 1);
            if (cover > 0)
                blend(canvas, x, y, color, cover * opacity);
        }
}

// Along the inside of a box.
static void draw_frame(struct canvas *canvas, struct box box, float weight, struct color color,
                       float opacity)
{
    const float left = box.left + weight / 2, top = box.top + weight / 2;
    const float right = box.right - weight / 2, bottom = box.bottom - weight / 2;
    const struct point corners[] = {
        {left, top}, {right, top}, {right, bottom}, {left, bottom}, {left, top}};
    draw_lines(canvas, corners, sizeof corners / sizeof *corners, weight, color, opacity);
}

// A box of whole pixels in the canvas.
static void fill_box(struct canvas *canvas, struct box box, struct color color, float opacity)
{
    for (long y = lroundf(box.top); y < lroundf(box.bottom); y++)
        for (long x = lroundf(box.left); x < lroundf(box.right); x++)
            blend(canvas, x, y, color, opacity);
}

// Text. A glyph is strokes of straight lines, separated by blanks. A point is a digit, x in halves,
// and a letter, y in halves from a = -3; 'g' is the baseline, 'q' the height of
// small letters, 'w' that of tall ones. There are glyphs of what the legend says.
enum {
    GLYPH_TOP = 8,
    GLYPH_BOTTOM = -3,
    GLYPH_POINTS = 20,
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

static void draw_glyph(struct canvas *canvas, const char *shape, struct point origin, float scale)
{
    struct point points[GLYPH_POINTS];
    size_t count = 0;
    for (const char *at = shape; *at; at += 2 + (at[2] == ' ')) {
        const float y = (float)(at[1] - 'a') / 2 + GLYPH_BOTTOM;
        points[count++] = (struct point){origin.x + glyph_x(at[0]) * scale, origin.y - y * scale};
        if (at[2] != ' ' && at[2] != '\0')
            continue;
        draw_lines(canvas, points, count, GLYPH_TOP * scale * 0.124f, white, 1);
        count = 0;
    }
}

// Resizing: a pixel of the result is the mean of the source about its place, with weights that fall off linearly over a
// pixel of whichever of both has the larger ones.

struct picture {
    const unsigned char *bytes;
    uint32_t width, height;
    size_t channels; // 1 or 3, a byte each
};

static size_t inside(long index, uint32_t size)
{
    return index < 0 ? 0 : index >= (long)size ? size - 1 : (size_t)index;
}

static void sample(const struct picture *from, const struct canvas *size, uint32_t x, uint32_t y,
                   unsigned char *out)
{
    const float wide = (float)from->width / (float)size->width;
    const float high = (float)from->height / (float)size->height;
    const float center_x = ((float)x + 0.5f) * wide - 0.5f, reach_x = fmaxf(wide, 1);
    const float center_y = ((float)y + 0.5f) * high - 0.5f, reach_y = fmaxf(high, 1);
    float sums[3] = {0}, total = 0;
    for (long row = (long)ceilf(center_y - reach_y); (float)row < center_y + reach_y; row++)
        for (long at = (long)ceilf(center_x - reach_x); (float)at < center_x + reach_x; at++) {
            const float weight =
                (reach_y - fabsf((float)row - center_y)) * (reach_x - fabsf((float)at - center_x));
            const size_t pixel = inside(row, from->height) * from->width + inside(at, from->width);
            for (size_t i = 0; i < from->channels; i++)
                sums[i] += weight * (float)from->bytes[pixel * from->channels + i];
            total += weight;
        }
    for (size_t i = 0; i < from->channels; i++)
        out[i] = (unsigned char)(sums[i] / total + 0.5f);
}

// Matplotlib's colours of that name (bids.github.io/colormap), an eighth apart.
static struct color magma(float value)
{
    static const unsigned char table[][3] = {{0, 0, 4},      {28, 16, 68},    {79, 18, 123},
                                             {129, 37, 129}, {181, 54, 122},  {229, 80, 100},
                                             {251, 135, 97}, {254, 194, 135}, {252, 253, 191},
                                             {252, 253, 191}};
    const float at = 8 * clamp(value, 0, 1);
    const unsigned char *below = table[(int)at], *above = table[(int)at + 1];
    struct color color;
    for (int i = 0; i < 3; i++)
        color.parts[i] =
            ((float)below[i] + (float)(above[i] - below[i]) * (at - floorf(at))) / 255.0f;
    return color;
}

enum {
    LONGER_MINIMUM = 1200,
    LONGER_MAXIMUM = 2400,
    SIDE_MINIMUM = 8,
    SIDE_MAXIMUM = 20
};

static uint32_t scaled(uint32_t size, float scale)
{
    return (uint32_t)fmaxf(1, roundf((float)size * scale));
}

static void choose_size(uint32_t width, uint32_t height, struct canvas *canvas)
{
    const float longer = (float)(width > height ? width : height);
    const float scale = clamp(longer, LONGER_MINIMUM, LONGER_MAXIMUM) / longer;
    canvas->width = scaled(width, scale);
    canvas->height = scaled(height, scale);
}

// The relevance map.

// The photo keeps its lightness and little of its colour; the map adds its own.
static void tint(unsigned char *rgb, float relevance)
{
    const struct color map = magma(0.06f + 0.94f * relevance);
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

// The photo, and over it the map, but where patches were chosen. A patch's value is that of its centre. False if out of
// memory.
static bool draw_map(struct canvas *canvas, const struct picture *photo,
                     const struct weir_arr_coc_output *output, uint32_t grid)
{
    const size_t patches = (size_t)grid * grid;
    unsigned char *values = calloc(2, patches), *bare = values + patches, value;
    const struct picture map = {values, grid, grid, 1};
    for (size_t i = 0; values && i < patches; i++)
        values[i] = (unsigned char)(255 * clamp(output->relevance[i], 0, 1) + 0.5f);
    for (uint32_t i = 0; values && i < output->patch_count; i++)
        bare[output->patches[(size_t)3 * i]] = true;
    for (uint32_t y = 0; values && y < canvas->height; y++)
        for (uint32_t x = 0; x < canvas->width; x++) {
            unsigned char *rgb = canvas->rgb + 3 * ((size_t)y * canvas->width + x);
            const uint32_t column = (uint32_t)(((uint64_t)x * 2 + 1) * grid / 2 / canvas->width);
            const uint32_t row = (uint32_t)(((uint64_t)y * 2 + 1) * grid / 2 / canvas->height);
            sample(photo, canvas, x, y, rgb);
            sample(&map, canvas, x, y, &value);
            if (!bare[(size_t)row * grid + column])
                tint(rgb, (float)value / 255);
        }
    free(values);
    return values;
}

// The patches.

static float finest_of(int32_t side)
{
    return clamp((float)(side - SIDE_MINIMUM) / (SIDE_MAXIMUM - SIDE_MINIMUM), 0, 1);
}

// Lines grow with the picture, up to a fifth of a patch.
static float line_weight(const struct canvas *canvas, uint32_t grid, float finest)
{
    const float width = (float)canvas->width, height = (float)canvas->height;
    return fminf(fmaxf(width, height) / LONGER_MINIMUM * (1.2f + 2.0f * finest),
                 fminf(width, height) / (float)grid / 5);
}

// From the coarsest side to the finest: blue to the brightest cyan.
static void draw_marker(struct canvas *canvas, struct box box, float weight, float finest)
{
    const struct color color = {{0.25f + 0.30f * finest, 0.55f + 0.45f * finest, 1.0f}};
    const struct box casing = {box.left + weight, box.top + weight, box.right - weight,
                               box.bottom - weight};
    draw_frame(canvas, casing, weight / 2 + 0.5f, black, 0.55f);
    draw_frame(canvas, box, weight, color, 0.75f + 0.25f * finest);
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
    unsigned fewest = UINT32_MAX;

    legend->unit = unit;
    if (right < margin || bottom < margin)
        return false;
    for (int i = 0; i < 4; i++) {
        const float left = i % 2 ? right : margin, top = i < 2 ? bottom : margin;
        const struct box box = {left, top, left + width, top + height};
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
    for (float x = left; x < right; x++)
        fill_box(canvas, (struct box){x, top, x + 1, top + 1.2f * unit},
                 magma((x - left) / (right - left)), 1);
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
    fill_box(canvas, legend.box, black, 0.72f);
    draw_frame(canvas, legend.box, 1, white, 0.25f);
    draw_scale(canvas, &legend);
    draw_sides(canvas, &legend, grid);
    snprintf(text, sizeof text, "%u patches, %u tokens", (unsigned)output->patch_count,
             (unsigned)output->token_count);
    write_text(canvas, &legend, 1.6f, 8.2f, text);
}

bool cli_overlay_draw(const unsigned char *photo, const struct weir_arr_coc_output *output,
                      uint32_t grid, struct canvas *out_canvas)
{
    const struct picture source = {photo, output->width, output->height, 3};
    choose_size(output->width, output->height, out_canvas);
    out_canvas->rgb = malloc((size_t)3 * out_canvas->width * out_canvas->height);
    if (!out_canvas->rgb || !draw_map(out_canvas, &source, output, grid)) {
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
