"""stubs.py STUBS [types]: prints a C header of what the stubs say: what there is, its signatures and its texts.

With `types` it prints a module of the exceptions, each with the status that its comment names, and of the named tuples.

    DOC_X            the text of a class, function or method (CLASS_method), with its signature
    struct X         the arguments of a method: `self`, each parameter by its name (KINDS), and the `result` that it makes
    DEFAULTS_X       its initializer, with the parameters' defaults
    FUNCTION_X       the head of the C function: method `split` of Comm is comm_split()
    READ_X(&a)       reads the arguments: false with an exception, also where an object is closed or of another type
    RESULT_X         the method's result, of `a` and the library's `status`
    METHODS_CLASS    entries of a PyMethodDef table
    GETTERS_CLASS    entries of a PyGetSetDef table: attribute `rank` of Comm is get_Comm_rank()
    OBJECT_X(value)  the object of an attribute's value
    FIELDS_CLASS(X)  X(name, type, text) for each field of a named tuple: type is int, bool, str or tuple
"""

import ast
import inspect
import re
import sys

# Methods that are slots of their type.
SLOTS = {"__getitem__", "__len__", "__call__", "__await__"}

# How C has a parameter, and its format of PyArg_Parse(), by its annotation; "O&": with a converter, whose default is
# 0, or for None no limit. Others are objects.
KINDS = {
    "str": ("const char *", "s"),
    "str | None": ("const char *", "z"),
    "_Placement": ("weir_placement ", "O&", "wp_to_placement"),
    "_Seconds": ("uint64_t ", "O&", "wp_to_ns"),
    "_Limit": ("uint64_t ", "O&", "wp_to_limit"),
    "_Stream": ("void *", "O&", "wp_to_stream"),
    "_Color": ("int32_t ", "O&", "wp_to_color"),
    "_Dtype": ("const struct wp_dtype *", "O&", "wp_to_dtype"),
    "_Reduction": ("const char *", "s"),
    "_Mode": ("const char *", "s"),
    "_U64": ("unsigned long long ", "K"),
    "int": ("int ", "i"),
    "bool": ("int ", "p"),
    "float": ("double ", "d"),
    "_Bytes": ("size_t ", "O&", "wp_to_bytes"),
}
# How C gets the arguments: see the table of PyMethodDef in Python's manual.
HEADS = {
    "NOARGS": ("PyObject *self, PyObject *Py_UNUSED(unused)", "METH_NOARGS"),
    "O": ("PyObject *self, PyObject *arguments", "METH_O"),
    "VARARGS": ("PyObject *self, PyObject *arguments", "METH_VARARGS"),
    "KEYED": ("PyObject *self, PyObject *arguments, PyObject *keywords", "METH_VARARGS | METH_KEYWORDS"),
    "FAST": ("PyObject *self, PyObject *const *arguments, Py_ssize_t count", "METH_FASTCALL"),
}


