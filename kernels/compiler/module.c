// A module of LLVM's intermediate representation, as text: its symbols, what each refers to, and the numbered
// nodes of its metadata. It is read once, from the first line to the last.

#include "base/names.h"
#include "kernels/compiler/compiler.h"

enum {
    NODES_MOST = 1 << 26
};

size_t kc_line_length(const char *line)
{
    return strcspn(line, "\n");
}

bool kc_starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

const char *kc_in_line(const char *line, const char *text)
{
    return memmem(line, kc_line_length(line), text, strlen(text));
}

// A quote in a string is "\22".
const char *kc_string_end(const char *at)
{
    at += 1 + strcspn(at + 1, "\"\n");
    return at + (*at == '"');
}

const char *kc_first_parameter(const char *line)
{
    const char *name = kc_in_line(line, "@");
    const char *open = name ? kc_in_line(name, "(") : NULL;
    return open ? open + 1 : NULL;
}

const char *kc_next_parameter(const char *at)
{
    int depth = 0;
    for (; *at && *at != '\n'; at++) {
        depth += strchr("([{<", *at) ? 1 : strchr(")]}>", *at) ? -1 : 0;
        if (depth < 0)
            return NULL;
        if (depth == 0 && *at == ',')
            return at + 2;
    }
    return NULL;
}

// Symbols.

// The symbol's index; SIZE_MAX: no memory.
static size_t intern(struct kc_module *module, const char *name, size_t length)
{
    struct kc_symbol *symbols =
        weir_grow(module->symbols, module->symbol_count, &module->symbol_capacity, sizeof *symbols);
    char *text = symbols ? strndup(name, length) : NULL;
    if (symbols)
        module->symbols = symbols;
    const size_t index = text ? weir_names_number(module->names, text) : SIZE_MAX;
    free(text);
    if (index == module->symbol_count)
        module->symbols[module->symbol_count++] =
            (struct kc_symbol){.name = weir_names_text(module->names, index)};
    return index;
}

// The name after '@', without quotes; 0: there is none.
static size_t read_name(const char *at, const char **out_name)
{
    const bool quoted = *at == '"';
    size_t length = 0;
    at += quoted;
    while (at[length] && at[length] != '\n' &&
           (quoted ? at[length] != '"'
                   : weir_text_is_word(at[length]) || strchr("$.-", at[length]) != NULL))
        length++;
    *out_name = at;
    return length;
}

static bool add_use(struct kc_module *module, size_t user, size_t used)
{
    size_t *uses =
        weir_grow(module->uses, module->use_count, &module->use_capacity, sizeof *module->uses);
    if (!uses)
        return false;
    module->uses = uses;
    module->uses[module->use_count++] = used;
    module->symbols[user].use_count++;
    return true;
}

static bool add_uses(struct kc_module *module, size_t user, const char *at)
{
    for (; *at && *at != '\n'; at++) {
        const char *name;
        const size_t length = *at == '@' ? read_name(at + 1, &name) : 0;
        if (*at == '"')
            at = kc_string_end(at) - 1;
        if (length == 0)
            continue;
        const size_t used = intern(module, name, length);
        if (used == SIZE_MAX || !add_use(module, user, used))
            return false;
        at = name[-1] == '"' ? name + length : name + length - 1;
    }
    return true;
}

static bool add_node(struct kc_module *module, const char *line)
{
    char *end;
    const unsigned long number = strtoul(line + 1, &end, 10);
    if (end == line + 1 || !kc_starts_with(end, " = "))
        return true;
    if (number > NODES_MOST)
        return true;
    while (module->node_count <= number) {
        const char **nodes =
            weir_grow(module->nodes, module->node_count, &module->node_capacity, sizeof *nodes);
        if (!nodes)
            return false;
        module->nodes = nodes;
        module->nodes[module->node_count++] = NULL;
    }
    module->nodes[number] = end + 3;
    return true;
}

// Begins a variable or a function: what is used next is used by it.
static bool begin(struct kc_module *module, const char *line, enum kc_symbol_kind kind,
                  size_t *out_user)
{
    const char *name, *at = kc_in_line(line, "@");
    const size_t length = at ? read_name(at + 1, &name) : 0;
    const size_t index = length > 0 ? intern(module, name, length) : SIZE_MAX;
    if (index == SIZE_MAX)
        return kind != KC_DEFINED; // a line of some other form
    struct kc_symbol *symbol = &module->symbols[index];
    symbol->kind = kind;
    symbol->line = line;
    symbol->first_use = module->use_count;
    symbol->is_kernel = kind == KC_DEFINED && kc_in_line(line, "!kernel_arg_addr_space ") &&
                        !kc_starts_with(symbol->name, &KC_KERNEL_CODE[1]);
    *out_user = kind == KC_DECLARED ? SIZE_MAX : index;
    return true;
}

