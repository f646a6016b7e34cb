// Marks a function that is called only on rare paths. The compiler places calls of it, and the code
// that leads to them, apart from the rest: a call of the library runs between calls of a driver
// that fill the instruction cache, so its cost is mostly the cache lines that it touches.
#ifndef WEIR_BASE_COLD_H
#define WEIR_BASE_COLD_H

#if defined(__GNUC__)
#define WEIR_COLD __attribute__((cold))
#else
#define WEIR_COLD
#endif

#endif
