// Marks a function that is called only on rare paths. The compiler places calls of it, and the code
// that leads to them, apart from the rest: a call of the library runs between calls of a driver
// that fill the instruction cache, so its cost is mostly the cache lines that it touches.
//
// WEIR_APART: one that is not made a part of its only caller, all of whose calls would set up its frame.
// WEIR_INLINE: one that is made a part of its callers, one of which is on such a path, however long it is.
#ifndef WEIR_BASE_COLD_H
#define WEIR_BASE_COLD_H

//
// WEIR_RARELY(condition): the condition, which is seldom true; for branches that call no cold function.
#if defined(__GNUC__)
#define WEIR_COLD __attribute__((cold))
#define WEIR_APART __attribute__((noinline))
#define WEIR_INLINE inline __attribute__((always_inline))
#define WEIR_RARELY(condition) __builtin_expect(!!(condition), 0)
#else
#define WEIR_COLD
#define WEIR_APART
#define WEIR_INLINE inline
#define WEIR_RARELY(condition) (condition)
#endif

#endif
