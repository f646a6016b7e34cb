// Written so that it can be compared with the definition line by line. Each
// quantity has its own small function; the only shared helper is memory for
// scratch arrays. The file is compiled without contraction of a*b + c, so that
// its sums are the same on every machine.

#include "tests/support/arr_coc_reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BINS = 32,
    WEIGHT = 256
};

static const double pi = 3.14159265358979323846;

static void *scratch(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory) {
        fprintf(stderr, "arr_coc_reference: no memory for %zu x %zu bytes\n", count, size);
        exit(EXIT_FAILURE);
    }
    return memory;
}

static double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

static size_t pixels(const struct arr_coc_reference_dims *dims)
{
    return (size_t)dims->size * (size_t)dims->size;
}

// Stage 1: texture.

struct tap {
    int low, high;
    double weight; // of `high`
};

// Half-pixel centres. Both coordinates are clamped, so that a border pixel is
// interpolated with itself.
static struct tap tap_of(int index, int source_size, int size)
{
    double centre = (index + 0.5) * source_size / size - 0.5;
    centre = clamp(centre, 0.0, source_size - 1.0);
    int low = (int)floor(centre);
    int high = low + 1 < source_size ? low + 1 : low;
    return (struct tap){low, high, centre - low};
}

static double lerp(double a, double b, double weight)
{
    return a + (b - a) * weight;
}

static void resize(const unsigned char *rgb8, int height, int width, int size, double *out_rgb)
{
    size_t plane = (size_t)size * (size_t)size;
    for (int row = 0; row < size; row++) {
        struct tap y = tap_of(row, height, size);
        const unsigned char *above = rgb8 + (size_t)y.low * (size_t)width * 3;
        const unsigned char *below = rgb8 + (size_t)y.high * (size_t)width * 3;
        for (int column = 0; column < size; column++) {
            struct tap x = tap_of(column, width, size);
            size_t at = (size_t)row * (size_t)size + (size_t)column;
            for (int c = 0; c < 3; c++) {
                double top =
                    lerp(above[x.low * 3 + c] / 255.0, above[x.high * 3 + c] / 255.0, x.weight);
                double bottom =
                    lerp(below[x.low * 3 + c] / 255.0, below[x.high * 3 + c] / 255.0, x.weight);
                out_rgb[(size_t)c * plane + at] = lerp(top, bottom, y.weight);
            }
        }
    }
}

static double srgb_to_linear(double v)
{
    return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

static double lab_f(double t)
{
    return t > 0.008856 ? cbrt(t) : 7.787 * t + 16.0 / 116.0;
}

void arr_coc_reference_lab(const double rgb[3], double out_lab[3])
{
    double r = srgb_to_linear(rgb[0]);
    double g = srgb_to_linear(rgb[1]);
    double b = srgb_to_linear(rgb[2]);
    double x = (0.412453 * r + 0.357580 * g + 0.180423 * b) / 0.950456;
    double y = (0.212671 * r + 0.715160 * g + 0.072169 * b) / 1.0;
    double z = (0.019334 * r + 0.119193 * g + 0.950227 * b) / 1.088754;
    double lightness = 116.0 * lab_f(y) - 16.0;
    double a = 500.0 * (lab_f(x) - lab_f(y));
    double blue = 200.0 * (lab_f(y) - lab_f(z));
    out_lab[0] = clamp(lightness / 100.0, 0.0, 1.0);
    out_lab[1] = clamp((a + 128.0) / 255.0, 0.0, 1.0);
    out_lab[2] = clamp((blue + 128.0) / 255.0, 0.0, 1.0);
}

static void colours(int size, const double *rgb, double *out_lab, double *out_gray)
{
    size_t plane = (size_t)size * (size_t)size;
    for (size_t at = 0; at < plane; at++) {
        double pixel[3] = {rgb[at], rgb[plane + at], rgb[2 * plane + at]};
        double lab[3];
        arr_coc_reference_lab(pixel, lab);
        for (size_t c = 0; c < 3; c++)
            out_lab[c * plane + at] = lab[c];
        out_gray[at] = 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2];
    }
}

