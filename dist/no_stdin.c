// The replacement of stdin inside the delivered libraries: see BUILD.
#include <stdio.h>

extern FILE *weir__no_stdin;
FILE *weir__no_stdin;
