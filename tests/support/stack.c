// See the header.
#define _GNU_SOURCE // pthread_getattr_np
#include "tests/support/stack.h"

#include <pthread.h>
#include <stdint.h>

enum {
    NOTICEABLE = 4096
};

static size_t bytes_in_use(void)
{
    pthread_attr_t attributes;
    void *lowest = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return SIZE_MAX;
    pthread_attr_getstack(&attributes, &lowest, &size);
    pthread_attr_destroy(&attributes);
    return (uintptr_t)lowest + size - (uintptr_t)__builtin_frame_address(0);
}

void weir_test_stack_note(struct weir_test_stack *stack)
{
    const size_t bytes = bytes_in_use();
    size_t known = atomic_load(&stack->most);
    while (known < bytes && !atomic_compare_exchange_weak(&stack->most, &known, bytes))
        continue;
    known = atomic_load(&stack->least);
    while ((known == 0 || known > bytes) &&
           !atomic_compare_exchange_weak(&stack->least, &known, bytes))
        continue;
}

bool weir_test_stack_is_flat(const struct weir_test_stack *stack)
{
    const size_t least = atomic_load(&stack->least);
    return least > 0 && atomic_load(&stack->most) < least + NOTICEABLE;
}
