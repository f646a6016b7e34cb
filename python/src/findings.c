// What the plugin check has found: weir.findings(). Those of a runtime are taken before it closes.
#include <weir/check.h>

#include "weir_py.h"

static struct wp_runtime
    *runtimes;         // that are open, with findings from `told` on that nobody has asked for
static PyObject *kept; // the list of findings of runtimes that have closed
static PyTypeObject *finding_type;

static PyStructSequence_Field fields[] = {
    {"kind", "\"read-after-write\""},
    {"count", "how often the two lines were found"},
    {"message", "what is wrong, with both lines"},
    {"remedy", "what to add, and where"},
    {"buffer", "the label of the memory"},
    {"first", "(file, line) of the use that was submitted earlier; ('', 0): not known"},
    {"second", "(file, line) of the other use"},
    {NULL, NULL},
};
static PyStructSequence_Desc description = {"weir.Finding",
                                            "Two uses of the same bytes that nothing orders.",
                                            fields, 7};

bool wp_findings_types(PyObject *module)
{
    finding_type = PyStructSequence_NewType(&description);
    kept = kept ? kept : PyList_New(0);
    return finding_type && kept && PyModule_AddType(module, finding_type) == 0;
}

static PyObject *place(const struct weir_check_use *use)
{
    return Py_BuildValue("(si)", use->file, use->line);
}

static PyObject *make(const struct weir_check_finding *finding)
{
    PyObject *made = PyStructSequence_New(finding_type);
    PyObject *values[] = {
        PyUnicode_FromString(weir_check_kind_name(finding->kind)),
        PyLong_FromUnsignedLongLong(finding->count),
        wp_text(finding->message),
        wp_text(finding->remedy),
        PyUnicode_FromString(finding->buffer),
        place(&finding->first),
        place(&finding->second),
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (made && values[i])
            PyStructSequence_SetItem(made, (Py_ssize_t)i, values[i]);
        else
            Py_XDECREF(values[i]);
    }
    if (PyErr_Occurred())
        Py_CLEAR(made);
    return made;
}

// Moves what the runtime has found since the last time to `kept`. False with an exception.
static bool take(struct wp_runtime *runtime)
{
    const size_t count = weir_check_count(runtime->handle);
    for (; runtime->told < count; runtime->told++) {
        struct weir_check_finding finding;
        if (weir_check_get(runtime->handle, runtime->told, &finding) != WEIR_OK ||
            finding.kind >= WEIR_CHECK_FIRST_HINT || finding.suppression)
            continue;
        PyObject *made = make(&finding);
        const int status = made ? PyList_Append(kept, made) : -1;
        Py_XDECREF(made);
        if (status != 0)
            return false;
    }
    return true;
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
    for (struct wp_runtime **at = &runtimes; *at; at = &(*at)->next) {
        if (*at != runtime)
            continue;
        *at = runtime->next;
        return;
    }
}

PyObject *wp_findings(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    for (struct wp_runtime *runtime = runtimes; runtime; runtime = runtime->next)
        if (!take(runtime))
            return NULL;
    PyObject *fresh = PyList_New(0);
    if (!fresh)
        return NULL;
    PyObject *taken = kept;
    kept = fresh;
    return taken;
}
