// A program's marks are those between the end of the program before and its own end, which is a line
// of one brace. A function that is no program ends the same way, so it counts which has begun.
#include "tests/races/marks.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static struct mark *mark_of(struct marks *marks, char letter)
{
    for (size_t i = 0; i < marks->count; i++)
        if (marks->list[i].letter == letter)
            return &marks->list[i];
    if (marks->count == MARKS_MAX)
        return NULL;
    marks->list[marks->count] = (struct mark){.letter = letter};
    return &marks->list[marks->count++];
}

// Takes `word`, and the letter after it if there is one. A comment that says more is no mark.
static bool take(const char **at, const char *word, char *out_letter)
{
    const size_t length = strlen(word);
    if (strncmp(*at, word, length) != 0)
        return false;
    *at += length;
    *out_letter = '\0';
    if ((*at)[0] == ' ' && islower((unsigned char)(*at)[1])) {
        *out_letter = (*at)[1];
        *at += 2;
    }
    return true;
}

// The text of a comment that stands after code, else NULL.
static const char *comment_of(const char *text)
{
    const char *at = strstr(text, " // ");
    return at && strspn(text, " ") < (size_t)(at - text) ? at + 4 : NULL;
}

static void read_line(struct marks *marks, const char *text, int line)
{
    char letter;

    for (const char *at = comment_of(text); at; at = strncmp(at, ", ", 2) == 0 ? at + 2 : NULL) {
        const bool is_first = take(&at, "first", &letter);
        if ((!is_first && !take(&at, "second", &letter)) || strchr(",\n", *at) == NULL)
            return;
        struct mark *mark = mark_of(marks, letter);
        if (mark && is_first)
            mark->first = line;
        else if (mark)
            mark->second = line;
    }
}

bool marks_read(const struct race_pair *pair, const char *path, struct marks *out_marks)
{
    FILE *file = fopen(path, "r");
    char text[256];
    int begun = 0; // the line of the last RACE()

    *out_marks = (struct marks){.count = 0};
    for (int line = 1; file && fgets(text, sizeof text, file); line++) {
        if (strncmp(text, "RACE(", 5) == 0)
            begun = line;
        read_line(out_marks, text, line);
        if (strcmp(text, "}\n") != 0 || begun == 0)
            continue;
        if (begun == pair->line)
            break;
        begun = 0;
        out_marks->count = 0;
    }
    if (file)
        fclose(file);
    return begun == pair->line && out_marks->count > 0;
}

// A line that is not marked is in another file, or there is no such use.
static bool is_marked(const struct race_pair *pair, const struct weir_check_use *use, int line)
{
    return line == 0 ? strcmp(use->file, pair->file) != 0
                     : use->line == line && strcmp(use->file, pair->file) == 0;
}

bool marks_expect(const struct marks *marks, const struct race_pair *pair,
                  const struct weir_check_finding *finding)
{
    for (size_t i = 0; i < marks->count; i++)
        if (finding->kind == pair->kind && is_marked(pair, &finding->first, marks->list[i].first) &&
            is_marked(pair, &finding->second, marks->list[i].second))
            return true;
    return false;
}