static bool read_line(struct kc_module *module, const char *line, size_t *user)
{
    if (*line == '@' && kc_in_line(line, " = "))
        return begin(module, line, KC_VARIABLE, user) &&
               add_uses(module, *user, kc_in_line(line, " = "));
    if (*line == '!')
        return add_node(module, line);
    if (kc_starts_with(line, "define "))
        return begin(module, line, KC_DEFINED, user);
    if (kc_starts_with(line, "declare "))
        return begin(module, line, KC_DECLARED, user);
    if (*line == '}')
        *user = SIZE_MAX;
    return *user == SIZE_MAX || *line != ' ' || add_uses(module, *user, line);
}

bool kc_module_read(char *text, struct kc_module *out)
{
    size_t user = SIZE_MAX;
    *out = (struct kc_module){.text = text, .names = weir_names_create()};
    for (const char *line = out->names ? text : NULL; line; line = kc_next_line(line))
        if (!read_line(out, line, &user))
            return false;
    return out->names != NULL;
}

const char *kc_next_line(const char *line)
{
    const char *newline = strchr(line, '\n');
    return newline && newline[1] ? newline + 1 : NULL;
}

void kc_module_finish(struct kc_module *module)
{
    free(module->text);
    free(module->symbols);
    weir_names_destroy(module->names);
    free(module->uses);
    free(module->nodes);
    *module = (struct kc_module){.text = NULL};
}

const struct kc_symbol *kc_module_find(const struct kc_module *module, const char *name)
{
    const size_t index = weir_names_find(module->names, name);
    return index < module->symbol_count ? &module->symbols[index] : NULL;
}

bool *kc_module_reach(const struct kc_module *module, const char *from, bool *reached)
{
    const struct kc_symbol *start = kc_module_find(module, from);
    size_t *open = malloc((module->symbol_count + 1) * sizeof *open);
    size_t count = 0;
    if (!reached)
        reached = calloc(module->symbol_count + 1, sizeof *reached);
    if (!open || !reached) {
        free(open);
        free(reached);
        return NULL;
    }
    if (start && !reached[start - module->symbols]) {
        open[count++] = (size_t)(start - module->symbols);
        reached[open[0]] = true;
    }
    while (count > 0) {
        const struct kc_symbol *symbol = &module->symbols[open[--count]];
        for (size_t i = 0; i < symbol->use_count; i++) {
            const size_t used = module->uses[symbol->first_use + i];
            if (!reached[used])
                open[count++] = used;
            reached[used] = true;
        }
    }
    free(open);
    return reached;
}

// Writes the line, and of a function all others of it. Returns the line after these.
static const char *keep(const char *line, bool all, bool kept, struct weir_long_text *out)
{
    const char *start = line, *last;
    do {
        last = line;
        line = kc_next_line(line);
    } while (all && line && *last != '}');
    if (kept)
        weir_long_text_add(out, "%.*s", (int)(line ? line - start : (long)strlen(start)), start);
    return line;
}

void kc_module_add_reached(const struct kc_module *module, const bool *reached,
                           struct weir_long_text *out)
{
    for (const char *line = module->text; line;) {
        const bool defines = kc_starts_with(line, "define ");
        const char *name = NULL;
        const char *at = defines ? kc_in_line(line, "@") : *line == '@' ? line : NULL;
        const size_t length = at ? read_name(at + 1, &name) : 0;
        char *text = length > 0 ? strndup(name, length) : NULL;
        const struct kc_symbol *symbol = text ? kc_module_find(module, text) : NULL;
        line = keep(line, defines, !symbol || reached[symbol - module->symbols], out);
        free(text);
    }
}

// Places.

const char *kc_module_node(const struct kc_module *module, unsigned long number)
{
    return number < module->node_count ? module->nodes[number] : NULL;
}

// The number after `key` in a line; 0: there is none.
static unsigned long number_in(const char *line, const char *key)
{
    const char *at = line ? kc_in_line(line, key) : NULL;
    return at ? strtoul(at + strlen(key), NULL, 10) : 0;
}

// The node of the file that a location, a function or a block in one is in.
static const char *file_of(const struct kc_module *module, const char *node)
{
    const unsigned long file = number_in(node, "file: !");
    const unsigned long scope = number_in(node, "scope: !");
    if (file > 0 || scope == 0)
        return kc_module_node(module, file);
    return kc_module_node(module, number_in(kc_module_node(module, scope), "file: !"));
}

void kc_module_add_place(const struct kc_module *module, const char *line,
                         struct weir_long_text *out)
{
    static const char key[] = "filename: \"";
    const unsigned long number = line ? number_in(line, "!dbg !") : 0;
    const char *node = number > 0 ? kc_module_node(module, number) : NULL;
    const char *file = node ? file_of(module, node) : NULL;
    const char *name = file ? kc_in_line(file, key) : NULL;
    const unsigned long column = number_in(node, "column: ");
    if (!name)
        return;
    name += sizeof key - 1;
    weir_long_text_add(out, "%.*s:%lu:", (int)strcspn(name, "\"\n"), name,
                       number_in(node, "line: "));
    if (column > 0)
        weir_long_text_add(out, "%lu:", column);
    weir_long_text_add(out, " ");
}
