// Has one defect of each kind that a sanitizer finds. sanitizer_test.sh runs it
// and checks that the sanitizers of this build report it, and that the other
// builds report none: so a configuration that silently checks nothing is
// noticed.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ADDRESS "address "
#else
#define HAS_ADDRESS ""
#endif
#if defined(__SANITIZE_THREAD__)
#define HAS_THREAD "thread "
#else
#define HAS_THREAD ""
#endif
// gcc has no macro of its own for this one; .bazelrc defines it.
#if defined(WEIR_SANITIZE_UNDEFINED)
#define HAS_UNDEFINED "undefined "
#else
#define HAS_UNDEFINED ""
#endif

static void *volatile lost;
static int shared;

static int overflow(int count)
{
    unsigned char *bytes = malloc((size_t)count);
    bytes[count - 1] = 1;
    int sum = bytes[count - 1];
    // Uses a volatile index, or the compiler would notice the defect.
    volatile int past = count;
    sum += bytes[past];
    free(bytes);
    return sum;
}

static int leak(int count)
{
    lost = malloc((size_t)count);
    lost = NULL;
    return 0;
}

static int undefined(int count)
{
    volatile int big = 0x7fffffff;
    return big + count;
}

static void *add(void *unused)
{
    for (int i = 0; i < 1000; i++)
        shared++;
    return NULL;
}

static int race(int count)
{
    pthread_t other;
    if (pthread_create(&other, NULL, add, NULL) != 0)
        return 0;
    add(NULL);
    pthread_join(other, NULL);
    return shared + count;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int result = 0;
    if (strcmp(what, "sanitizers") == 0)
        puts(HAS_ADDRESS HAS_UNDEFINED HAS_THREAD);
    else if (strcmp(what, "overflow") == 0)
        result = overflow(argc + 10);
    else if (strcmp(what, "leak") == 0)
        result = leak(argc + 10);
    else if (strcmp(what, "undefined") == 0)
        result = undefined(argc);
    else if (strcmp(what, "race") == 0)
        result = race(argc);
    else
        return 3;
    return result == -1 ? 1 : 0;
}
