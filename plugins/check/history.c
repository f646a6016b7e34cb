// See the header. The tree is a treap: a search tree by the beginnings of the uses, and a heap by
// random priorities, which keep it balanced. Each node knows how far the uses below it reach.
#include "plugins/check/history.h"

#include <stdlib.h>

#include "base/random.h"

enum {
    BLOCK_USES = 64
};

struct block {
    struct block *next;
    struct check_use uses[BLOCK_USES];
};

void check_uses_finish(struct check_uses *uses)
{
    while (uses->blocks) {
        struct block *block = uses->blocks;
        uses->blocks = block->next;
        free(block);
    }
}

static bool add_block(struct check_uses *uses)
{
    struct block *block = aligned_alloc(_Alignof(struct block), sizeof *block);
    if (!block)
        return false;
    block->next = uses->blocks;
    uses->blocks = block;
    for (int i = 0; i < BLOCK_USES; i++) {
        block->uses[i].left = uses->spare;
        uses->spare = &block->uses[i];
    }
    return true;
}

static struct check_use *take_use(struct check_uses *uses)
{
    if (!uses->spare && !add_block(uses))
        return NULL;
    struct check_use *use = uses->spare;
    uses->spare = use->left;
    return use;
}

static void give_use(struct check_uses *uses, struct check_use *use)
{
    use->left = uses->spare;
    uses->spare = use;
}

// Searching.

static void keep_found(struct check_found *found, struct check_use *use)
{
    if (found->count == found->capacity) {
        const size_t capacity = found->capacity ? 2 * found->capacity : 64;
        struct check_use **grown = realloc(found->uses, capacity * sizeof(void *));
        if (!grown)
            return;
        found->uses = grown;
        found->capacity = capacity;
    }
    found->uses[found->count++] = use;
}

static void find(struct check_use *use, struct check_span span, struct check_found *found)
{
    while (use && use->reach > span.begin) {
        find(use->left, span, found);
        if (use->shape.begin >= span.end)
            return;
        if (use->shape.end > span.begin)
            keep_found(found, use);
        use = use->right;
    }
}

void check_history_find(const struct check_history *history, struct check_span span,
                        struct check_found *found)
{
    found->count = 0;
    find(history->root, span, found);
}

// Changing the tree.

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void measure(struct check_use *use)
{
    use->reach = use->shape.end;
    if (use->left)
        use->reach = later(use->reach, use->left->reach);
    if (use->right)
        use->reach = later(use->reach, use->right->reach);
}

// Uses of the same beginning are in the order of their addresses.
static bool is_before(const struct check_use *a, const struct check_use *b)
{
    return a->shape.begin < b->shape.begin ||
           (a->shape.begin == b->shape.begin && (uintptr_t)a < (uintptr_t)b);
}

static void split(struct check_use *use, const struct check_use *at, struct check_use **out_before,
                  struct check_use **out_after)
{
    if (!use) {
        *out_before = NULL;
        *out_after = NULL;
        return;
    }
    if (is_before(use, at)) {
        split(use->right, at, &use->right, out_after);
        *out_before = use;
    } else {
        split(use->left, at, out_before, &use->left);
        *out_after = use;
    }
    measure(use);
}

static struct check_use *merge(struct check_use *before, struct check_use *after)
{
    if (!before || !after)
        return before ? before : after;
    if (before->priority > after->priority) {
        before->right = merge(before->right, after);
        measure(before);
        return before;
    }
    after->left = merge(before, after->left);
    measure(after);
    return after;
}

static struct check_use *insert(struct check_use *root, struct check_use *use)
{
    if (!root || use->priority > root->priority) {
        split(root, use, &use->left, &use->right);
        measure(use);
        return use;
    }
    struct check_use **side = is_before(use, root) ? &root->left : &root->right;
    *side = insert(*side, use);
    root->reach = later(root->reach, use->shape.end);
    return root;
}

static struct check_use *erase(struct check_use *root, const struct check_use *use)
{
    if (root == use)
        return merge(root->left, root->right);
    struct check_use **side = is_before(use, root) ? &root->left : &root->right;
    *side = erase(*side, use);
    measure(root);
    return root;
}

struct check_use *check_history_add(struct check_uses *uses, struct check_history *history,
                                    const struct check_shape *shape)
{
    struct check_use *use = take_use(uses);
    if (!use)
        return NULL;
    use->shape = *shape;
    use->priority = (uint32_t)weir_random_next(&uses->random);
    history->root = insert(history->root, use);
    history->count++;
    return use;
}

void check_history_remove(struct check_uses *uses, struct check_history *history,
                          struct check_use *use)
{
    history->root = erase(history->root, use);
    history->count--;
    give_use(uses, use);
}

static void clear(struct check_uses *uses, struct check_use *use)
{
    while (use) {
        struct check_use *right = use->right;
        clear(uses, use->left);
        give_use(uses, use);
        use = right;
    }
}

void check_history_clear(struct check_uses *uses, struct check_history *history)
{
    clear(uses, history->root);
    *history = (struct check_history){0};
}
