// Reading: the first allocation that fails is answered from a reserve, and ends the text: what follows of it is
// zeros, which are no JSON outside and inside of strings. jansson's scanner reads one character more at
// most before it sees them, so that one reserve is enough, and every other failure is one that jansson
// answers itself.
#include "base/json/json.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// Of the text that is being read; what comes after the functions is its thread's.
static struct {
    _Atomic(uintptr_t) reader;       // 0: none
    _Atomic(json_malloc_t) allocate; // jansson's own before
    _Atomic(json_free_t) release;
    char *text; // a copy
    size_t size;
    char *reserve;
    size_t reserve_size;
    bool failed;
} now;

static bool is_reader(void)
{
    return atomic_load_explicit(&now.reader, memory_order_relaxed) == (uintptr_t)pthread_self();
}

static void *allocate(size_t size)
{
    void *block = now.allocate(size);
    if (block || !is_reader() || now.failed)
        return block;
    now.failed = true;
    memset(now.text, 0, now.size);
    return size <= now.reserve_size ? now.reserve : NULL;
}

static void release(void *block)
{
    if (!is_reader() || block != now.reserve)
        now.release(block);
}

static void tell_no_memory(json_error_t *error)
{
    if (!error)
        return;
    snprintf(error->text, sizeof error->text, "no memory is left for it");
    error->text[sizeof error->text - 1] = json_error_out_of_memory;
}

json_t *weir_json_load(const char *text, size_t size, size_t flags, json_error_t *error)
{
    // The scanner's buffer doubles when a token does not fit into it.
    const size_t copied = (size + 15) / 16 * 16;
    const size_t reserve_size = 2 * size + 64;
    char *block = size < SIZE_MAX / 8 ? malloc(copied + reserve_size) : NULL;
    if (!block) {
        if (error)
            *error = (json_error_t){.line = 1};
        tell_no_memory(error);
        return NULL;
    }
    memcpy(block, text, size);
    pthread_mutex_lock(&lock);
    json_malloc_t before_allocate;
    json_free_t before_release;
    json_get_alloc_funcs(&before_allocate, &before_release);
    now.allocate = before_allocate;
    now.release = before_release;
    now.text = block;
    now.size = size;
    now.reserve = block + copied;
    now.reserve_size = reserve_size;
    now.failed = false;
    atomic_store_explicit(&now.reader, (uintptr_t)pthread_self(), memory_order_relaxed);
    json_set_alloc_funcs(allocate, release);
    json_t *value = json_loadb(block, size, flags, error);
    if (now.failed) {
        json_decref(value);
        value = NULL;
    }
    json_set_alloc_funcs(before_allocate, before_release);
    atomic_store_explicit(&now.reader, 0, memory_order_relaxed);
    if (now.failed)
        tell_no_memory(error);
    pthread_mutex_unlock(&lock);
    free(block);
    return value;
}

void weir_json_set(json_t *object, const char *key, json_t *value, bool *ok)
{
    if (json_object_set_new(object, key, value) != 0)
        *ok = false;
}

void weir_json_append(json_t *array, json_t *value, bool *ok)
{
    if (json_array_append_new(array, value) != 0)
        *ok = false;
}

json_t *weir_json_count(uint64_t number)
{
    return json_integer(number > INT64_MAX ? INT64_MAX : (json_int_t)number);
}

// json_dumps() loses bytes silently when memory runs out on the way, so the text is measured first.
static char *text_of(const json_t *value, size_t flags, size_t *out_size)
{
    const size_t size = json_dumpb(value, NULL, 0, flags);
    char *text = size > 0 ? malloc(size + 2) : NULL;
    if (!text)
        return NULL;
    if (json_dumpb(value, text, size, flags) != size) {
        free(text);
        return NULL;
    }
    memcpy(text + size, "\n", 2);
    *out_size = size + 1;
    return text;
}

// jansson writes numbers in the thread's locale and then corrects the decimal point.
char *weir_json_text(json_t *value, bool ok, size_t flags, size_t *out_size)
{
    size_t size = 0;
    const locale_t before = weir_c_locale_enter();
    char *text = ok && value ? text_of(value, flags, &size) : NULL;
    weir_c_locale_leave(before);
    json_decref(value);
    if (out_size)
        *out_size = size;
    return text;
}
