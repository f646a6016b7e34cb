// The calls of a library that is made for tests: they are counted, and one fails on request. The only file that
// includes this has `names` of NAME_COUNT functions before it.
#ifndef WEIR_TESTS_SUPPORT_CALLS_H
#define WEIR_TESTS_SUPPORT_CALLS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_mutex_t lock;
    size_t index; // of the function that is to fail; NAME_COUNT: none
    long left;    // calls until it fails
    long struck;
    long counts[NAME_COUNT + 1];
} calls = {.lock = PTHREAD_MUTEX_INITIALIZER, .index = NAME_COUNT};

// NAME_COUNT: there is no such function.
static inline size_t calls_index(const char *name)
{
    size_t index = 0;
    while (index < NAME_COUNT && strcmp(names[index], name) != 0)
        index++;
    return index;
}

// Counts a call. Returns whether it has to fail.
static inline bool calls_strike(const char *name)
{
    const size_t index = calls_index(name);
    pthread_mutex_lock(&calls.lock);
    calls.counts[index]++;
    const bool strikes = index < NAME_COUNT && index == calls.index && --calls.left == 0;
    calls.struck += strikes;
    pthread_mutex_unlock(&calls.lock);
    return strikes;
}

// The n-th call from now on, from 1, is to fail. NULL: none is.
static inline void calls_fail(const char *name, long n)
{
    pthread_mutex_lock(&calls.lock);
    calls.index = name ? calls_index(name) : NAME_COUNT;
    calls.left = n;
    calls.struck = 0;
    pthread_mutex_unlock(&calls.lock);
}

// The same by a variable of the environment, NAME:N or NAME:N:CODE. The code; 0: none.
static inline int calls_fail_by(const char *variable)
{
    const char *text = getenv(variable);
    char name[64];
    long n;
    int code = 0;
    if (text && sscanf(text, "%63[^:]:%ld:%d", name, &n, &code) >= 2)
        calls_fail(name, n);
    return code;
}

static inline long calls_struck(void)
{
    pthread_mutex_lock(&calls.lock);
    const long struck = calls.struck;
    pthread_mutex_unlock(&calls.lock);
    return struck;
}

// -1: there is no such function.
static inline long calls_count(const char *name)
{
    const size_t index = calls_index(name);
    pthread_mutex_lock(&calls.lock);
    const long count = index < NAME_COUNT ? calls.counts[index] : -1;
    pthread_mutex_unlock(&calls.lock);
    return count;
}

static inline const char *calls_name(size_t index)
{
    return index < NAME_COUNT ? names[index] : NULL;
}

// A control of the library's: a value or a statement, with the lock `fake_lock`. What waits looks again.
#define LOCKED(type, name, parameters, call)   \
    static type name parameters                \
    {                                          \
        pthread_mutex_lock(&fake_lock);        \
        type const result = (call);            \
        pthread_cond_broadcast(&fake_changed); \
        pthread_mutex_unlock(&fake_lock);      \
        return result;                         \
    }
#define LOCKED_VOID(name, parameters, call)    \
    static void name parameters                \
    {                                          \
        pthread_mutex_lock(&fake_lock);        \
        call;                                  \
        pthread_cond_broadcast(&fake_changed); \
        pthread_mutex_unlock(&fake_lock);      \
    }

#endif
