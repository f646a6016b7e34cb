// Weir for C++17: objects that destroy themselves, typed buffers, exceptions. Nothing but this header, and
// nothing that the C API cannot do: each object converts to its C pointer, so that both may be mixed.
//
// Errors: a call that does not return WEIR_OK throws weir::error, a wait that timed out too. Only
// the calls that say so return a status or a bool.
//
// Ownership: an object destroys what it holds when its life ends; it can be moved, not copied.
// Objects of a block are destroyed last to first: declare the runtime first, then the device. What
// is still in use by the device is kept until the device is done with it, as in C.
//
// Threads: as the C functions of the same name.
//
// The calls here name weir::check() with its namespace: a program may have a check() of its own.
#ifndef WEIR_WEIR_HPP
#define WEIR_WEIR_HPP

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <weir/weir.h>

namespace weir
{

// What failed: what() is weir_last_error_text() at that moment.
struct error : std::runtime_error {
    weir_status status;

    error(weir_status of, const char *text) : std::runtime_error(text), status(of)
    {
    }
};

// Throws unless `status` is WEIR_OK.
inline void check(weir_status status)
{
    if (status == WEIR_OK)
        return;
    throw error(status, status < 0 ? weir_last_error_text() : weir_status_text(status));
}

// The place of a call, which errors and traces name. Made by default arguments, where the call is.
struct place {
    const char *file;
    int line;

    place(const char *called_in = __builtin_FILE(), int called_at = __builtin_LINE())
        : file(called_in), line(called_at)
    {
    }
};

// The owner of a C object; destroy() takes a pointer to its pointer and sets that to NULL.
template <typename T, void (*destroy)(T **, const char *, int)> class handle
{
  public:
    handle() = default;

    // Takes the object over.
    explicit handle(T *object) : object_(object)
    {
    }

    handle(handle &&other) noexcept : object_(other.release())
    {
    }

    handle &operator=(handle &&other) noexcept
    {
        if (this != &other) {
            destroy(&object_, nullptr, 0);
            object_ = other.release();
        }
        return *this;
    }

    ~handle()
    {
        destroy(&object_, nullptr, 0);
    }

    T *get() const noexcept
    {
        return object_;
    }

    operator T *() const noexcept
    {
        return object_;
    }

    // Gives the object up.
    T *release() noexcept
    {
        return std::exchange(object_, nullptr);
    }

  protected:
    T *object_ = nullptr;
};

namespace detail
{

// A destructor cannot throw; what fails here is a mistake in the program, or a file that a plugin
// could not write.
template <typename T, auto close> void close_or_tell(T **object, const char *file, int line)
{
    if (close(object, file, line) != WEIR_OK)
        std::fprintf(stderr, "weir: %s\n", weir_last_error_text());
}

// Bytes of an array, a vector, a span or whatever else has data() and size().
template <typename Container> std::size_t bytes_of(const Container &container)
{
    using element = std::remove_reference_t<decltype(*std::data(container))>;
    static_assert(std::is_trivially_copyable_v<element>, "the bytes of the elements are copied");
    return std::size(container) * sizeof(element);
}

} // namespace detail

// weir_open(): the modules that the configuration names.
class runtime : public handle<weir_runtime, detail::close_or_tell<weir_runtime, weir_close_at>>
{
  public:
    explicit runtime(const weir_open_params *params = nullptr, place at = {})
    {
        weir::check(weir_open_at(params, &object_, at.file, at.line));
    }

    const char *backend() const
    {
        return weir_runtime_backend(object_);
    }

    // The destructor prints an error; this throws it.
    void close(place at = {})
    {
        weir::check(weir_close_at(&object_, at.file, at.line));
    }
};

// weir_device_open().
class device : public handle<weir_device, detail::close_or_tell<weir_device, weir_device_close_at>>
{
  public:
    // The device that `select` names: an index in digits, or a part of its name; NULL: the first one.
    explicit device(const runtime &from, const char *select = nullptr, place at = {})
        : device(from.get(), select, at)
    {
    }

    // The same of the default runtime, for short programs.
    explicit device(const char *select = nullptr, place at = {})
        : device(static_cast<weir_runtime *>(nullptr), select, at)
    {
    }

