#include "tests/patterns/buckets_rig.h"

void buckets_rig_open(struct buckets_rig *rig, uint32_t ranks)
{
    static const struct {
        const char *name;
        size_t count;
    } model[BUCKETS_RIG_PARAMETERS] = {
        {"head.bias", 10},    {"head.weight", 190}, {"gate", 33},
        {"body.weight", 700}, {"stem.bias", 7},     {"stem.weight", BUCKETS_RIG_MOST},
    };
    *rig = (struct buckets_rig){.params = {.struct_size = sizeof rig->params,
                                           .label = "grads",
                                           .element = WEIR_F32,
                                           .parameters = rig->parameters,
                                           .parameter_count = BUCKETS_RIG_PARAMETERS,
                                           .parameter_size = sizeof *rig->parameters,
                                           .cap_bytes = 4096,
                                           .first_bytes = 900}};
    for (uint32_t i = 0; i < BUCKETS_RIG_PARAMETERS; i++)
        rig->parameters[i] = (struct weir_bucket_parameter){.struct_size = sizeof *rig->parameters,
                                                            .name = model[i].name,
                                                            .count = model[i].count,
                                                            .optional = i == 2};
    comm_rig_open(&rig->comm, NULL, ranks, WEIR_PLACE_HOST);
}

void buckets_rig_create(struct buckets_rig *rig)
{
    if (weir_buckets_create_all(&rig->params, rig->comm.comms, rig->comm.count, rig->buckets))
        WEIR_FAIL("%s", weir_last_error_text());
}

void buckets_rig_close(struct buckets_rig *rig)
{
    for (uint32_t rank = 0; rank < COMM_RIG_MOST; rank++)
        weir_buckets_destroy(&rig->buckets[rank]);
    comm_rig_close(&rig->comm);
}

float buckets_rig_number(uint32_t rank, uint32_t parameter, size_t element)
{
    return (float)((rank + 1) * (parameter + 1)) + (float)(element % 13);
}

static void write_numbers(struct buckets_rig *rig, uint32_t rank, uint32_t parameter, float factor)
{
    float numbers[BUCKETS_RIG_MOST];
    struct weir_bucket_view view;
    ASSERT_OK(weir_buckets_get_view(rig->buckets[rank], parameter, &view));
    for (size_t i = 0; i < rig->parameters[parameter].count; i++)
        numbers[i] = factor * buckets_rig_number(rank, parameter, i);
    EXPECT_OK(weir_upload(rig->comm.queues[rank], view.buffer, view.offset, numbers, view.size));
}

void buckets_rig_mark(struct buckets_rig *rig, uint32_t rank, uint32_t parameter, float factor)
{
    write_numbers(rig, rank, parameter, factor);
    EXPECT_OK(weir_buckets_ready(rig->buckets[rank], parameter, rig->comm.queues[rank]));
}

void buckets_rig_step(struct buckets_rig *rig, float factor)
{
    for (uint32_t rank = 0; rank < rig->comm.count; rank++) {
        EXPECT_OK(weir_buckets_begin(rig->buckets[rank], true));
        for (uint32_t i = 0; i < BUCKETS_RIG_PARAMETERS; i++)
            buckets_rig_mark(rig, rank, i, factor);
        EXPECT_OK(weir_buckets_finish(rig->buckets[rank], rig->comm.queues[rank]));
    }
}

void buckets_rig_expect(struct buckets_rig *rig, uint32_t rank, uint32_t parameter, float factor)
{
    float found[BUCKETS_RIG_MOST] = {0};
    struct weir_bucket_view view;
    size_t wrong = 0;
    ASSERT_OK(weir_buckets_get_view(rig->buckets[rank], parameter, &view));
    ASSERT_OK(weir_download(rig->comm.queues[rank], found, view.buffer, view.offset, view.size));
    for (size_t i = 0; i < rig->parameters[parameter].count; i++) {
        float sum = 0;
        for (uint32_t other = 0; other < rig->comm.count; other++)
            sum += factor * buckets_rig_number(other, parameter, i);
        wrong += found[i] != sum / (float)rig->comm.count;
    }
    EXPECT_UINT_EQ(wrong, 0);
}

void buckets_rig_expect_all(struct buckets_rig *rig, float factor)
{
    for (uint32_t rank = 0; rank < rig->comm.count; rank++)
        for (uint32_t i = 0; i < BUCKETS_RIG_PARAMETERS; i++)
            buckets_rig_expect(rig, rank, i, factor);
}