static double replicated(const double *gray, int size, int row, int column)
{
    row = row < 0 ? 0 : row >= size ? size - 1 : row;
    column = column < 0 ? 0 : column >= size ? size - 1 : column;
    return gray[(size_t)row * (size_t)size + (size_t)column];
}

static void gradients(int size, const double *gray, double *out)
{
    size_t plane = (size_t)size * (size_t)size;
    for (int row = 0; row < size; row++) {
        for (int column = 0; column < size; column++) {
            double gx = 0.0, gy = 0.0;
            for (int k = -1; k <= 1; k++) {
                double weight = k == 0 ? 2.0 : 1.0;
                gx += weight * (replicated(gray, size, row + k, column + 1) -
                                replicated(gray, size, row + k, column - 1));
                gy += weight * (replicated(gray, size, row + 1, column + k) -
                                replicated(gray, size, row - 1, column + k));
            }
            gx /= 8.0;
            gy /= 8.0;
            size_t at = (size_t)row * (size_t)size + (size_t)column;
            out[at] = gx + 0.5;
            out[plane + at] = gy + 0.5;
            out[2 * plane + at] = sqrt(2.0) * sqrt(gx * gx + gy * gy);
        }
    }
}

static void positions(int size, double *out)
{
    size_t plane = (size_t)size * (size_t)size;
    for (int row = 0; row < size; row++) {
        for (int column = 0; column < size; column++) {
            double y = (row + 0.5) / size;
            double x = (column + 0.5) / size;
            double dy = y - 0.5, dx = x - 0.5;
            size_t at = (size_t)row * (size_t)size + (size_t)column;
            out[at] = y;
            out[plane + at] = x;
            out[2 * plane + at] = atan2(dy, dx) / (2.0 * pi) + 0.5;
            out[3 * plane + at] = sqrt(dy * dy + dx * dx) / sqrt(0.5);
        }
    }
}

void arr_coc_reference_texture(const struct arr_coc_reference_dims *dims, const unsigned char *rgb8,
                               int height, int width, double *out_texture)
{
    size_t plane = pixels(dims);
    double *gray = scratch(plane, sizeof *gray);
    resize(rgb8, height, width, dims->size, out_texture);
    colours(dims->size, out_texture, out_texture + 3 * plane, gray);
    gradients(dims->size, gray, out_texture + 6 * plane);
    positions(dims->size, out_texture + 9 * plane);
    free(gray);
}

// Stage 2: relevance.

// First pixel of patch `index`; rows are `dims->size` apart.
static size_t patch_origin(const struct arr_coc_reference_dims *dims, int index)
{
    int side = dims->size / dims->grid;
    int row = index / dims->grid * side;
    int column = index % dims->grid * side;
    return (size_t)row * (size_t)dims->size + (size_t)column;
}

static void patch_means(const struct arr_coc_reference_dims *dims, const double *channel,
                        double *out)
{
    int side = dims->size / dims->grid;
    for (int index = 0; index < dims->grid * dims->grid; index++) {
        const double *patch = channel + patch_origin(dims, index);
        double sum = 0.0;
        for (int row = 0; row < side; row++)
            for (int column = 0; column < side; column++)
                sum += patch[(size_t)row * (size_t)dims->size + (size_t)column];
        out[index] = sum / ((double)side * side);
    }
}

static void bin_add(int64_t bins[BINS], double v)
{
    double t = 31.0 * v;
    int k = (int)floor(t);
    k = k < 30 ? k : 30;
    int weight = (int)floor(WEIGHT * (t - k) + 0.5);
    bins[k] += WEIGHT - weight;
    bins[k + 1] += weight;
}

static double entropy_of(const int64_t bins[BINS], double total)
{
    double sum = 0.0;
    for (int i = 0; i < BINS; i++) {
        double p = (double)bins[i] / total;
        if (p > 0.0)
            sum -= p * log2(p);
    }
    return sum / 5.0;
}

void arr_coc_reference_entropy(const struct arr_coc_reference_dims *dims, const double *lightness,
                               double *out)
{
    const int side = dims->size / dims->grid;
    for (int index = 0; index < dims->grid * dims->grid; index++) {
        const double *patch = lightness + patch_origin(dims, index);
        int64_t bins[BINS] = {0};
        for (int row = 0; row < side; row++)
            for (int column = 0; column < side; column++)
                bin_add(bins, patch[(size_t)row * (size_t)dims->size + (size_t)column]);
        out[index] = entropy_of(bins, (double)WEIGHT * side * side);
    }
}