def string(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def flags(arguments):
    positional = len(arguments.posonlyargs) - ("self" in [argument.arg for argument in arguments.posonlyargs])
    if arguments.kwonlyargs or arguments.kwarg or [each for each in arguments.args if each.arg != "self"]:
        return "KEYED"
    if arguments.vararg:
        return "FAST" if positional else "VARARGS"
    return ("NOARGS", "O")[positional] if positional < 2 else "FAST"


def parameters(arguments):
    """(name, annotation, default) of each; no default: None. '$' stands before those that need their name."""
    several = arguments.posonlyargs + arguments.args
    defaults = [None] * (len(several) - len(arguments.defaults)) + arguments.defaults
    rows = [*zip(several, defaults), ("$", None), *zip(arguments.kwonlyargs, arguments.kw_defaults)]
    for each, default in rows:
        if each == "$":
            yield "$", "", None
        elif each.arg != "self":
            yield each.arg, ast.unparse(each.annotation or ast.Constant("")), default


def value(annotation, default):
    """A default in C."""
    if len(KINDS.get(annotation, "")) == 3:
        return "WEIR_FOREVER" if default.value is None else "0"
    if default.value is None or annotation not in KINDS:
        return "NULL" if annotation in KINDS or default.value is not None else "Py_None"
    return string(default.value) if isinstance(default.value, str) else str(int(default.value))


def reader(node, name, owner, way, classes):
    """Prints what reads a method's arguments."""
    fields, targets, defaults, checks, form, local = [], [], [], [], "", []
    if owner:
        fields.append(f"{'struct wp_object' if is_object(owner, classes) else 'PyObject'} *self; ")
        checks.append("wp_usable(a->self)" if is_object(owner, classes) else "true")
    for each, annotation, default in parameters(node.args):
        if each == "$":
            form += ("$" if "|" in form else "|$") if node.args.kwonlyargs else ""
            continue
        kind, letter, *converter = KINDS.get(annotation, ("PyObject *", "O"))
        form += "|" if default is not None and "|" not in form else ""
        form += letter
        if annotation in classes and annotation != "Buffer":  # whose parts may have a closed base: wp_buffer_of()
            local.append(f"PyObject *{each} = NULL; ")
            targets.append(f", &{each}")
            kind = "struct wp_object *"
            checks.append(f"(a->{each} = wp_of({each}, &wp_{annotation.lower()}_kind, {string(each)}))")
        else:
            targets.append(f", {''.join(f'{each}, ' for each in converter)}&a->{each}")
        fields.append(f"{kind}{each}; ")
        if default is not None:
            defaults.append(f".{each} = {value(annotation, default)}, ")
    result = ast.unparse(node.returns) if node.returns else ""
    made = result.removesuffix(" | None")
    is_made = made in classes and is_object(made, classes)
    if is_made:
        fields.append(f"weir_{made.lower()} *result; ")
    label = next((f"a.{each}" for each, _, _ in parameters(node.args) if each in ("label", "name")), "NULL")
    parent = "a.self" if owner in ("Runtime", "Device") else "a.self->owner"
    parse = {
        "NOARGS": "",
        "O": f"PyArg_Parse(arguments, {string(form + ':' + node.name)}{''.join(targets)}) && ",
        "KEYED": f"PyArg_ParseTupleAndKeywords(arguments, keywords, {string(form + ':' + node.name)}, NAMES_{name}"
                 f"{''.join(targets)}) && ",
    }[way]
    names = [each for each, _, _ in parameters(node.args) if each != "$"]
    print(f"#define NAMES_{name} ((char *[]){{{''.join(string(each) + ', ' for each in names)}NULL}})")
    passed = {"NOARGS": "", "O": "arguments, ", "KEYED": "arguments, keywords, "}[way]
    taken = {"NOARGS": "", "O": "PyObject *arguments, ", "KEYED": "PyObject *arguments, PyObject *keywords, "}[way]
    print(f"struct {name} {{ {''.join(fields) or 'int none; '}}};")
    print(f"#define DEFAULTS_{name} {{{''.join(defaults) or '0'}}}")
    print(f"#define READ_{name}(a) read_{name}(self, {passed}a)")
    print(f"static inline bool read_{name}(PyObject *self, {taken}struct {name} *a)\n{{")
    print(f"    {''.join(local)}{'a->self = (void *)self;' if owner else '(void)self, (void)a;'}")
    print(f"    return {parse}{' && '.join(checks) or 'true'};\n}}")
    if is_made:
        print(f"#define RESULT_{name} wp_made(status, &wp_{made.lower()}_kind, {parent}, a.result, {label})")
    else:
        print(f"#define RESULT_{name} wp_none(status)")


def function(node, owner, classes):
    """Prints its texts and what reads its arguments; returns its entry of a table."""
    name = f"{owner}_{node.name}" if owner else node.name
    way = flags(node.args)
    c_name = f"{owner.strip('_').lower()}_{node.name.strip('_')}" if owner else f"wp_{node.name.lower()}"
    print(f"PyObject *{c_name}({re.sub(r'(Py_UNUSED.unused.|[a-z]+)(?=, |$)', '', HEADS[way][0])});")
    print(f"#define FUNCTION_{name} PyObject *{c_name}({HEADS[way][0]})")
    if way in ("NOARGS", "O", "KEYED"):
        reader(node, name, owner, way, classes)
    for each in ast.walk(node.args):
        if isinstance(each, ast.arg):
            each.annotation = None
    signature = ast.unparse(node.args)
    signature = "$" + signature if owner else "$module" + (", " + signature if signature else "")
    text = inspect.cleandoc(ast.get_docstring(node) or "")
    print(f"#define DOC_{name} {string(f'{node.name}({signature})' + chr(10) + '--' + chr(10) * 2 + text)}")
    return f"{{{string(node.name)}, (PyCFunction)(void (*)(void)){c_name}, {HEADS[way][1]}, DOC_{name}}}, "


def comment(lines, number):
    """The comment at the end of a line, and the lines of comment below it."""
    text = lines[number - 1].partition("# ")[2]
    while lines[number].strip().startswith("# "):
        text += " " + lines[number].strip()[2:]
        number += 1
    return text


def getters(node, lines):
    """The attributes of a class: (name, type, text)."""
    for each in node.body:
        if isinstance(each, ast.AnnAssign):
            kind = each.annotation  # Final[KIND], or that of a named tuple's field
            kind = kind.slice if getattr(getattr(kind, "value", None), "id", "") == "Final" else kind
            yield each.target.id, getattr(kind, "value", kind), comment(lines, each.lineno)
        elif isinstance(each, ast.FunctionDef) and each.decorator_list:
            yield each.name, each.returns, ast.get_docstring(each)


def is_object(name, classes):
    """Whether it is closed: a runtime, a device, or what a device has."""
    return name.startswith("_") or has_base(classes[name], "_Block", "_Child")


def getter(name, field, kind, text):
    """Prints what an attribute's C function needs; its entry of a table."""
    print(f"PyObject *get_{name}_{field}(PyObject *, void *);")
    object_of = {"int": "int_OBJECT", "bool": "bool_OBJECT", "str": "wp_text"}.get(getattr(kind, "id", ""), "")
    print(f"#define OBJECT_{name}_{field}(value) {object_of}(value)")
    return f"{{{string(field)}, get_{name}_{field}, NULL, {string(text)}, NULL}}, "


def has_base(node, *names):
    return isinstance(node, ast.ClassDef) and any(getattr(base, "id", "") in names for base in node.bases)


def is_error(node):
    return has_base(node, "Exception", "Error", "DeviceError")


def types(tree, lines):
    print('"""The exceptions and the named tuples, of the stubs."""\n\nfrom collections import namedtuple as _namedtuple')
    for node in filter(is_error, tree.body):
        node.body += ast.parse(f"__module__, status = 'weir', '{comment(lines, node.lineno)}'").body
        print("\n\n" + ast.unparse(node))
    for node in (node for node in tree.body if has_base(node, "NamedTuple")):
        fields = {field: text for field, _, text in getters(node, lines)}
        print(f"\n\n{node.name} = _namedtuple('{node.name}', {list(fields)}, module='weir')")
        print(f"{node.name}.__doc__ = {ast.get_docstring(node)!r}")
        for field, text in fields.items():
            print(f"{node.name}.{field}.__doc__ = {text!r}")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    lines, tree = text.splitlines() + [""], ast.parse(text)
    if sys.argv[2:] == ["types"]:
        return types(tree, lines)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)
               and not is_error(node) and not has_base(node, "Protocol", "TypedDict")}
    functions = [function(node, "", classes) for node in tree.body if isinstance(node, ast.FunctionDef)]
    print(f"#define FUNCTIONS {''.join(functions)}")
    entries = {}
    for name, node in classes.items():
        print(f"#define DOC_{name} {string(ast.get_docstring(node) or '')}")
        fields = list(getters(node, lines))
        rows = (f"X({field}, {getattr(kind, 'id', '')}, {string(text)})" for field, kind, text in fields)
        print(f"#define FIELDS_{name}(X) {' '.join(rows)}")
        entries[name] = "".join(getter(name, *field) for field in fields)
        # What every object of a device has stands in its class's table.
        of_all = entries["_Child"] if has_base(node, "_Child") else ""
        print(f"#define GETTERS_{name} {entries[name]}{of_all}")
        methods = [function(each, name, classes) for each in node.body if isinstance(each, ast.FunctionDef)
                   and not each.decorator_list and each.name not in SLOTS]
        print(f"#define METHODS_{name} {''.join(methods)}")


main()