    const weir_limits &limits() const
    {
        return *weir_device_limits(object_);
    }

    // The same; waits for all work.
    void close(place at = {})
    {
        weir::check(weir_device_close_at(&object_, at.file, at.line));
    }

  private:
    device(weir_runtime *from, const char *select, place at)
    {
        weir_device_params params = {};
        params.struct_size = sizeof params;
        params.select = select;
        weir::check(weir_device_open_at(from, &params, &object_, at.file, at.line));
    }
};

// A value, as in C: it may be copied, and outlives its queue.
class event
{
  public:
    event() = default;

    event(weir_event value) : value_(value)
    {
    }

    operator weir_event() const noexcept
    {
        return value_;
    }

    // Waits until the work before the record is done.
    void sync(place at = {}) const
    {
        weir::check(weir_event_sync_at(value_, WEIR_FOREVER, at.file, at.line));
    }

    // The same; an event that was never recorded is not waited for.
    void sync_if(place at = {}) const
    {
        weir::check(weir__event_sync_if(value_, WEIR_FOREVER, at.file, at.line));
    }

    // False: not done within the time.
    [[nodiscard]] bool sync_for(std::uint64_t timeout_ns, place at = {}) const
    {
        const weir_status status = weir_event_sync_at(value_, timeout_ns, at.file, at.line);
        return status == WEIR_TIMEOUT ? false : (weir::check(status), true);
    }

    // Whether the work before the record is done; does not wait.
    [[nodiscard]] bool done(place at = {}) const
    {
        const weir_status status = weir_event_query_at(value_, at.file, at.line);
        return status == WEIR_NOT_READY ? false : (weir::check(status), true);
    }

  private:
    weir_event value_ = {};
};

// The nanoseconds from one event to another one, of queues with times.
inline std::int64_t elapsed_ns(event begin, event end, place at = {})
{
    std::int64_t ns = 0;
    weir::check(weir_event_elapsed_ns_at(begin, end, &ns, at.file, at.line));
    return ns;
}

// Memory of the device or of the host, in bytes.
class buffer : public handle<weir_buffer, weir_buffer_destroy_at>
{
  public:
    using handle::handle;

    buffer(const device &of, std::size_t bytes, weir_placement placement = WEIR_PLACE_DEVICE,
           const char *label = nullptr, place at = {})
    {
        weir_buffer_params params = {};
        params.struct_size = sizeof params;
        params.size = bytes;
        params.placement = placement;
        params.label = label;
        weir::check(weir_buffer_create_at(of, &params, &object_, at.file, at.line));
    }

    std::size_t size() const
    {
        return weir_buffer_size(object_);
    }

    // The whole buffer as a kernel's argument: read, written, or both.
    weir_argument in() const
    {
        return weir_whole_in(object_);
    }

    weir_argument out() const
    {
        return weir_whole_out(object_);
    }

