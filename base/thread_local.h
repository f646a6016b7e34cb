// Thread-local variables of a module.
#ifndef WEIR_BASE_THREAD_LOCAL_H
#define WEIR_BASE_THREAD_LOCAL_H

// Of a library that was opened at run time a thread's first use of such a variable allocates, and the C
// library ends the process if there is no memory. With this model the loader makes room in every thread
// when it opens the module, or refuses to. That room is small (a process has about 1,600 bytes for all
// libraries that it opens), so a module takes little: 160 bytes at
// most.
#define WEIR_MODULE_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

#endif
