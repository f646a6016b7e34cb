// main() of every test in C: prepares the environment before any part of the
// test, including an OpenCL driver, can read it.

#include "tests/support/test_shim.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace
{

void set_folder(const char *variable, const std::string &path)
{
    if (std::getenv(variable) != nullptr)
        return;
    std::filesystem::create_directories(path);
    setenv(variable, path.c_str(), 1);
}

// The sanitizers' suppression files are named from the root of the runfiles;
// a program that the test starts in another folder must find them too.
void make_suppressions_absolute(const char *variable)
{
    const std::string key = "suppressions=";
    const char *value = std::getenv(variable);
    std::string text = value == nullptr ? "" : value;
    size_t at = text.find(key);
    if (at == std::string::npos || text.compare(at + key.size(), 1, "/") == 0)
        return;
    text.insert(at + key.size(), std::filesystem::current_path().string() + "/");
    setenv(variable, text.c_str(), 1);
}

} // namespace

int main(int argc, char **argv)
{
    char own[] = "/tmp/weir-test.XXXXXX";
    const char *given = std::getenv("TEST_TMPDIR");
    if (given == nullptr) {
        if (mkdtemp(own) == nullptr) {
            std::perror(own);
            return 2;
        }
        setenv("TEST_TMPDIR", own, 1);
    }
    const std::string root = std::getenv("TEST_TMPDIR");

    // PoCL reports no devices when its cache cannot be written, and without
    // either variable all tests would share one folder.
    set_folder("HOME", root + "/home");
    set_folder("POCL_CACHE_DIR", root + "/pocl");
    for (const char *variable : {"ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"})
        make_suppressions_absolute(variable);

    int result = weir_test_main(argc, argv);
    if (given == nullptr) {
        std::error_code ignored;
        std::filesystem::remove_all(own, ignored);
    }
    return result;
}
