// See the header. A definition is a head, with the name before its parameters, and a body in braces;
// a macro is a name and the rest of its lines. The names that lead to the function are collected until
// there are no more.
#include "backends/kit/calls.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct part {
    const char *start;
    size_t length;
};

struct search {
    char *code;   // without comments, strings and characters
    char *blocks; // without preprocessor lines too
    struct part *reached;
    size_t count;
    size_t capacity;
    struct part from;
    bool is_defined; // `from`
    bool unsure;
};

static bool is_name(char c)
{
    return weir_text_is_word(c);
}

static bool is_same(struct part a, struct part b)
{
    return a.length == b.length && memcmp(a.start, b.start, a.length) == 0;
}

// A name or a number.
static struct part word_at(const char *start, const char *end)
{
    const char *at = start;
    while (at < end && is_name(*at))
        at++;
    return (struct part){start, (size_t)(at - start)};
}

// The next one before `end`; its length is 0 if there is none.
static struct part next_name(const char *at, const char *end)
{
    while (at < end && !is_name(*at))
        at++;
    return word_at(at, end);
}

static bool is_reached(const struct search *search, struct part name)
{
    for (size_t i = 0; i < search->count; i++)
        if (is_same(search->reached[i], name))
            return true;
    return false;
}

static bool mentions(const struct search *search, const char *at, const char *end)
{
    for (struct part name; (name = next_name(at, end)).length > 0; at = name.start + name.length)
        if (is_reached(search, name))
            return true;
    return false;
}

static void reach(struct search *search, struct part name)
{
    if (search->count == search->capacity) {
        const size_t capacity = search->capacity ? 2 * search->capacity : 16;
        struct part *grown = realloc(search->reached, capacity * sizeof *grown);
        if (!grown) {
            search->unsure = true;
            return;
        }
        search->reached = grown;
        search->capacity = capacity;
    }
    search->reached[search->count++] = name;
}

// The end of a line that may go on after a backslash.
static char *line_end(char *line)
{
    char *end = line + strcspn(line, "\n");
    while (*end && end > line && end[-1] == '\\')
        end += 1 + strcspn(end + 1, "\n");
    return end;
}

// Macros and definitions.

static void visit_macro(struct search *search, const char *line, const char *end)
{
    const struct part word = next_name(line, end);
    if (!is_same(word, (struct part){"define", 6}))
        return;
    const struct part name = next_name(word.start + word.length, end);
    const char *body = name.start + name.length;
    if (name.length > 0 && !is_reached(search, name) && mentions(search, body, end))
        reach(search, name);
}

static void visit_macros(struct search *search)
{
    for (char *line = search->code; *line;) {
        char *end = line_end(line);
        if (line[strspn(line, " \t")] == '#')
            visit_macro(search, line, end);
        line = end + (*end != '\0');
    }
}

// A name before the brackets of a head: the function's, or that of a macro which makes it.
static void visit_head_name(struct search *search, struct part name, bool leads)
{
    if (name.length >= 11 && memcmp(name.start, "__attribute", 11) == 0)
        return;
    search->is_defined = search->is_defined || is_same(name, search->from);
    if (leads && !is_reached(search, name))
        reach(search, name);
}

static void visit_definition(struct search *search, const char *head, const char *body,
                             const char *end)
{
    const bool leads = mentions(search, body, end);
    struct part last = {head, 0};
    int depth = 0;
    for (const char *at = head; at < body; at++) {
        if (*at == '(' && depth++ == 0 && last.length > 0)
            visit_head_name(search, last, leads);
        depth -= *at == ')';
        if (is_name(*at)) {
            last = word_at(at, body);
            at += last.length - 1;
        } else if (!isspace((unsigned char)*at)) {
            last.length = 0;
        }
    }
}

static void visit_definitions(struct search *search)
{
    const char *head = search->blocks;
    const char *body = head;
    int depth = 0;
    for (const char *at = search->blocks; *at; at++) {
        if (*at == '{' && depth++ == 0)
            body = at;
        if (*at == ';' && depth == 0)
            head = at + 1;
        if (*at != '}')
            continue;
        if (--depth < 0)
            break;
        if (depth > 0)
            continue;
        visit_definition(search, head, body, at);
        head = at + 1;
    }
    search->unsure = search->unsure || depth != 0;
}

static bool prepare(struct search *search, const char *text)
{
    search->code = strdup(text);
    search->blocks = strdup(text);
    if (search->code)
        kit_blank(search->code, false);
    if (search->blocks)
        kit_blank(search->blocks, true);
    return search->code && search->blocks;
}

static bool find(struct search *search, struct part to)
{
    reach(search, to);
    if (!mentions(search, search->code, search->code + strlen(search->code)))
        return false;
    for (size_t before = 0; before != search->count && !search->unsure;) {
        before = search->count;
        visit_macros(search);
        visit_definitions(search);
    }
    return search->unsure || !search->is_defined || is_reached(search, search->from);
}

bool weir_calls(const char *text, const char *from, const char *to)
{
    struct search search = {.from = {from, strlen(from)}};
    if (!strstr(text, to))
        return false;
    const bool found = !prepare(&search, text) || find(&search, (struct part){to, strlen(to)});
    free(search.reached);
    free(search.blocks);
    free(search.code);
    return found;
}
