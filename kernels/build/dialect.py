"""Joins kernel sources into one text, and checks its tokens against the dialect.

The token pass finds what both compilers would take and understand differently,
and gives the frequent mistakes a sentence with the remedy. What it cannot see
(types, calls) the two compilations in weir_kernels.py do.
"""

import os
import re

CPP_KEYWORDS = frozenset("""
    alignas alignof and and_eq asm bitand bitor catch char8_t char16_t char32_t class compl concept
    consteval constexpr constinit const_cast co_await co_return co_yield decltype delete
    dynamic_cast explicit export friend mutable namespace new noexcept not not_eq nullptr operator
    or or_eq protected public reinterpret_cast requires static_assert static_cast template this
    thread_local throw try typeid typename using virtual wchar_t xor xor_eq
""".split())

SHORT_FORMS = {
    "kernel": "__kernel", "global": "__global", "local": "__local", "constant": "__constant",
    "private": "nothing: a variable is private without a word",
    "__private": "nothing: a variable is private without a word",
}

PLATFORM_MACROS = frozenset("""
    __CUDACC__ __CUDA_ARCH__ __CUDACC_RTC__ __NVCC__ __OPENCL_VERSION__ __OPENCL_C_VERSION__
    __cplusplus WEIR_DIALECT_CHECK
""".split())

VECTORS = ("float2", "float4", "int2", "int4", "uint2", "uint4")
ANY_VECTOR = re.compile(r"(?:u?(?:char|short|int|long)|float|double|half)(?:2|3|4|8|16)$")
OUTSIDE_TYPES = re.compile(
    r"(?:double|half|image\w+_t|sampler_t|event_t|clk_event_t|queue_t|reserve_id_t|pipe|"
    r"ptrdiff_t|intptr_t|uintptr_t)$")
OUTSIDE_REMEDY = {
    "double": "not every OpenCL device has it; use float",
}
SWIZZLE = re.compile(r"(?:[xyzw]{2,4}|s[0-9][0-9a-fA-F]*)$")

TOKEN = re.compile(r"""
    (?P<line>\#[ ]*line[ ]+(?P<number>\d+)[ ]+"(?P<file>[^"]*)"[ ]*\n)
  | (?P<directive>(?m:^)[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
  | (?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?[a-zA-Z_]*|\d+[eE][+-]?\d+[a-zA-Z_]*)
  | (?P<integer>0[xX][0-9a-fA-F]+[uUlL]*|\d+[uUlL]*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
  | (?P<newline>\n)
  | (?P<space>[ \t\r\f\v]+|\\\n)
  | (?P<mark>.)
""", re.X)


class Token:
    def __init__(self, kind, text, file, line):
        self.kind, self.text, self.file, self.line = kind, text, file, line


def without_comments(text):
    """`text` with comments blanked out, lines and strings kept."""
    def blank(found):
        word = found.group(0)
        return word if word[0] in "\"'" else re.sub(r"[^\n]", " ", word)
    return re.sub(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|//[^\n]*|/\*.*?\*/', blank, text,
                  flags=re.S)


def join(paths):
    """All sources as one text with #line directives. Headers are put where they are first
    included; `paths` may name them, in any order."""
    roots = [path for path in paths if not path.endswith(".h")]
    known = {os.path.normpath(path) for path in paths}
    seen = set()
    return "".join(flatten(path, known, seen) for path in roots)


def flatten(path, known, seen):
    seen.add(os.path.normpath(path))
    out = ['#line 1 "%s"\n' % path]
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    for number, line in enumerate(lines, 1):
        found = re.match(r'[ \t]*#[ \t]*include[ \t]+"([^"]+)"', line)
        if not found:
            out.append(line + "\n")
            continue
        name = os.path.normpath(found.group(1))
        if name not in known:
            raise SystemExit('%s:%d: error: "%s" is not among the sources of this bundle; name it '
                             "from the repository's root and list it in srcs" % (path, number, name))
        if name not in seen:
            out.append(flatten(name, known, seen))
        out.append('#line %d "%s"\n' % (number + 1, path))
    return "".join(out)


def tokens_of(text):
    tokens, file, line = [], "kernel", 1
    for found in TOKEN.finditer(without_comments(text)):
        kind, word = found.lastgroup, found.group(0)
        if found.group("line"):
            file, line = found.group("file"), int(found.group("number"))
            continue
        if kind not in ("space", "newline"):
            tokens.append(Token(kind, word.strip() if kind == "directive" else word, file, line))
        line += word.count("\n")
    return tokens


