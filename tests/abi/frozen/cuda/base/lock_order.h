// The order in which a thread takes locks, and the check of it. See base/lock.h.
#ifndef WEIR_BASE_LOCK_ORDER_H
#define WEIR_BASE_LOCK_ORDER_H

// One kind of lock: all locks with the same task.
struct weir_lock_kind {
    const char *name; // "a queue's submit lock"
    unsigned rank;    // taken only while all locks that the thread holds have lower ranks
};

#ifdef WEIR_CHECK_LOCKS

// The calling thread is about to take a lock of this kind, or has released one.
void weir_lock_order_enter(const struct weir_lock_kind *kind);
void weir_lock_order_leave(const struct weir_lock_kind *kind);

// The calling thread must hold no lock here; `task` names what it is about to do.
void weir_lock_order_expect_none(const char *task);

#else

static inline void weir_lock_order_enter(const struct weir_lock_kind *kind)
{
    (void)kind;
}

static inline void weir_lock_order_leave(const struct weir_lock_kind *kind)
{
    (void)kind;
}

static inline void weir_lock_order_expect_none(const char *task)
{
    (void)task;
}

#endif

#endif
