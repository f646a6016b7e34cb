// What the library must live through, by the first argument: each ends with 0, and nothing is found.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

enum {
    SIZE = 64,
    THREADS = 600, // more than the plugin keeps of those that have ended
};

static weir_runtime *runtime;
static weir_device *device;
static weir_queue *queue;
static weir_buffer *buffer;

static void must(bool right, const char *what)
{
    if (right)
        return;
    fprintf(stderr, "%s: %s\n", what, weir_last_error_text());
    exit(2);
}

#define MUST(call) must((call) >= 0, #call)

static void open_all(void)
{
    MUST(weir_open(NULL, &runtime));
    MUST(weir_device_open(runtime, NULL, &device));
    MUST(weir_queue_create(device, NULL, &queue));
    MUST(weir_buffer_create(device,
                            WEIR_PARAMS(weir_buffer, .size = SIZE, .placement = WEIR_PLACE_HOST),
                            &buffer));
}

static void close_all(void)
{
    weir_buffer_destroy(&buffer);
    weir_queue_destroy(&queue);
    MUST(weir_device_close(&device));
    MUST(weir_close(&runtime));
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool stop;

static void use(void)
{
    void *pointer;
    pthread_mutex_lock(&mutex);
    MUST(weir_host_begin(buffer, 0, SIZE, WEIR_ACCESS_WRITE, &pointer));
    MUST(weir_host_end(buffer, 0, SIZE, WEIR_ACCESS_WRITE));
    pthread_mutex_unlock(&mutex);
}

static void *lock_all_the_time(void *user)
{
    while (!atomic_load(&stop)) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return user;
}

static void *use_all_the_time(void *user)
{
    while (!atomic_load(&stop))
        use();
    return user;
}

// A child has no other thread, and its locks work.
static void run_fork(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, use_all_the_time, NULL);
    pthread_create(&threads[1], NULL, use_all_the_time, NULL);
    for (int i = 0; i < 100; i++) {
        int status = 1;
        pthread_mutex_lock(&mutex);
        const pid_t child = fork();
        if (child == 0) {
            pthread_t thread;
            atomic_store(&stop, true);
            pthread_mutex_unlock(&mutex);
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
            const int error = pthread_create(&thread, NULL, lock_all_the_time, NULL);
            _exit(error || pthread_join(thread, NULL));
        }
        pthread_mutex_unlock(&mutex);
        must(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child");
    }
    atomic_store(&stop, true);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

// Runtimes come and go while others lock.
static void run_reopen(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, lock_all_the_time, NULL);
    pthread_create(&threads[1], NULL, lock_all_the_time, NULL);
    for (int i = 0; i < 50; i++) {
        open_all();
        use();
        close_all();
        void *const library = dlopen("libm.so.6", RTLD_NOW);
        must(library && dlclose(library) == 0, "dlclose");
    }
    atomic_store(&stop, true);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

// A signal handler posts a semaphore, at any instant of calls of Weir's.

static sem_t posted;

static void post(int number)
{
    sem_post(&posted);
}

static void *wait_for_posts(void *user)
{
    for (int i = 0; i < 200; i++)
        while (sem_wait(&posted) != 0)
            continue;
    atomic_store(&stop, true);
    return user;
}

static void run_signal(void)
{
    const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    const unsigned char zero = 0;
    pthread_t thread;
    sigset_t set;
    sem_init(&posted, 0, 0);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_create(&thread, NULL, wait_for_posts, NULL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    signal(SIGALRM, post);
    setitimer(ITIMER_REAL, &often, NULL);
    while (!atomic_load(&stop)) {
        use();
        MUST(weir_queue_fill(queue, buffer, 0, SIZE, &zero, 1));
        MUST(weir_queue_sync(queue, WEIR_FOREVER));
        free(malloc(10000));
    }
    setitimer(ITIMER_REAL, &never, NULL);
    pthread_join(thread, NULL);
}

// Many threads that end, and are joined or not.

static void *use_once(void *user)
{
    use();
    return user;
}

static void *use_and_post(void *user)
{
    use();
    sem_post(&posted);
    return user;
}

static void run_threads(void)
{
    pthread_attr_t detached;
    pthread_t thread;
    sem_init(&posted, 0, 0);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < THREADS; i++) {
        must(pthread_create(&thread, &detached, use_and_post, NULL) == 0, "a detached thread");
        must(pthread_create(&thread, NULL, use_once, NULL) == 0, "a thread");
        if (i % 2)
            pthread_join(thread, NULL);
        else
            pthread_detach(thread);
        while (sem_wait(&posted) != 0)
            continue;
    }
    usleep(100000); // of those that nothing waits for
    pthread_attr_destroy(&detached);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

// Many locks, which are destroyed or not.
static void run_locks(void)
{
    enum {
        LOCKS = 70000
    };
    pthread_mutex_t *const locks = calloc(LOCKS, sizeof *locks);
    for (size_t i = 0; locks && i < LOCKS; i++) {
        pthread_mutex_init(&locks[i], NULL);
        pthread_mutex_lock(&locks[i]);
        if (i % 100 == 0)
            use();
        pthread_mutex_unlock(&locks[i]);
    }
    for (size_t i = 0; locks && i < LOCKS; i += 2)
        pthread_mutex_destroy(&locks[i]);
    free(locks);
}

// The program's malloc() has a lock of its own, and is called before any constructor has run.

static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
extern void *__libc_malloc(size_t size);

void *malloc(size_t size)
{
    pthread_mutex_lock(&memory_lock);
    void *const made = __libc_malloc(size);
    pthread_mutex_unlock(&memory_lock);
    return made;
}

static void *allocate_all_the_time(void *user)
{
    while (!atomic_load(&stop)) {
        void *volatile made = malloc(100);
        free(made);
    }
    return user;
}

static void run_malloc(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, allocate_all_the_time, NULL);
    pthread_create(&threads[1], NULL, use_all_the_time, NULL);
    for (int i = 0; i < 1000; i++) {
        weir_queue *more;
        use();
        MUST(weir_queue_create(device, NULL, &more));
        weir_queue_destroy(&more);
    }
    atomic_store(&stop, true);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

// What other threads do with locks while the process ends is not waited for.
static void run_exit(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, use_all_the_time, NULL);
    use();
    exit(0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
        bool opens; // its runtimes itself
    } runs[] = {
        {"fork", run_fork, false},     {"reopen", run_reopen, true},
        {"signal", run_signal, false}, {"threads", run_threads, false},
        {"locks", run_locks, false},   {"malloc", run_malloc, false},
        {"exit", run_exit, false},
    };
    for (size_t i = 0; argc > 1 && i < sizeof runs / sizeof *runs; i++)
        if (strcmp(argv[1], runs[i].name) == 0) {
            if (!runs[i].opens)
                open_all();
            runs[i].run();
            if (!runs[i].opens)
                close_all();
            return 0;
        }
    return 2;
}