class Check:
    def __init__(self):
        self.errors = []

    def error(self, token, text):
        self.errors.append("%s:%d: error: %s" % (token.file, token.line, text))

    def directive(self, token):
        body = token.text.lstrip("# \t")
        if body.startswith("include"):
            self.error(token, 'only #include "path/from/the/root.cl.h" of a file of the bundle: '
                       "a driver's compiler sees no other")
        if body.startswith("pragma") and body.split()[1:2] != ["unroll"]:
            self.error(token, "#pragma is outside the dialect, but for #pragma unroll; FP_CONTRACT "
                       "is off everywhere")
        macro = re.match(r"(?:define|undef)\s+((?:WEIR_|weir_|__)\w+)", body)
        if macro and not macro.group(1).endswith("_H"):
            self.error(token, "'%s' is a name of the dialect; choose another" % macro.group(1))
        inner = [Token(t.kind, t.text, token.file, token.line)
                 for t in tokens_of(re.sub(r"^\w+", "", body))]
        for at in range(len(inner)):
            self.one(inner, at)

    def one(self, tokens, at):
        """What is wrong wherever it stands."""
        token = tokens[at]
        before = tokens[at - 1].text if at else ""
        after = [t.text for t in tokens[at + 1:at + 3]]
        if token.kind == "float" and token.text[-1] not in "fF":
            self.error(token, "'%s' is a double; write %sf" % (token.text, token.text))
        if token.kind != "name":
            return
        name = token.text
        if name in CPP_KEYWORDS:
            self.error(token, "'%s' is a keyword of C++, which CUDA compiles; choose another name"
                       % name)
        elif name in SHORT_FORMS:
            self.error(token, "'%s' is outside the dialect; write %s" % (name, SHORT_FORMS[name]))
        elif name in PLATFORM_MACROS:
            self.error(token, "'%s' tells platforms apart, and a kernel is one source for all"
                       % name)
        elif name in ("__attribute__", "__attribute"):
            self.error(token, "__attribute__ is ignored or refused elsewhere; for a required "
                       "block write WEIR_BLOCK(x, y, z) after __kernel")
        elif before == "." and SWIZZLE.match(name):
            self.error(token, "'.%s' is a swizzle; CUDA's vectors have .x .y .z .w alone, and "
                       "weir_float4(...) puts them together" % name)
        elif before not in (".", "->"):
            self.type_name(token, before, after)

    def type_name(self, token, before, after):
        name = token.text
        if ANY_VECTOR.match(name) and name not in VECTORS:
            self.error(token, "'%s' is outside the dialect, whose vectors are %s" % (
                name, ", ".join(VECTORS)))
        elif name in VECTORS and before == "(" and after[:1] == [")"]:
            self.error(token, "'(%s)' makes a vector in OpenCL C and something else in CUDA; write "
                       "weir_%s(...)" % (name, name))
        elif OUTSIDE_TYPES.match(name):
            self.error(token, "'%s' is outside the dialect: %s" % (
                name, OUTSIDE_REMEDY.get(name, "CUDA has nothing of the kind")))

    def address_space(self, token, depth, parens, in_kernel_head):
        """__local and friends mean a place; CUDA's words mean it only for declarations."""
        name = token.text
        if name == "__local" and (depth == 0 or parens):
            self.error(token, "__local declares an array in a kernel's body; a pointer is "
                       "WEIR_LOCAL_PTR(type) p, a kernel's parameter WEIR_LOCAL_PARAM(type) p")
        elif name == "__constant" and (depth or parens):
            self.error(token, "__constant declares a table at file scope; a pointer is "
                       "__global const type *p")
        elif name == "WEIR_LOCAL_PTR" and in_kernel_head:
            self.error(token, "a kernel's local parameter is WEIR_LOCAL_PARAM(type) p")
        elif name == "WEIR_LOCAL_PARAM" and not in_kernel_head:
            self.error(token, "WEIR_LOCAL_PARAM is for a kernel's parameters; elsewhere write "
                       "WEIR_LOCAL_PTR(type) p")

    def structure(self, tokens):
        """Walks declarations at file scope: every function is WEIR_FN or __kernel."""
        depth = parens = 0
        head = []
        for at, token in enumerate(tokens):
            text = token.text
            if token.kind == "directive":
                head = head if depth else []
                continue
            if token.kind == "name":
                in_kernel_head = depth == 0 and any(t.text == "__kernel" for t in head)
                self.address_space(token, depth, parens, in_kernel_head)
                if text == "__local" and depth and not parens:
                    self.local_declaration(tokens, at)
            if text in "([":
                parens += 1
            elif text in ")]":
                parens -= 1
            if depth == 0 and text not in "{};":
                head.append(token)
            if text == "{":
                if depth == 0:
                    self.function(head)
                depth += 1
            elif text == "}":
                depth -= 1
                head = [] if depth == 0 else head
            elif text == ";" and depth == 0:
                head = []

    def local_declaration(self, tokens, at):
        for token in tokens[at + 1:]:
            if token.text == "*":
                self.error(token, "__local declares an array in a kernel's body; a pointer is "
                           "WEIR_LOCAL_PTR(type) p")
            if token.text in "[;=*":
                return

    def function(self, head):
        words = [token.text for token in head]
        if not words or words[-1] != ")" or "WEIR_FN" in words or "__kernel" in words:
            return
        depth = 0
        for at in range(len(head) - 1, -1, -1):
            depth += {")": 1, "(": -1}.get(words[at], 0)
            if depth == 0:
                break
        name = head[at - 1]
        self.error(name, "function '%s' lacks WEIR_FN: without it CUDA compiles it for the host"
                   % name.text)


def check(text):
    """The errors in `text`, as `file:line: error: sentence`."""
    result = Check()
    tokens = tokens_of(text)
    for at, token in enumerate(tokens):
        if token.kind == "directive":
            result.directive(token)
        else:
            result.one(tokens, at)
    result.structure(tokens)
    return sorted(set(result.errors), key=result.errors.index)