    weir_argument inout() const
    {
        return weir_whole_inout(object_);
    }
};

// The host's access to elements of a HOST or MANAGED buffer, from its creation to its end. It
// orders nothing: sync with the work that wrote them first.
template <typename T> class host_access
{
  public:
    host_access(weir_buffer *of, std::size_t first, std::size_t count, weir_access access,
                place at = {})
        : of_(of), offset_(first * sizeof(T)), count_(count), access_(access), at_(at)
    {
        void *memory = nullptr;
        weir::check(
            weir_host_begin_at(of, offset_, count * sizeof(T), access, &memory, at.file, at.line));
        data_ = static_cast<T *>(memory);
    }

    host_access(const host_access &) = delete;

    // The range is the one that weir_host_begin() has taken, so this does not fail.
    ~host_access()
    {
        WEIR_IGNORE(
            weir_host_end_at(of_, offset_, count_ * sizeof(T), access_, at_.file, at_.line));
    }

    T *data() const
    {
        return data_;
    }

    std::size_t size() const
    {
        return count_;
    }

    T *begin() const
    {
        return data_;
    }

    T *end() const
    {
        return data_ + count_;
    }

  private:
    weir_buffer *of_;
    std::size_t offset_, count_;
    weir_access access_;
    place at_;
    T *data_ = nullptr;
};

// A buffer of elements.
template <typename T> class array : public buffer
{
  public:
    using buffer::buffer;

    array(const device &of, std::size_t count, weir_placement placement = WEIR_PLACE_DEVICE,
          const char *label = nullptr, place at = {})
        : buffer(of, count * sizeof(T), placement, label, at)
    {
    }

    std::size_t count() const
    {
        return size() / sizeof(T);
    }

    host_access<T> host(weir_access access, place at = {}) const
    {
        return {object_, 0, count(), access, at};
    }
};

// As many elements on the device, and on the host.
template <typename T> struct pair {
    array<T> memory, host;

    pair(const device &of, std::size_t count, place at = {})
        : memory(of, count, WEIR_PLACE_DEVICE, nullptr, at),
          host(of, count, WEIR_PLACE_HOST, nullptr, at)
    {
    }
};

// Kernels: of a bundle that weir_kernels made, or of OpenCL C source.
class program : public handle<weir_program, weir_program_destroy_at>
{
  public:
    program(const device &of, const weir_bundle &bundle, place at = {})
    {
        weir_program_params params = {};
        params.struct_size = sizeof params;
        params.bundle = &bundle;
        weir::check(weir_program_create_at(of, &params, &object_, at.file, at.line));
    }

    program(const device &of, const char *source, const char *options = nullptr, place at = {})
    {
        weir_program_params params = {};
        params.struct_size = sizeof params;
        params.source = source;
        params.options = options;
        weir::check(weir_program_create_at(of, &params, &object_, at.file, at.line));
    }
};

// A kernel of a program, by its name.
class kernel : public handle<weir_kernel, weir_kernel_destroy_at>
{
  public:
    // weir_kernel_load(), and of a file with OpenCL C.
    kernel(const device &of, const weir_bundle &bundle, const char *name, place at = {})
    {
        weir::check(weir__kernel_load(of, &bundle, nullptr, name, &object_, at.file, at.line));
    }

    static kernel of_file(const device &of, const char *path, const char *name, place at = {})
    {
        weir_kernel *loaded = nullptr;
        weir::check(weir__kernel_load(of, nullptr, path, name, &loaded, at.file, at.line));
        return kernel(loaded);
    }

    kernel(const program &of, const char *name, place at = {})
    {
        weir::check(weir_kernel_create_at(of, name, &object_, at.file, at.line));
    }

  private:
    using handle::handle;
};

// A kernel at the place of a call; made from the kernel where queue::launch() is called.
struct kernel_at {
    weir_kernel *kernel;
    place at;

    kernel_at(const weir::kernel &called, place where = {}) : kernel(called), at(where)
    {
    }
};

// Work that was captured once and is launched many times; queue::capture() makes one.
class graph : public handle<weir_graph, weir_graph_destroy_at>
{
  public:
    using handle::handle;
};

// One native stream or command queue, in order. Every call is asynchronous but upload(), download() and sync().
class queue : public handle<weir_queue, weir_queue_destroy_at>
{
  public:
    using handle::handle;

    explicit queue(const device &of, const char *label = nullptr, bool timing = false,
                   std::int32_t priority = 0, place at = {})
    {
        weir_queue_params params = {};
        params.struct_size = sizeof params;
        params.label = label;
        params.timing = timing;
        params.priority = priority;
        weir::check(weir_queue_create_at(of, &params, &object_, at.file, at.line));
    }

    // Copies all elements of a container, and is done when it returns.
    template <typename Container>
    void upload(const buffer &dst, const Container &src, place at = {})
    {
        weir::check(weir_upload_at(object_, dst, 0, std::data(src), detail::bytes_of(src), at.file,
                                   at.line));
    }

    // Fills a container, and is done when it returns.
    template <typename Container> void download(Container &dst, const buffer &src, place at = {})
    {
        weir::check(weir_download_at(object_, std::data(dst), src, 0, detail::bytes_of(dst),
                                     at.file, at.line));
    }

