// One line of JSON at a time, written whole and flushed, because another program
// reads it.
#include "tests/bench/peers/peer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    LINE_SIZE = 16384,
    FACTS_SIZE = 1024
};

static struct {
    const char *name;
    char device[256];
    char facts[FACTS_SIZE];
    uint64_t checked;
    bool skipped;
    bool failed;
    bool printing; // false while it warms up
    char line[LINE_SIZE];
    size_t used;
} state;

double peer_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

// Text of drivers and of our own, as a JSON string without its quotes.
static void escape(char *to, size_t size, const char *from)
{
    size_t used = 0;
    for (; *from && used + 2 < size; from++) {
        if (*from == '"' || *from == '\\')
            to[used++] = '\\';
        to[used++] = (unsigned char)*from < ' ' ? ' ' : *from;
    }
    to[used] = '\0';
}

void peer_device(const char *name)
{
    escape(state.device, sizeof state.device, name);
}

void peer_fact(const char *name, double value)
{
    const size_t used = strlen(state.facts);
    snprintf(state.facts + used, sizeof state.facts - used, ", \"%s\": %.9g", name, value);
}

void peer_checked(uint64_t results)
{
    state.checked += results;
}

void peer_value(const char *name, double ms)
{
    if (!state.printing || state.used >= sizeof state.line)
        return;
    const int length = snprintf(state.line + state.used, sizeof state.line - state.used,
                                "%s\"%s\": %.6f", state.used ? ", " : "", name, ms);
    state.used += length > 0 ? (size_t)length : 0;
}

static void print_reason(const char *key, const char *format, va_list arguments)
{
    char text[1024], escaped[2048];
    vsnprintf(text, sizeof text, format, arguments);
    escape(escaped, sizeof escaped, text);
    printf("{\"peer\": \"%s\", \"%s\": \"%s\"}\n", state.name, key, escaped);
    fflush(stdout);
}

bool peer_skip(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!state.skipped && !state.failed)
        print_reason("skipped", format, arguments);
    va_end(arguments);
    state.skipped = true;
    return false;
}

bool peer_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!state.failed)
        print_reason("failed", format, arguments);
    va_end(arguments);
    state.failed = true;
    return false;
}

// The command line.

static bool parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
    static const char suffixes[] = "KMG";
    char *end;
    if (*text < '0' || *text > '9' || strlen(text) > 12)
        return false;
    uint64_t value = strtoull(text, &end, 10);
    const char *suffix = *end ? strchr(suffixes, *end) : NULL;
    if (suffix) {
        value <<= 10 * (suffix - suffixes + 1);
        end++;
    }
    if (*end || value < least || value > most)
        return false;
    *out = value;
    return true;
}

static int usage(const struct peer *peer, FILE *to, int status)
{
    fprintf(to, "usage: %s [--rounds N | --serve] [OPTION]...\n%s\n", peer->name, peer->about);
    fprintf(to, "  --rounds N  rounds to measure (11)\n");
    fprintf(to, "  --serve     measure a round for each line of the input\n");
    for (size_t i = 0; i < peer->option_count; i++) {
        const struct peer_option *option = &peer->options[i];
        if (option->value)
            fprintf(to, "  --%s N  %s (%llu)\n", option->name, option->help,
                    (unsigned long long)*option->value);
        else
            fprintf(to, "  --%s TEXT  %s\n", option->name, option->help);
    }
    return status;
}

static bool parse(const struct peer *peer, int argc, char **argv, const struct peer_option *rounds,
                  bool *serve)
{
    for (int i = 1; i < argc; i++) {
        const char *name = strncmp(argv[i], "--", 2) == 0 ? argv[i] + 2 : "";
        const struct peer_option *option = strcmp(name, rounds->name) == 0 ? rounds : NULL;
        if (strcmp(name, "serve") == 0) {
            *serve = true;
            continue;
        }
        for (size_t k = 0; !option && k < peer->option_count; k++)
            if (strcmp(name, peer->options[k].name) == 0)
                option = &peer->options[k];
        if (!option || i + 1 == argc) {
            fprintf(stderr, "%s: '%s' was not expected there\n", peer->name, argv[i]);
            return false;
        }
        if (!option->value) {
            *option->text = argv[++i];
            continue;
        }
        if (!parse_number(argv[++i], option->least, option->most, option->value)) {
            fprintf(stderr, "%s: --%s takes a number from %llu to %llu, not '%s'\n", peer->name,
                    name, (unsigned long long)option->least, (unsigned long long)option->most,
                    argv[i]);
            return false;
        }
    }
    return true;
}

// Rounds.

static bool measure(const struct peer *peer, void *user, uint64_t round, bool print)
{
    state.printing = print;
    state.used = 0;
    if (!peer->round(user))
        return false;
    if (state.used >= sizeof state.line)
        return peer_fail("the figures do not fit into a line of %d bytes", LINE_SIZE);
    if (print) {
        printf("{\"round\": %llu, \"ms\": {%s}}\n", (unsigned long long)round, state.line);
        fflush(stdout);
    }
    return true;
}

static bool asked_for(bool serve, uint64_t round, uint64_t rounds)
{
    if (!serve)
        return round < rounds;
    for (int c = getchar(); c != EOF; c = getchar())
        if (c == '\n')
            return true;
    return false;
}

static bool run(const struct peer *peer, void *user, uint64_t rounds, bool serve)
{
    if (!peer->open(user) || !measure(peer, user, 0, false))
        return false;
    printf("{\"peer\": \"%s\", \"device\": \"%s\", \"checked\": %llu%s}\n", peer->name,
           state.device, (unsigned long long)state.checked, state.facts);
    fflush(stdout);
    for (uint64_t round = 0; asked_for(serve, round, rounds); round++)
        if (!measure(peer, user, round, true))
            return false;
    return true;
}

int peer_main(const struct peer *peer, void *user, int argc, char **argv)
{
    uint64_t rounds = 11;
    bool serve = false;
    const struct peer_option every = {.name = "rounds",
                                      .value = &rounds,
                                      .least = 1,
                                      .most = 1000000};
    state.name = peer->name;
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return usage(peer, stdout, 0);
    if (!parse(peer, argc, argv, &every, &serve))
        return usage(peer, stderr, 2);
    const bool fine = run(peer, user, rounds, serve);
    peer->close(user);
    if (!fine && !state.skipped)
        peer_fail("ended without a reason");
    return fine || (state.skipped && !state.failed) ? 0 : 1;
}
