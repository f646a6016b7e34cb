#!/usr/bin/env python3
"""Turns a file of the tree into what Doxygen reads; Doxygen calls it for each one (INPUT_FILTER).

In a header, a comment before declarations, up to an empty line, is the text of each of them; one at the end
of a line is that of the line's member. A macro without a comment is the short form of the function `…_at`,
or of the one that shares its name with the inline function that it calls.
In a page, definition lists become paragraphs, and links to files that the site has not become plain text.
"""

import os
import re
import sys

MAN = "docs/man"
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md")  # beside those of docs/
FOLDERS = ("api/weir", "api/weir/module", "api/weir/kit", "patterns")


def is_public(path):
    """Whether the header has a page of the reference."""
    name = os.path.basename(path)
    internal = os.path.dirname(path) == "patterns" and re.search(r"^(fail|shared|statistics)\.h$|_parts\.h$", name)
    return os.path.dirname(path) in FOLDERS and name.endswith((".h", ".hpp")) and not internal


def header_url(path):
    """Doxygen's name of a header's page, with the folder in it where a name is there twice."""
    folder, name = os.path.split(path)
    twice = any(os.path.exists(os.path.join(f, name)) for f in FOLDERS if f != folder)
    prefix = os.path.basename(folder) + "_2" if twice and folder != FOLDERS[0] else ""
    return prefix + name.replace("_", "__").replace(".", "_8") + ".html"


def man_url(name):
    """The name of the page of the manual's page `name`, such as weir.1."""
    return f"man-{os.path.splitext(name)[0]}.html"


def comment_of(line):
    """The text after `//`, where the whole line is a comment."""
    match = re.match(r"\s*//(?!/) ?(.*)$", line)
    return match.group(1) if match else None


def literal(text):
    """Text in which Doxygen finds no commands and no tags."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"([@\\<>#&$])", r"\\\1", p) for p in parts)


def prose(texts):
    """The lines of a comment: indented ones are code, the others text."""
    return ["///" + (" " + (t if t.startswith("    ") else literal(t)) if t else "") for t in texts]


def member(line):
    """The comment at a line's end becomes that of the line's member."""
    match = re.match(r"(\s+.*\S)\s+//(?!/) ?(.*)$", line)
    if match and not line.lstrip().startswith(("//", "#")):
        return f"{match.group(1)} ///< {literal(match.group(2))}"
    text = comment_of(line)
    return line if text is None else "    /// " + literal(text)


def blocks_of(lines):
    """Lines up to an empty one outside of braces."""
    block, depth = [], 0
    for line in lines:
        if not line.strip() and depth == 0:
            if block:
                yield block
            block = []
            continue
        code = re.sub(r"//.*|\"[^\"]*\"", "", line)
        if "extern" not in code:
            depth = max(0, depth + code.count("{") - code.count("}"))
        block.append(line)
    if block:
        yield block


def declarations(lines):
    """How many declarations the lines of a block have."""
    count, depth, macro = 0, 0, False
    for line in lines:
        code = re.sub(r"//.*|\"[^\"]*\"", "", line).rstrip()
        if macro or code.startswith("#"):
            count += not macro and code.startswith("#define")
            macro = code.endswith("\\")
            continue
        count += depth == 0 and code.endswith(";") or depth == 1 and code.startswith("}")
        depth += code.count("{") - code.count("}")
    return count


def short_forms(lines):
    """Macros without a comment, and their functions, each with a reference to the other."""
    for i, line in enumerate(lines):
        macro = re.match(r"#define (weir_\w+)\(", line)
        function = re.match(r"(?!\s).*\b(weir_\w+)_at\(", line)
        shared = macro and re.match(r"(?:.*\\\n)*?\s+weir__(queue_\w+)\(", "\n".join(lines[i:]))
        if shared:
            yield f"/// A short form of weir_{shared.group(1)}()."
        elif macro:
            yield f"/// {macro.group(1)}_at() with the caller's file and line."
        elif function:
            yield f"/// What the macro {function.group(1)}() calls."
        yield member(line)


def block_of_header(block):
    count = next((i for i, line in enumerate(block) if comment_of(line) is None), len(block))
    texts = prose([comment_of(line) for line in block[:count]])
    rest = block[count:]
    if not rest:
        return block
    if not texts:
        return list(short_forms(rest))
    rest = [member(line) for line in rest]
    return ["///@{"] + texts + rest + ["///@}"] if declarations(rest) > 1 else texts + rest


def header(lines):
    blocks = list(blocks_of(lines))
    count = next((i for i, line in enumerate(blocks[0]) if comment_of(line) is None), len(blocks[0]))
    out = ["/// @file"]
    out += prose([comment_of(line) for line in blocks[0][:count]]) + [""] + blocks[0][count:] + [""]
    for block in blocks[1:]:
        out += block_of_header(block) + [""]
    return out


def header_cpp(lines):
    """A header in C++: each comment of whole lines is the text of what comes after it."""
    count = next((i for i, line in enumerate(lines) if comment_of(line) is None), len(lines))
    out = ["/// @file"] + prose([comment_of(line) for line in lines[:count]]) + [""]
    for line in lines[count:]:
        text = comment_of(line)
        out.append(line if text is None else "/// " + literal(text))
    return out


def is_page(path):
    return path in PAGES or path.startswith("docs/") and path.endswith(".md") and os.path.exists(path)


def page_name(path):
    """The name of a page, and of its file without `.html`; Doxygen's own differs from version to version."""
    return re.sub(r"\W", "_", os.path.splitext(path)[0])


