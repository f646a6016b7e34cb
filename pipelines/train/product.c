// A result with few tiles and a great depth is made in parts: a weight of a convolution has a few
// thousand numbers, and its depth is all places of all samples. The parts depend on sizes alone, so
// the order of the sums is the same on every device.
#include "pipelines/train/product.h"

#include "kernels/train/tile.cl.h"

enum {
    TILES_ENOUGH = 128,
    SPAN_LEAST = 1024
};

static uint32_t ceil_div(uint32_t value, uint32_t by)
{
    return value / by + (value % by > 0);
}

uint64_t train_product_divide(struct train_product *p)
{
    const uint64_t tiles = (uint64_t)ceil_div(p->m, TRAIN_TILE) * ceil_div(p->n, TRAIN_TILE);
    uint32_t parts = 1;
    if (tiles < TILES_ENOUGH && p->k >= 2 * SPAN_LEAST) {
        const uint32_t wanted = (uint32_t)(TILES_ENOUGH / tiles);
        const uint32_t most = p->k / SPAN_LEAST;
        parts = wanted < most ? wanted : most;
    }
    p->span = ceil_div(ceil_div(p->k, parts), TRAIN_DEPTH) * TRAIN_DEPTH;
    p->parts = ceil_div(p->k, p->span);
    return p->parts > 1 ? (uint64_t)p->parts * p->m * p->n * sizeof(float) : 0;
}

static weir_status address_of(const struct train_range *range, uint64_t *out_address)
{
    struct weir_native_buffer native;
    const weir_status status = weir_buffer_get_native(range->buffer, &native);
    *out_address = status == WEIR_OK ? native.address + range->offset : 0;
    return status;
}

weir_status train_product_prepare(const struct train_engine *engine, struct train_product *p)
{
    weir_status status;
    if (!engine->blas)
        return WEIR_OK;
    p->native = (struct train_blas_product){.blas = engine->blas,
                                            .m = p->m,
                                            .n = p->n,
                                            .k = p->k,
                                            .turned_a = p->turned_a,
                                            .turned_b = p->turned_b,
                                            .add = p->add,
                                            .bf16 = engine->bf16};
    if ((status = address_of(&p->a, &p->native.a)) || (status = address_of(&p->b, &p->native.b)))
        return status;
    return address_of(&p->c, &p->native.c);
}

static struct weir_argument in(const struct train_range *range)
{
    return weir_in(range->buffer, range->offset, range->size);
}

static struct weir_argument result(const struct train_range *range, bool add)
{
    return add ? weir_inout(range->buffer, range->offset, range->size)
               : weir_out(range->buffer, range->offset, range->size);
}

// Adds up `count` numbers of each of `parts` parts.
static weir_status sum_parts(const struct train_engine *engine, weir_queue *queue, uint32_t parts,
                             uint32_t count, const struct train_range *to, bool add)
{
    return weir_queue_launch_count(queue, engine->sum_parts, count,
                                   weir_in(engine->parts, 0, (size_t)parts * count * sizeof(float)),
                                   result(to, add), count, parts, add);
}

static weir_status launch(const struct train_engine *engine, weir_queue *queue,
                          const struct train_product *p, struct weir_argument out, bool add)
{
    const struct weir_extent grid =
        weir_dim(ceil_div(p->n, TRAIN_TILE), ceil_div(p->m, TRAIN_TILE), p->parts);
    const uint32_t turned =
        (p->turned_a ? TRAIN_TURNED_A : 0u) | (p->turned_b ? TRAIN_TURNED_B : 0u);
    return weir_queue_launch(queue, engine->product, grid, weir_dim(TRAIN_BLOCK, TRAIN_BLOCK, 1),
                             in(&p->a), in(&p->b), out, p->m, p->n, p->k, p->span, turned, add);
}

weir_status train_product_submit(const struct train_engine *engine, weir_queue *queue,
                                 struct train_product *p)
{
    if (engine->blas)
        return weir_queue_native(queue, train_blas_multiply, &p->native, in(&p->a), in(&p->b),
                                 result(&p->c, p->add));
    if (p->parts == 1)
        return launch(engine, queue, p, result(&p->c, p->add), p->add);
    const uint32_t count = p->m * p->n;
    const size_t bytes = (size_t)p->parts * count * sizeof(float);
    const weir_status status = launch(engine, queue, p, weir_out(engine->parts, 0, bytes), false);
    if (status != WEIR_OK)
        return status;
    return sum_parts(engine, queue, p->parts, count, &p->c, p->add);
}

// Columns.

static uint32_t column_parts(uint32_t rows, uint32_t *out_span)
{
    const uint32_t most = rows / SPAN_LEAST > 1 ? rows / SPAN_LEAST : 1;
    *out_span = ceil_div(rows, most < TILES_ENOUGH ? most : TILES_ENOUGH);
    return ceil_div(rows, *out_span);
}

uint64_t train_columns_divide(uint32_t rows, uint32_t columns)
{
    uint32_t span;
    const uint32_t parts = column_parts(rows, &span);
    return parts > 1 ? (uint64_t)parts * columns * sizeof(float) : 0;
}

weir_status train_columns_submit(const struct train_engine *engine, weir_queue *queue,
                                 const struct train_columns *c)
{
    uint32_t span;
    const uint32_t parts = column_parts(c->rows, &span);
    const size_t bytes = (size_t)parts * c->columns * sizeof(float);
    const struct weir_argument out =
        parts > 1 ? weir_out(engine->parts, 0, bytes) : result(&c->to, c->add);
    const weir_status status =
        weir_queue_launch(queue, engine->column_sums,
                          weir_dim(ceil_div(c->columns, TRAIN_SUM_COLUMNS), parts, 1),
                          weir_dim(TRAIN_SUM_COLUMNS, TRAIN_SUM_ROWS, 1), in(&c->from), out,
                          c->rows, c->columns, span, parts == 1 && c->add);
    if (status != WEIR_OK || parts == 1)
        return status;
    return sum_parts(engine, queue, parts, c->columns, &c->to, c->add);
}
