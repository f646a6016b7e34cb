// Random programs one after the other, and what is left of one that shows a difference.
#include "tests/races/fuzz/program.h"

enum {
    // Findings after which the runtime is closed and opened again: the plugin keeps 1000.
    GROUND_FINDINGS = 800,
};

// Steele, Lea and Flood's splitmix.
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

// The bytes of program `index` of a seed. Returns how many there are.
static size_t drive_program(uint64_t seed, uint64_t index, uint8_t bytes[PROGRAM_BYTES])
{
    uint64_t state = seed * UINT64_C(0x100000001b3) + index;
    const size_t steps = 4 + next_random(&state) % (PROGRAM_STEPS - 3);
    for (size_t i = 0; i < steps; i++) {
        const uint64_t step = next_random(&state);
        memcpy(bytes + i * STEP_BYTES, &step, STEP_BYTES);
    }
    return steps * STEP_BYTES;
}

static bool agrees_alone(enum ground_order order, const uint8_t *bytes, size_t size, FILE *text,
                         char difference[256])
{
    struct ground ground;
    if (ground_open(&ground, order) != WEIR_OK) {
        snprintf(difference, 256, "%s", weir_last_error_text());
        return false;
    }
    const bool agrees = program_agrees(&ground, bytes, size, text, difference);
    ground_close(&ground);
    return agrees;
}

// Leaves out every step without which the difference stays.
static size_t shrink(enum ground_order order, uint8_t *bytes, size_t size)
{
    uint8_t less[PROGRAM_BYTES];
    char difference[256];
    for (bool smaller = true; smaller;) {
        smaller = false;
        for (size_t at = size - STEP_BYTES; at >= STEP_BYTES; at -= STEP_BYTES) {
            memcpy(less, bytes, at);
            memcpy(less + at, bytes + at + STEP_BYTES, size - at - STEP_BYTES);
            if (agrees_alone(order, less, size - STEP_BYTES, NULL, difference))
                continue;
            size -= STEP_BYTES;
            memcpy(bytes, less, size);
            smaller = true;
        }
    }
    return size;
}

static void report(enum ground_order order, uint8_t *bytes, size_t size, FILE *text)
{
    char difference[256] = "";
    size = shrink(order, bytes, size);
    const bool agrees = agrees_alone(order, bytes, size, text, difference);
    fprintf(text, "%s\n", agrees ? "no difference when it runs alone" : difference);
    for (size_t i = 0; i < size; i++)
        fprintf(text, "%02x", bytes[i]);
    fputc('\n', text);
}

static void drive_next(struct ground *ground, uint64_t seed, FILE *text,
                       struct drive_result *result)
{
    uint8_t bytes[PROGRAM_BYTES];
    char difference[256];
    const size_t before = weir_check_count(ground->runtime);
    const size_t size = drive_program(seed, result->programs, bytes);

    result->different = !program_agrees(ground, bytes, size, NULL, difference);
    result->programs++;
    result->findings += weir_check_count(ground->runtime) - before;
    result->with += weir_check_count(ground->runtime) > before;
    if (!result->different)
        return;
    fprintf(text, "program %llu of seed %llu: %s\n", (unsigned long long)result->programs - 1,
            (unsigned long long)seed, difference);
    report(ground->order, bytes, size, text);
}

struct drive_result drive(enum ground_order order, uint64_t seed, uint64_t count, FILE *text)
{
    struct drive_result result = {0};
    struct ground ground;

    while (result.programs < count && !result.different) {
        if (ground_open(&ground, order) != WEIR_OK) {
            fprintf(text, "%s\n", weir_last_error_text());
            break;
        }
        while (result.programs < count && !result.different &&
               weir_check_count(ground.runtime) < GROUND_FINDINGS)
            drive_next(&ground, seed, text, &result);
        ground_close(&ground);
    }
    return result;
}

static int digit(char letter)
{
    const char *const digits = "0123456789abcdef";
    const char *at = letter ? strchr(digits, letter) : NULL;
    return at ? (int)(at - digits) : -1;
}

bool drive_one(enum ground_order order, const char *digits, FILE *text)
{
    uint8_t bytes[PROGRAM_BYTES];
    char difference[256] = "";
    size_t size = 0;
    while (size < PROGRAM_BYTES && digit(digits[0]) >= 0 && digit(digits[1]) >= 0) {
        bytes[size++] = (uint8_t)(digit(digits[0]) * 16 + digit(digits[1]));
        digits += 2;
    }
    const bool agrees = agrees_alone(order, bytes, size, text, difference);
    fprintf(text, "%s\n", agrees ? "no difference" : difference);
    return agrees;
}