def slug(title):
    """The name that a heading has in links, as on the usual hosts of source."""
    return re.sub(r"[^\w -]", "", title.replace("`", "").lower()).strip().replace(" ", "-")


def label(path, anchor):
    """That name with its page's, because Doxygen has one space of names for all pages."""
    return re.sub(r"\W", "-", os.path.splitext(path)[0]) + "--" + anchor


def page(lines, path):
    folder = os.path.dirname(path)

    def link(match):
        text, target, anchor = match.group(1), match.group(2), match.group(3)
        # Doxygen makes a dash of two hyphens, in tags for code too.
        shown = re.sub(r"`+([^`]*)`+", lambda m: "<code>" + m.group(1).replace("--", r"\--") + "</code>", text)
        full = os.path.normpath(os.path.join(folder, target)) if target else path
        if shown != text and is_page(full):  # Doxygen shows the tags of a reference's text
            url = "index.html" if full == "README.md" else page_name(full) + ".html"
            return f'<a href="{url}{"#" + label(full, anchor[1:]) if anchor else ""}">{shown}</a>'
        if anchor and is_page(full):
            return f"[{shown}](#{label(full, anchor[1:])})"
        if is_public(full):
            return f"[{shown}]({header_url(full)})"
        if os.path.dirname(full) == MAN and full.endswith(".1"):
            return f"[{shown}]({man_url(os.path.basename(full))})"
        if full == "README.md":
            return f"[{shown}](index.html)"
        if is_page(full):
            return f"[{shown}](#{page_name(full)})"
        if full.startswith("docs/images/"):
            return f"[{shown}]({target})"
        return text if text.startswith("`") else f"{text} (`{full}`)"

    out, fenced = [], False
    for line in lines:
        fenced ^= line.startswith("```")
        heading = re.match(r"##+ (.*)$", line)
        if line.startswith("# ") and not fenced and path != "README.md":
            line = f"{line} {{#{page_name(path)}}}"
        if heading and not fenced:
            line = f"{line} {{#{label(path, slug(heading.group(1)))}}}"
        if not fenced and not line.startswith("    "):
            # A quote ends Doxygen's code, but not between two of these.
            line = re.sub(r"`([^`]+)`", lambda m: f"`{m.group(0)}`" if "'" in m.group(1) else m.group(0), line)
            line = re.sub(r"\[([^\]]+)\]\((?!https?:)([^)#]*)(#[^)]*)?\)", link, line)
            if line.startswith(":   ") and out:
                out[-1] = f"**{out[-1]}**\\n"
                line = line[4:]
        out.append(line)
    return out


def main():
    path = os.path.relpath(sys.argv[1])
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".dox"):
        sys.stdout.write(text)
        return
    lines = re.sub(r"(?m)^WEIR__\w+\((?:[^\n]*,\n)*[^\n]*\n", "", text).split("\n")
    if path.endswith(".h"):
        lines = header(lines)
    elif path.endswith(".hpp"):
        lines = header_cpp(lines)
    else:
        joined = re.sub(r"\[([^][\n]*)\n([^][\n]*)\]\(", r"[\1 \2](", text)  # a link's text on two lines
        lines = page(joined.split("\n"), path)
    # Doxygen takes `file:line` for an address.
    sys.stdout.write(re.sub(r"\bfile:(?=[\w…])", "file&#58;", "\n".join(lines)) + "\n")


if __name__ == "__main__":
    main()
