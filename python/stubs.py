"""stubs.py STUBS: prints a C header of what the stubs say: what there is, its signatures and its texts.

    DOC_X            the text of a class, function or method (CLASS_method), with its signature
    NAMES_X          the names of its parameters, for PyArg_ParseTupleAndKeywords()
    METHODS_CLASS    entries of a PyMethodDef table: method `copy` of Queue is queue_copy() in C, which is declared
    GETTERS_CLASS    entries of a PyGetSetDef table: queue_get(), whose closure is the attribute's name
    FIELDS_CLASS(X)  X(name, type, text) for each field of a named tuple: type is int, bool, str or tuple
"""

import ast
import inspect
import sys

# Methods that are slots of their type.
SLOTS = {"__getitem__", "__len__", "__call__", "__await__"}


def string(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def flags(arguments):
    """How C gets the arguments: see the table of PyMethodDef in Python's manual."""
    positional = len(arguments.posonlyargs) - ("self" in [argument.arg for argument in arguments.posonlyargs])
    if arguments.kwonlyargs or arguments.kwarg or [each for each in arguments.args if each.arg != "self"]:
        return "KEYED"
    if arguments.vararg:
        return "FAST" if positional else "VARARGS"
    return ("NOARGS", "O")[positional] if positional < 2 else "FAST"


def function(node, owner):
    """Prints its texts and returns its entry of a table."""
    for each in ast.walk(node.args):
        if isinstance(each, ast.arg):
            each.annotation = None
    name = f"{owner}_{node.name}" if owner else node.name
    signature = ast.unparse(node.args)
    signature = "$" + signature if owner else "$module" + (", " + signature if signature else "")
    text = inspect.cleandoc(ast.get_docstring(node) or "")
    print(f"#define DOC_{name} {string(f'{node.name}({signature})' + chr(10) + '--' + chr(10) * 2 + text)}")
    names = [each.arg for each in node.args.posonlyargs + node.args.args + node.args.kwonlyargs if each.arg != "self"]
    print(f"#define NAMES_{name} ((char *[]){{{''.join(string(each) + ', ' for each in names)}NULL}})")
    c_name = f"{owner.strip('_').lower()}_{node.name.strip('_')}" if owner else f"wp_{node.name.lower()}"
    print(f"WP_{flags(node.args)}_DECLARE({c_name});")
    return f"{{{string(node.name)}, WP_{flags(node.args)}({c_name}), DOC_{name}}}, "


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
            yield each.target.id, getattr(each.annotation.slice, "value", each.annotation.slice), comment(lines, each.lineno)
        elif isinstance(each, ast.FunctionDef) and each.decorator_list:
            yield each.name, each.returns, ast.get_docstring(each)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    lines, tree = text.splitlines() + [""], ast.parse(text)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)
               and not any(getattr(base, "id", "") in ("Protocol", "TypedDict") for base in node.bases)}
    functions = [function(node, "") for node in tree.body if isinstance(node, ast.FunctionDef)]
    print(f"#define FUNCTIONS {''.join(functions)}")
    for name, node in classes.items():
        print(f"#define DOC_{name} {string(ast.get_docstring(node) or '')}")
        fields = list(getters(node, lines))
        rows = (f"X({field}, {getattr(kind, 'id', '')}, {string(text)})" for field, kind, text in fields)
        print(f"#define FIELDS_{name}(X) {' '.join(rows)}")
        # What every object of a device has stands in its class's table.
        of = [(name, fields)]
        if any(getattr(base, "id", "") == "_Child" for base in node.bases):
            of.append(("_Child", list(getters(classes["_Child"], lines))))
        entries = (f"{{{string(field)}, {owner.strip('_').lower()}_get, NULL, {string(text)}, {string(field)}}}, "
                   for owner, group in of for field, _, text in group)
        print(f"#define GETTERS_{name} {''.join(entries)}")
        methods = [function(each, name) for each in node.body if isinstance(each, ast.FunctionDef)
                   and not each.decorator_list and each.name not in SLOTS]
        print(f"#define METHODS_{name} {''.join(methods)}")


main()
