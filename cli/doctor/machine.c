// Environment variables, devices, and PoCL's cache: without a folder that it can write to,
// PoCL offers no device.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/doctor/doctor.h"
#include "cli/runtime/devices.h"

enum {
    PATH_SIZE = 4096
};

void doctor_environment(struct doctor *doctor)
{
    static const char *const variables[] = {
        "WEIR_CONFIG",          "WEIR_BACKEND",    "WEIR_PLUGINS",
        "WEIR_MODULE_PATH",     "OCL_ICD_VENDORS", "OCL_ICD_FILENAMES",
        "POCL_CACHE_DIR",       "POCL_DEVICES",    "POCL_MAX_PTHREAD_COUNT",
        "CUDA_VISIBLE_DEVICES", "XDG_CACHE_HOME",
    };
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value)
            doctor_add(doctor, DOCTOR_NOTE, "environment", NULL, "%s=%s", variables[i], value);
    }
}

void doctor_devices(struct doctor *doctor)
{
    const size_t count = doctor->runtime ? weir_device_count(doctor->runtime) : 0;
    for (size_t i = 0; i < count; i++) {
        struct weir_device_info info;
        char memory[WEIR_TEXT_QUANTITY_SIZE];
        if (weir_device_describe(doctor->runtime, i, &info) < 0) {
            doctor_add_error(doctor, "device", "update the driver");
            continue;
        }
        doctor_add(doctor, DOCTOR_OK, "device", NULL, "%zu: %s (%s; %s), %s", i, info.name,
                   info.platform, info.driver, weir_text_bytes(memory, info.memory_bytes));
    }
}

// Where PoCL keeps compiled kernels, as its manual says.
static void cache_path(char path[PATH_SIZE])
{
    const char *given = getenv("POCL_CACHE_DIR");
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (given && *given)
        snprintf(path, PATH_SIZE, "%s", given);
    else if (cache && *cache)
        snprintf(path, PATH_SIZE, "%s/pocl/kcache", cache);
    else if (home && *home)
        snprintf(path, PATH_SIZE, "%s/.cache/pocl/kcache", home);
    else
        snprintf(path, PATH_SIZE, "/tmp/pocl/kcache");
}

// The folder itself, or the one that it would be made in.
static void existing_part(const char *path, char existing[PATH_SIZE])
{
    struct stat status;
    snprintf(existing, PATH_SIZE, "%s", path);
    while (stat(existing, &status) != 0 && errno == ENOENT) {
        char *slash = strrchr(existing, '/');
        if (!slash) {
            snprintf(existing, PATH_SIZE, ".");
            return;
        }
        if (slash == existing) {
            slash[1] = '\0';
            return;
        }
        *slash = '\0';
    }
}

static bool can_write_in(const char *directory, char *message, size_t size)
{
    char path[PATH_SIZE + 16];
    snprintf(path, sizeof path, "%s/.weir-probe", directory);
    weir_file_writer *probe = weir_file_writer_create(path, message, size);
    const bool can = probe != NULL;
    weir_file_writer_destroy(&probe);
    return can;
}

// The cache matters if PoCL is in use, or if OpenCL was asked for and could not be opened.
static bool pocl_matters(const struct doctor *doctor)
{
    struct weir_device_info info;
    if (!doctor->runtime)
        return true;
    for (size_t i = 0; i < weir_device_count(doctor->runtime); i++)
        if (weir_device_describe(doctor->runtime, i, &info) == WEIR_OK && cli_is_pocl(&info))
            return true;
    return false;
}

void doctor_pocl_cache(struct doctor *doctor)
{
    char path[PATH_SIZE];
    char existing[PATH_SIZE];
    char message[512];
    if (!pocl_matters(doctor))
        return;
    cache_path(path);
    existing_part(path, existing);
    if (can_write_in(existing, message, sizeof message))
        doctor_add(doctor, DOCTOR_OK, "PoCL cache", NULL, "%s can be written%s", path,
                   strcmp(path, existing) == 0 ? "" : " once it is made");
    else
        doctor_add(doctor, DOCTOR_PROBLEM, "PoCL cache",
                   "make the folder writable, or set POCL_CACHE_DIR to one that is",
                   "PoCL cannot keep compiled kernels in %s, and then has no device: %s", path,
                   message);
}
