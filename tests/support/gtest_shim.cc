// Tests register themselves in a list before main, and become GoogleTest's own
// in weir_test_main(): nothing depends on the order of static constructors of C
// and C++. For GoogleTest a failed ASSERT is the same as a failed EXPECT; the C
// macro's `return` ends the test.

#include "tests/support/test_shim.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <filesystem>
#include <mutex>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace
{

struct weir_test *first_test;
struct weir_test **last_test = &first_test;
struct weir_test *running_test;

thread_local std::string note;

std::mutex paths_mutex;
std::deque<std::string> paths;
std::deque<std::string> temp_dirs;

class CTest : public testing::Test
{
  public:
    explicit CTest(struct weir_test *test) : test_(test)
    {
    }

    void TestBody() override
    {
        running_test = test_;
        note.clear();
        test_->run();
        note.clear();
        running_test = nullptr;
    }

  private:
    struct weir_test *test_;
};

std::string format_args(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = std::vsnprintf(nullptr, 0, format, again);
    va_end(again);
    std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
    std::vsnprintf(text.data(), text.size() + 1, format, args);
    return text;
}

void fail(const char *file, int line, const std::string &text)
{
    ADD_FAILURE_AT(file, line) << text << (note.empty() ? "" : "\n  with: ") << note;
}

template <typename T> bool compare(const char *op, T a, T b)
{
    if (std::strcmp(op, "==") == 0)
        return a == b;
    if (std::strcmp(op, "!=") == 0)
        return a != b;
    if (std::strcmp(op, "<") == 0)
        return a < b;
    if (std::strcmp(op, "<=") == 0)
        return a <= b;
    if (std::strcmp(op, ">") == 0)
        return a > b;
    return a >= b;
}

// "Expected: a == b", then each side's value, unless its source says it already.
void fail_pair(const char *file, int line, const char *a_text, const std::string &op,
               const char *b_text, const std::string &a, const std::string &b)
{
    std::string text = std::string("Expected: ") + a_text + " " + op + " " + b_text;
    text += std::string("\n  ") + a_text + " is " + a;
    if (b != b_text)
        text += std::string("\n  ") + b_text + " is " + b;
    fail(file, line, text);
}

template <typename T> std::string show(T value)
{
    return std::to_string(value);
}

std::string show(double value)
{
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", value);
    return text;
}

std::string show(const void *value)
{
    return value == nullptr ? "NULL" : testing::PrintToString(value);
}

std::string show_string(const char *value)
{
    return value == nullptr ? "NULL" : testing::PrintToString(std::string(value));
}

template <typename T>
bool check(const char *file, int line, const char *a_text, const char *op, const char *b_text, T a,
           T b)
{
    if (compare(op, a, b))
        return true;
    fail_pair(file, line, a_text, op, b_text, show(a), show(b));
    return false;
}

const char *keep(std::deque<std::string> &list, const std::string &text)
{
    std::lock_guard<std::mutex> lock(paths_mutex);
    list.push_back(text);
    return list.back().c_str();
}

} // namespace

extern "C" {

void weir_test_add(struct weir_test *test)
{
    *last_test = test;
    last_test = &test->next;
}

void *weir_test_data(void)
{
    return running_test->data;
}

void weir_test_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    std::string text = format_args(format, args);
    va_end(args);
    fail(file, line, text);
}

void weir_test_skip(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    std::string text = format_args(format, args);
    va_end(args);
    testing::internal::AssertHelper(testing::TestPartResult::kSkip, file, line, text.c_str()) =
        testing::Message();
}

void weir_test_note(const char *format, ...)
{
    note.clear();
    if (format == nullptr)
        return;
    va_list args;
    va_start(args, format);
    note = format_args(format, args);
    va_end(args);
}

bool weir_test_has_failed(void)
{
    return testing::Test::HasFailure();
}