    void copy(const buffer &dst, std::size_t dst_offset, const buffer &src, std::size_t src_offset,
              std::size_t bytes, place at = {})
    {
        weir::check(
            weir_queue_copy_at(object_, dst, dst_offset, src, src_offset, bytes, at.file, at.line));
    }

    // Fills the buffer with one element's bytes.
    template <typename T> void fill(const buffer &dst, const T &value, place at = {})
    {
        static_assert(std::is_trivially_copyable_v<T>, "the bytes of the element are copied");
        weir::check(weir_queue_fill_at(object_, dst, 0, dst.size(), &value, sizeof value, at.file,
                                       at.line));
    }

    // Arguments are those of weir_queue_launch(): in(), out() and inout() of buffers, weir_local(), scalars of the parameter's type.
    template <typename... Arguments>
    void launch(kernel_at kernel, weir_extent grid, weir_extent block,
                const Arguments &...arguments)
    {
        weir::check(weir__launch(weir_queue_launch_at, object_, kernel.kernel, grid, block,
                                 kernel.at.file, kernel.at.line, arguments...));
    }

    // At least `count` work-items, in blocks that Weir chooses: the kernel leaves the last ones out.
    template <typename... Arguments>
    void launch(kernel_at kernel, std::size_t count, const Arguments &...arguments)
    {
        weir::check(weir__launch_items<size_t>(weir_queue_launch_count_at, object_, kernel.kernel,
                                               count, kernel.at.file, kernel.at.line,
                                               arguments...));
    }

    // Exactly `items` work-items, in blocks that divide them.
    template <typename... Arguments>
    void launch_global(kernel_at kernel, weir_extent items, const Arguments &...arguments)
    {
        weir::check(weir__launch_items<weir_extent>(weir_queue_launch_global_at, object_,
                                                    kernel.kernel, items, kernel.at.file,
                                                    kernel.at.line, arguments...));
    }

    event record(place at = {})
    {
        weir_event recorded;
        weir::check(weir_queue_record_at(object_, &recorded, at.file, at.line));
        return recorded;
    }

    void wait(event before, place at = {})
    {
        weir::check(weir_queue_wait_at(object_, before, at.file, at.line));
    }

    // The same; an event that was never recorded is not waited for.
    void wait_if(event before, place at = {})
    {
        weir::check(weir__queue_wait_if(object_, before, at.file, at.line));
    }

    // Waits for what the other queue has at the moment.
    void after(const queue &other, place at = {})
    {
        weir::check(weir__queue_after(object_, other, at.file, at.line));
    }

    // What `submit` submits to this queue is done when it returns; the result is its time on the device, in nanoseconds.
    template <typename Submit> std::int64_t timed(Submit &&submit, place at = {})
    {
        const event begin = record(at);
        submit();
        const event end = record(at);
        end.sync(at);
        return elapsed_ns(begin, end, at);
    }

    void sync(place at = {})
    {
        weir::check(weir_queue_sync_at(object_, WEIR_FOREVER, at.file, at.line));
    }

    // False: not done within the time.
    [[nodiscard]] bool sync_for(std::uint64_t timeout_ns, place at = {})
    {
        const weir_status status = weir_queue_sync_at(object_, timeout_ns, at.file, at.line);
        return status == WEIR_TIMEOUT ? false : (weir::check(status), true);
    }

    // Waits for the rest of a failed queue's work and clears the failure.
    void recover(place at = {})
    {
        weir::check(weir_queue_recover_at(object_, at.file, at.line));
    }

    // What `submit` submits to this queue, and to queues that wait for it, becomes a graph and does not run.
    template <typename Submit> graph capture(Submit &&submit, place at = {})
    {
        weir::check(weir_capture_begin_at(object_, at.file, at.line));
        try {
            submit();
        } catch (...) {
            WEIR_IGNORE(weir_capture_cancel(object_));
            throw;
        }
        weir_graph *captured = nullptr;
        weir::check(weir_capture_end_at(object_, nullptr, &captured, at.file, at.line));
        return graph(captured);
    }

    void launch(const graph &captured, place at = {})
    {
        weir::check(weir_queue_graph_at(object_, captured, at.file, at.line));
    }
};

} // namespace weir

#endif
