// Which functions of a C text lead to another one, and the block that signatures lie in.
//
// Threads: safe; the functions keep no state.
#ifndef WEIR_KIT_CALLS_H
#define WEIR_KIT_CALLS_H

#include <stdbool.h>
#include <weir/kit/signature.h>

// Whether function `from`, which the text defines, may come to `to`: its body names that, or names a
// function or a macro whose body does, and so on. This is no compiler: every branch of an #if counts,
// and so does a name that is not called. If the text does not mention `to` the answer is false; else,
// where it cannot tell (`from` is made by a macro, braces are not balanced, no memory), true.
bool weir_calls(const char *text, const char *from, const char *to);

// One block, which one call frees, for the structure, its arrays and `text_bytes` at `*out_text`; NULL if out of
// memory.
struct weir_kit_signatures *weir_signatures_make(const struct weir_host *host, size_t kernels,
                                                 size_t parameters, size_t text_bytes,
                                                 char **out_text);

#endif
