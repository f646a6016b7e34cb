// weir.findings(), what the plugin check has found in all runtimes since the last call; what a runtime has found is
// taken before it closes. And how many are open, for the plugin of pytest.
#include "weir_py.h"

static struct wp_runtime
    *runtimes;         // that are open; their findings from `told` on are still to be given
static PyObject *kept; // a list

static bool counts(PyObject *finding)
{
    return PyDict_GetItemString(finding, "hint") == Py_False &&
           PyDict_GetItemString(finding, "suppression") == Py_None;
}

// Moves what the runtime has found since the last time to `kept`. False with an exception.
static bool take(struct wp_runtime *runtime)
{
    kept = kept ? kept : PyList_New(0);
    PyObject *all = kept ? wp_runtime_findings(runtime) : NULL;
    if (!all)
        return false;
    bool added = true;
    const size_t count = (size_t)PyList_Size(all);
    for (; added && runtime->told < count; runtime->told++) {
        PyObject *finding = PyList_GetItem(all, (Py_ssize_t)runtime->told);
        added = !counts(finding) || PyList_Append(kept, finding) == 0;
    }
    Py_DECREF(all);
    return added;
}

void wp_findings_watch(struct wp_runtime *runtime)
{
    runtime->next = runtimes;
    runtimes = runtime;
}

void wp_findings_end(struct wp_runtime *runtime)
{
    if (!take(runtime))
        PyErr_WriteUnraisable((PyObject *)runtime);
    struct wp_runtime **at = &runtimes;
    while (*at && *at != runtime)
        at = &(*at)->next;
    if (*at)
        *at = runtime->next;
}

PyObject *wp_findings(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    for (struct wp_runtime *runtime = runtimes; runtime; runtime = runtime->next)
        if (!take(runtime))
            return NULL;
    PyObject *taken = kept;
    kept = NULL;
    return taken ? taken : PyList_New(0);
}

PyObject *wp_open_runtimes(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    long count = 0;
    for (const struct wp_runtime *runtime = runtimes; runtime; runtime = runtime->next)
        count++;
    return PyLong_FromLong(count);
}