void weir_test_in_child(const char *file, int line, void (*body)(void))
{
    int status = -1;
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        alarm(120);
        body();
        std::exit(weir_test_has_failed());
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        weir_test_fail(file, line, "there is no child");
    else if (WIFSIGNALED(status))
        weir_test_fail(file, line, "signal %d ended the child", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        weir_test_fail(file, line, "the child ended with %d", WEXITSTATUS(status));
}

const char *weir_test_temp_dir(void)
{
    std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/weir.XXXXXX";
    if (mkdtemp(path.data()) == nullptr) {
        std::perror(path.c_str());
        std::abort();
    }
    return keep(temp_dirs, path);
}

const char *weir_test_path(const char *name)
{
    static const std::string folder = weir_test_temp_dir();
    return keep(paths, folder + "/" + name);
}

const char *weir_test_runfile(const char *path)
{
    const char *root = std::getenv("TEST_SRCDIR");
    const char *workspace = std::getenv("TEST_WORKSPACE");
    if (root == nullptr || workspace == nullptr)
        return keep(paths, path);
    return keep(paths, std::string(root) + "/" + workspace + "/" + path);
}

const void *weir_test_symbol(const char *library, const char *symbol)
{
    void *handle = dlopen(weir_test_runfile(library), RTLD_NOW | RTLD_LOCAL);
    const void *found = handle != nullptr ? dlsym(handle, symbol) : nullptr;
    if (found == nullptr)
        weir_test_fail(__FILE__, __LINE__, "%s", dlerror());
    return found;
}

bool weir_test_check_true(const char *file, int line, const char *text, bool value, bool expected)
{
    if (value == expected)
        return true;
    fail_pair(file, line, text, "is", expected ? "true" : "false", value ? "true" : "false",
              expected ? "true" : "false");
    return false;
}

// What the library says of the thread's last error, where the test is linked with it.
extern "C" __attribute__((weak)) const char *weir_last_error_text(void);

bool weir_test_check_ok(const char *file, int line, const char *text, intmax_t status)
{
    if (status == 0)
        return true;
    weir_test_fail(file, line, "%s is status %jd: %s", text, status,
                   weir_last_error_text ? weir_last_error_text() : "");
    return false;
}

#define CHECK(kind, type)                                                                       \
    bool weir_test_check_##kind(const char *file, int line, const char *a_text, const char *op, \
                                const char *b_text, type a, type b)                             \
    {                                                                                           \
        return check(file, line, a_text, op, b_text, a, b);                                     \
    }
CHECK(int, intmax_t)
CHECK(uint, uintmax_t)
CHECK(double, double)
CHECK(ptr, const void *)
#undef CHECK

bool weir_test_check_str(const char *file, int line, const char *a_text, const char *op,
                         const char *b_text, const char *a, const char *b)
{
    bool equal = a == nullptr || b == nullptr ? a == b : std::strcmp(a, b) == 0;
    if (equal == (std::strcmp(op, "==") == 0))
        return true;
    fail_pair(file, line, a_text, op, b_text, show_string(a), show_string(b));
    return false;
}

bool weir_test_check_near(const char *file, int line, const char *a_text, const char *b_text,
                          double a, double b, double tolerance)
{
    double difference = a < b ? b - a : a - b;
    // Equal infinities are near; a NaN is near nothing.
    if (a == b || difference <= tolerance)
        return true;
    fail_pair(file, line, a_text, "within " + show(tolerance) + " of", b_text, show(a), show(b));
    return false;
}

bool weir_test_check_mem(const char *file, int line, const char *a_text, const char *b_text,
                         const void *a, const void *b, size_t size)
{
    const unsigned char *x = static_cast<const unsigned char *>(a);
    const unsigned char *y = static_cast<const unsigned char *>(b);
    size_t first = 0;
    size_t count = 0;
    for (size_t i = size; i-- > 0;) {
        if (x[i] != y[i]) {
            first = i;
            count++;
        }
    }
    if (count == 0)
        return true;
    char text[160];
    std::snprintf(text, sizeof text,
                  "\n  %zu of %zu bytes differ, the first at offset %zu: 0x%02x and 0x%02x", count,
                  size, first, static_cast<unsigned>(x[first]), static_cast<unsigned>(y[first]));
    fail(file, line,
         std::string("Expected: the same bytes in ") + a_text + " and " + b_text + text);
    return false;
}

bool weir_test_check_contains(const char *file, int line, const char *text_text,
                              const char *part_text, const char *text, const char *part,
                              bool expected)
{
    bool found = text != nullptr && part != nullptr && std::strstr(text, part) != nullptr;
    if (found == expected)
        return true;
    fail_pair(file, line, text_text, expected ? "contains" : "does not contain", part_text,
              show_string(text), show_string(part));
    return false;
}

int weir_test_main(int argc, char **argv)
{
    testing::InitGoogleTest(&argc, argv);
    if (argc > 1) {
        std::fprintf(stderr, "%s: unknown argument %s; --help lists GoogleTest's\n", argv[0],
                     argv[1]);
        return 2;
    }
    if (first_test == nullptr) {
        std::fprintf(stderr, "%s: no WEIR_TEST is linked into this program\n", argv[0]);
        return 2;
    }
    for (struct weir_test *test = first_test; test != nullptr; test = test->next) {
        testing::RegisterTest(test->suite, test->name, nullptr, nullptr, test->file, test->line,
                              [test]() -> testing::Test * { return new CTest(test); });
    }
    int result = RUN_ALL_TESTS();
    // Not at exit: a forked child that calls exit() must not remove them.
    for (const std::string &path : temp_dirs) {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    return result;
}

} // extern "C"