static void norm(double *values, int count)
{
    double low = values[0], high = values[0];
    for (int i = 1; i < count; i++) {
        low = fmin(low, values[i]);
        high = fmax(high, values[i]);
    }
    for (int i = 0; i < count; i++)
        values[i] = (values[i] - low) / (high - low + 1e-8);
}

// out = weight [rows, columns] times in, plus bias.
static void linear(const float *weight, const float *bias, int rows, int columns, const double *in,
                   double *out)
{
    for (int row = 0; row < rows; row++) {
        double sum = 0.0;
        for (int column = 0; column < columns; column++)
            sum += (double)weight[(size_t)row * (size_t)columns + (size_t)column] * in[column];
        out[row] = sum + (double)bias[row];
    }
}

static void relu(double *values, int count)
{
    for (int i = 0; i < count; i++)
        values[i] = fmax(values[i], 0.0);
}

static double dot(const double *a, const double *b, int count)
{
    double sum = 0.0;
    for (int i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

// (1 + cos(f, q)) / 2 for every patch. `means` is [13, G, G].
static void participatory(const struct arr_coc_reference_dims *dims,
                          const struct arr_coc_tensors *weights, const double *means,
                          const double *query, double *out)
{
    int count = dims->grid * dims->grid;
    double *f = scratch((size_t)dims->query, sizeof *f);
    double query_length = sqrt(dot(query, query, dims->query));
    for (int i = 0; i < count; i++) {
        double m[ARR_COC_REFERENCE_CHANNELS], h[ARR_COC_REFERENCE_HIDDEN];
        for (int c = 0; c < ARR_COC_REFERENCE_CHANNELS; c++)
            m[c] = means[(size_t)c * (size_t)count + (size_t)i];
        linear(weights->participatory_0_weight, weights->participatory_0_bias,
               ARR_COC_REFERENCE_HIDDEN, ARR_COC_REFERENCE_CHANNELS, m, h);
        relu(h, ARR_COC_REFERENCE_HIDDEN);
        linear(weights->participatory_2_weight, weights->participatory_2_bias, dims->query,
               ARR_COC_REFERENCE_HIDDEN, h, f);
        double lengths = sqrt(dot(f, f, dims->query)) * query_length;
        double cosine = dot(f, query, dims->query) / fmax(lengths, 1e-12);
        out[i] = (1.0 + cosine) / 2.0;
    }
    free(f);
}

// Mean, maximum and standard deviation (n - 1) of one score.
static void statistics(const double *score, int count, double out[3])
{
    double sum = 0.0, high = score[0], squares = 0.0;
    for (int i = 0; i < count; i++) {
        sum += score[i];
        high = fmax(high, score[i]);
    }
    double mean = sum / count;
    for (int i = 0; i < count; i++)
        squares += (score[i] - mean) * (score[i] - mean);
    out[0] = mean;
    out[1] = high;
    out[2] = count > 1 ? sqrt(squares / (count - 1)) : 0.0;
}

static void softmax3(double values[3])
{
    double high = fmax(values[0], fmax(values[1], values[2]));
    double sum = 0.0;
    for (int i = 0; i < 3; i++) {
        values[i] = exp(values[i] - high);
        sum += values[i];
    }
    for (int i = 0; i < 3; i++)
        values[i] /= sum;
}

static void balance(const struct arr_coc_reference_dims *dims,
                    const struct arr_coc_tensors *weights, const double *scores,
                    const double *query, double out[3])
{
    enum {
        WIDTH = ARR_COC_REFERENCE_BALANCER,
        FRONT = ARR_COC_REFERENCE_STATISTICS
    };
    int count = dims->grid * dims->grid;
    double *z = scratch((size_t)(FRONT + dims->query), sizeof *z);
    double first[WIDTH], second[WIDTH];
    for (int s = 0; s < 3; s++)
        statistics(scores + (size_t)s * (size_t)count, count, z + 3 * s);
    memcpy(z + FRONT, query, (size_t)dims->query * sizeof *z);

    linear(weights->balancer_0_weight, weights->balancer_0_bias, WIDTH, FRONT + dims->query, z,
           first);
    relu(first, WIDTH);
    linear(weights->balancer_2_weight, weights->balancer_2_bias, WIDTH, WIDTH, first, second);
    relu(second, WIDTH);
    linear(weights->balancer_4_weight, weights->balancer_4_bias, 3, WIDTH, second, out);
    softmax3(out);
    free(z);
}

void arr_coc_reference_relevance(const struct arr_coc_reference_dims *dims,
                                 const struct arr_coc_tensors *weights, const double *texture,
                                 const float *query, double *out_scores, double out_balance[3],
                                 double *out_relevance)
{
    size_t plane = pixels(dims);
    int count = dims->grid * dims->grid;
    double *means = scratch((size_t)(ARR_COC_REFERENCE_CHANNELS * count), sizeof *means);
    double *q = scratch((size_t)dims->query, sizeof *q);
    for (int i = 0; i < dims->query; i++)
        q[i] = (double)query[i];
    for (int c = 0; c < ARR_COC_REFERENCE_CHANNELS; c++) {
        patch_means(dims, texture + (size_t)c * plane, means + (size_t)c * (size_t)count);
    }

    double *propositional = out_scores;
    double *perspectival = out_scores + count;
    double *participating = out_scores + 2 * (size_t)count;
    arr_coc_reference_entropy(dims, texture + 3 * plane, propositional);
    norm(propositional, count);
    memcpy(perspectival, means + 8 * (size_t)count, (size_t)count * sizeof *means);
    norm(perspectival, count);
    participatory(dims, weights, means, q, participating);

    balance(dims, weights, out_scores, q, out_balance);
    for (int i = 0; i < count; i++) {
        out_relevance[i] = out_balance[0] * propositional[i] + out_balance[1] * perspectival[i] +
                           out_balance[2] * participating[i];
    }
    norm(out_relevance, count);
    free(q);
    free(means);
}

// Stage 3: compression.

// How much of pixel `pixel` is inside cell `cell` along one axis, in units of
// 1/side of a pixel: a cell spans `pixel_count` of these, a pixel spans `side`,
// and every coverage is a whole number.
static int coverage(int pixel, int cell, int pixel_count, int side)
{
    int first = pixel * side, end = first + side;
    int cell_first = cell * pixel_count, cell_end = cell_first + pixel_count;
    first = first > cell_first ? first : cell_first;
    end = end < cell_end ? end : cell_end;
    return end > first ? end - first : 0;
}

// Mean over one cell of a patch of pixel_count x pixel_count pixels.
static double cell_mean(const double *patch, size_t pitch, int pixel_count, int side, int cell_row,
                        int cell_column)
{
    double sum = 0.0;
    for (int y = 0; y < pixel_count; y++) {
        int height = coverage(y, cell_row, pixel_count, side);
        for (int x = 0; x < pixel_count && height > 0; x++) {
            int width = coverage(x, cell_column, pixel_count, side);
            sum += patch[(size_t)y * pitch + (size_t)x] * (height * width);
        }
    }
    return sum / ((double)pixel_count * pixel_count);
}

static void compress_patch(const struct arr_coc_reference_dims *dims, const double *texture,
                           const int32_t patch[3], double *out_tokens)
{
    size_t plane = pixels(dims);
    size_t origin = patch_origin(dims, patch[0]);
    int side = patch[1];
    for (int cell = 0; cell < side * side; cell++) {
        double *token = out_tokens + (size_t)(patch[2] + cell) * ARR_COC_REFERENCE_CHANNELS;
        for (int c = 0; c < ARR_COC_REFERENCE_CHANNELS; c++) {
            token[c] = cell_mean(texture + (size_t)c * plane + origin, (size_t)dims->size,
                                 dims->size / dims->grid, side, cell / side, cell % side);
        }
    }
}

void arr_coc_reference_compress(const struct arr_coc_reference_dims *dims, const double *texture,
                                const int32_t *patches, int patch_count, double *out_tokens)
{
    for (int i = 0; i < patch_count; i++)
        compress_patch(dims, texture, patches + 3 * (size_t)i, out_tokens);
}
