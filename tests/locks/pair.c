// See the header.
#include "tests/locks/pair.h"

#include <pthread.h>
#include <unistd.h>

weir_runtime *pair_runtime;
weir_device *pair_device;
weir_queue *pair_queue;
weir_buffer *pair_bytes;

static int ends[2];
static const struct pair *current;
static bool is_mended;

void pair_must(weir_status status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s: %s\n", current ? current->name : "", weir_last_error_text());
    exit(2);
}

// Two lines are one finding, however often it is found, so each pair has lines of its own.
static void use(weir_access access)
{
    void *pointer;
    pair_must(
        weir_host_begin_at(pair_bytes, 0, PAIR_SIZE, access, &pointer, current->name, (int)access));
    pair_must(weir_host_end_at(pair_bytes, 0, PAIR_SIZE, access, current->name, (int)access));
}

void pair_write(void)
{
    use(WEIR_ACCESS_WRITE);
}

void pair_read(void)
{
    use(WEIR_ACCESS_READ);
}

void pair_send(void)
{
    if (write(ends[1], "", 1) != 1)
        exit(2);
}

void pair_receive(void)
{
    char byte;
    if (read(ends[0], &byte, 1) != 1)
        exit(2);
}

static void *first(void *user)
{
    (current->writes ? pair_read : pair_write)();
    if (current->meets)
        pair_send();
    current->give(is_mended);
    if (!current->meets)
        pair_send();
    return NULL;
}

static void *second(void *user)
{
    pair_receive();
    current->take(is_mended);
    (current->writes ? pair_write : pair_read)();
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, first, NULL) != 0 ||
        pthread_create(&threads[1], NULL, second, NULL) != 0)
        exit(2);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

static weir_buffer *make_buffer(void)
{
    weir_buffer *buffer;
    const unsigned char zero = 0;
    pair_must(weir_buffer_create(pair_device,
                                 WEIR_PARAMS(weir_buffer, .size = PAIR_SIZE,
                                             .placement = WEIR_PLACE_HOST),
                                 &buffer));
    pair_must(weir_queue_fill(pair_queue, buffer, 0, PAIR_SIZE, &zero, 1));
    pair_must(weir_queue_sync(pair_queue, WEIR_FOREVER));
    return buffer;
}

// Returns whether what is found is right.
static bool run(const struct pair *pair)
{
    const size_t before = weir_check_count(pair_runtime);
    current = pair;
    pair_must(weir_queue_create(pair_device, NULL, &pair_queue));
    pair_bytes = make_buffer();
    if (pair->run)
        pair->run(is_mended);
    else
        run_threads();
    pair_must(weir_queue_sync(pair_queue, WEIR_FOREVER));
    weir_buffer_destroy(&pair_bytes);
    weir_queue_destroy(&pair_queue);
    const size_t found = weir_check_count(pair_runtime) - before;
    if (found == (is_mended ? 0 : 1))
        return true;
    printf("%s, %s: %zu findings\n", pair->name, is_mended ? "mended" : "broken", found);
    for (size_t i = before; i < before + found; i++) {
        struct weir_check_finding finding;
        pair_must(weir_check_get(pair_runtime, i, &finding));
        printf("  %s\n", finding.message);
    }
    return false;
}

int pair_main(const struct pair *pairs, size_t count, int argc, char **argv)
{
    size_t wrong = 0;
    size_t ran = 0;
    is_mended = argc > 1 && strcmp(argv[1], "mended") == 0;
    if (pipe(ends) != 0)
        return 2;
    pair_must(weir_open(NULL, &pair_runtime));
    pair_must(weir_device_open(pair_runtime, NULL, &pair_device));
    for (size_t i = 0; i < count; i++) {
        if (argc > 2 && strcmp(argv[2], pairs[i].name) != 0)
            continue;
        ran++;
        wrong += !run(&pairs[i]);
    }
    pair_must(weir_device_close(&pair_device));
    pair_must(weir_close(&pair_runtime));
    printf("%zu pairs, %zu differ\n", ran, wrong);
    return wrong ? 3 : 0;
}
