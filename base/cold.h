// Marks a function that is not called when all is well. The compiler lays calls of it,
// and what leads to them, away from the rest: a call of the library runs between calls
// of a driver that fill the instruction cache, so the lines that it touches are what
// it costs.
#ifndef WEIR_BASE_COLD_H
#define WEIR_BASE_COLD_H

#if defined(__GNUC__)
#define WEIR_COLD __attribute__((cold))
#else
#define WEIR_COLD
#endif

#endif
