// Where a kernel's parameter stands in a text that a driver's compiler has taken, which tells no
// places then. Nothing is preprocessed here, so what is not certain has no line.
#include <ctype.h>
#include <string.h>

#include "backends/clc/clc.h"
#include "base/text.h"

struct reader {
    const char *at;
    unsigned line;
    const char *word; // or another character
    size_t length;
};

static bool is(const struct reader *reader, const char *word)
{
    return reader->length == strlen(word) && memcmp(reader->word, word, reader->length) == 0;
}

static void pass(struct reader *reader, const char *end)
{
    for (; *reader->at && reader->at != end; reader->at++)
        reader->line += *reader->at == '\n';
}

static void pass_blanks(struct reader *reader)
{
    for (;;) {
        const char *end = reader->at;
        if (strncmp(end, "/*", 2) == 0) {
            end = strstr(end + 2, "*/");
            end = end ? end + 2 : NULL;
        } else if (strncmp(end, "//", 2) == 0) {
            end = strchr(end, '\n');
        } else if (isspace((unsigned char)*end)) {
            end++;
        } else {
            return;
        }
        pass(reader, end);
    }
}

// A text in quotes is one character.
static bool read_word(struct reader *reader)
{
    pass_blanks(reader);
    const char quote = *reader->at;
    reader->word = reader->at;
    while (weir_text_is_word(*reader->at))
        reader->at++;
    if (reader->at == reader->word && quote)
        reader->at++;
    reader->length = (size_t)(reader->at - reader->word);
    if (quote == '"' || quote == '\'') {
        while (*reader->at && *reader->at != quote && *reader->at != '\n')
            reader->at += reader->at[0] == '\\' && reader->at[1] ? 2 : 1;
        reader->at += *reader->at == quote;
    }
    return reader->length > 0;
}

unsigned clc_line_of(const char *text, const char *kernel, const char *parameter)
{
    struct reader reader = {.at = text, .line = 1};
    struct reader before = reader;
    unsigned line = 0;
    unsigned definitions = 0;
    bool in_head = false;
    for (; read_word(&reader); before = reader) {
        if (is(&before, "#") && is(&reader, "line"))
            return 0;
        if (is(&before, "void") && is(&reader, kernel)) {
            definitions++;
            in_head = true;
        } else if (in_head && is(&reader, parameter)) {
            line = reader.line;
        }
        in_head = in_head && !is(&reader, "{");
    }
    return definitions == 1 ? line : 0;
}
