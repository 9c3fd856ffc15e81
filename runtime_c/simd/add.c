/* Sums of elements; see htvm_add.h.  A dot product with a word that has one element picks an element
 * of another word, multiplies it, and adds it to a sum.  Of two operands, halves of two words are put
 * into one before, so that a product adds elements of both; half of a sum needs no product. */
#include "htvm_add.h"

#include <stddef.h>

#include "htvm_scale.h"

#define LANES 4u

#if HTVM_SIMD
typedef struct {
    const uint8_t *a, *b;
    uint8_t *out;
    uint32_t blocks;
    uint32_t unit; /* the byte that elements are multiplied with, twice: in bytes 0 and 2 */
} pair_t;

/* Four sums s of the words x and y, in whose place is left what they no longer need. */
#define HALVES(x, y, z)                                                                            \
    "cv.pack.h %[" z "], %[" y "], %[" x "]\ncv.pack %[" x "], %[" y "], %[" x "]\n"
#define SUMS(op, x, z)                                                                             \
    op " %[s0], %[" x "], %[even]\n" op " %[s1], %[" x "], %[odd]\n"                              \
    op " %[s2], %[" z "], %[even]\n" op " %[s3], %[" z "], %[odd]\n"
#define LOAD(x, y) "cv.lw %[" x "], (%[a]), 4\ncv.lw %[" y "], (%[b]), 4\n"
#define STORE                                                                                      \
    "cv.packlo.b %[s0], %[s1], %[s0]\ncv.packhi.b %[s0], %[s3], %[s2]\n"                          \
    "cv.sw %[s0], (%[out]), 4\n"
#define FOR_ALL(text) text("s0") text("s1") text("s2") text("s3")
#define SCALE(s) "mul %[" s "], %[" s "], %[mul]\n"
#define NO_SCALE(s)
#define SHIFT(s) "cv.addnr %[" s "], %[add], %[shift]\n"
#define CLIP_SIGNED(s) "cv.clipr %[" s "], %[" s "], %[high]\n"
#define CLIP_LIMITS(s) "cv.max %[" s "], %[" s "], %[low]\ncv.min %[" s "], %[" s "], %[high]\n"

/* Eight elements of two operands a round. */
#define PAIR(name, kind, scale, clip)                                                              \
    static void name(const htvm_add_t *p, const pair_t *pair)                                      \
    {                                                                                              \
        const uint8_t *a = pair->a, *b = pair->b;                                                  \
        uint8_t *out = pair->out;                                                                  \
        int32_t s0, s1, s2, s3;                                                                    \
        uint32_t x, y, v, w, z;                                                                    \
        __asm__ volatile(                                                                          \
            HTVM_LOOP                                                                              \
            ".insn r 0x2b, 4, 0, x10, %[blocks], x0\n" /* cv.count 0 */                            \
            "3: " LOAD("x", "y") LOAD("v", "w")                                                    \
            HALVES("x", "y", "z") SUMS("cv.dot" kind ".b", "x", "z")                               \
            FOR_ALL(scale) FOR_ALL(SHIFT) FOR_ALL(clip) STORE                                      \
            HALVES("v", "w", "z") SUMS("cv.dot" kind ".b", "v", "z")                               \
            FOR_ALL(scale) FOR_ALL(SHIFT) FOR_ALL(clip) STORE                                      \
            "4:\n.option pop\n"                                                                    \
            : [a] "+&r"(a), [b] "+&r"(b), [out] "+&r"(out), [x] "=&r"(x), [y] "=&r"(y),            \
              [v] "=&r"(v), [w] "=&r"(w), [z] "=&r"(z), [s0] "=&r"(s0), [s1] "=&r"(s1),            \
              [s2] "=&r"(s2), [s3] "=&r"(s3)                                                       \
            : [blocks] "r"(pair->blocks), [even] "r"(pair->unit), [odd] "r"(pair->unit << 8),      \
              [mul] "r"(p->mul), [add] "r"(p->add), [shift] "r"(p->shift), [low] "r"(p->low),      \
              [high] "r"(p->high)                                                                  \
            : "memory");                                                                           \
    }

PAIR(signed_to_signed, "sp", SCALE, CLIP_SIGNED)
PAIR(signed_to_limits, "sp", SCALE, CLIP_LIMITS)
PAIR(signed_small_to_signed, "sp", NO_SCALE, CLIP_SIGNED)
PAIR(signed_small_to_limits, "sp", NO_SCALE, CLIP_LIMITS)
PAIR(unsigned_to_signed, "usp", SCALE, CLIP_SIGNED)
PAIR(unsigned_to_limits, "usp", SCALE, CLIP_LIMITS)
PAIR(unsigned_small_to_signed, "usp", NO_SCALE, CLIP_SIGNED)
PAIR(unsigned_small_to_limits, "usp", NO_SCALE, CLIP_LIMITS)

/* The same with a table. */
#define LOOKED(s) "cv.lbu %[" s "], %[" s "](%[table])\n"
#define LOOKED_UP(name, kind)                                                                      \
    static void name(const uint8_t *table, const pair_t *pair)                                     \
    {                                                                                              \
        const uint8_t *a = pair->a, *b = pair->b;                                                  \
        uint8_t *out = pair->out;                                                                  \
        uint32_t x, y, v, w, z, s0, s1, s2, s3;                                                    \
        __asm__ volatile(                                                                          \
            HTVM_LOOP                                                                              \
            ".insn r 0x2b, 4, 0, x10, %[blocks], x0\n" /* cv.count 0 */                            \
            "3: " LOAD("x", "y") LOAD("v", "w")                                                    \
            HALVES("x", "y", "z") SUMS("cv.dot" kind ".b", "x", "z") FOR_ALL(LOOKED) STORE         \
            HALVES("v", "w", "z") SUMS("cv.dot" kind ".b", "v", "z") FOR_ALL(LOOKED) STORE         \
            "4:\n.option pop\n"                                                                    \
            : [a] "+&r"(a), [b] "+&r"(b), [out] "+&r"(out), [x] "=&r"(x), [y] "=&r"(y),            \
              [v] "=&r"(v), [w] "=&r"(w), [z] "=&r"(z), [s0] "=&r"(s0), [s1] "=&r"(s1),            \
              [s2] "=&r"(s2), [s3] "=&r"(s3)                                                       \
            : [blocks] "r"(pair->blocks), [even] "r"(pair->unit), [odd] "r"(pair->unit << 8),      \
              [table] "r"(table)                                                                   \
            : "memory");                                                                           \
    }

LOOKED_UP(signed_looked_up, "sp")
LOOKED_UP(unsigned_looked_up, "usp")

/* The same for half of a sum, rounded down: what both have in common, and half of what they have not.
 * Four elements at once; limits are bytes. */
#define HALF(x, y, z, shift)                                                                       \
    "and %[" z "], %[" x "], %[" y "]\nxor %[" x "], %[" x "], %[" y "]\n"                         \
    shift ".sci.b %[" x "], %[" x "], 1\ncv.add.b %[" x "], %[" x "], %[" z "]\n"
#define AT_LEAST(op, x) op ".sc.b %[" x "], %[" x "], %[low]\n"
#define AT_MOST(op, x) op ".sc.b %[" x "], %[" x "], %[high]\n"
#define STORE_WORD(x) "cv.sw %[" x "], (%[out]), 4\n"
#define HALVED(name, shift, limits)                                                                \
    static void name(const pair_t *pair, int32_t low, int32_t high)                                \
    {                                                                                              \
        const uint8_t *a = pair->a, *b = pair->b;                                                  \
        uint8_t *out = pair->out;                                                                  \
        uint32_t x, y, v, w, z;                                                                    \
        __asm__ volatile(                                                                          \
            HTVM_LOOP                                                                              \
            ".insn r 0x2b, 4, 0, x10, %[blocks], x0\n" /* cv.count 0 */                            \
            "3: " LOAD("x", "y") LOAD("v", "w")                                                    \
            HALF("x", "y", "z", shift) limits("x") STORE_WORD("x")                                 \
            HALF("v", "w", "z", shift) limits("v") STORE_WORD("v")                                 \
            "4:\n.option pop\n"                                                                    \
            : [a] "+&r"(a), [b] "+&r"(b), [out] "+&r"(out), [x] "=&r"(x), [y] "=&r"(y),            \
              [v] "=&r"(v), [w] "=&r"(w), [z] "=&r"(z)                                             \
            : [blocks] "r"(pair->blocks), [low] "r"(low), [high] "r"(high)                         \
            : "memory");                                                                           \
    }
#define LIMIT_LOW(x) AT_LEAST("cv.max", x)
#define LIMIT_BOTH(x) AT_LEAST("cv.max", x) AT_MOST("cv.min", x)
#define LIMIT_BOTH_UNSIGNED(x) AT_LEAST("cv.maxu", x) AT_MOST("cv.minu", x)

HALVED(signed_halved_to_low, "cv.sra", LIMIT_LOW)
HALVED(signed_halved_to_limits, "cv.sra", LIMIT_BOTH)
HALVED(unsigned_halved, "cv.srl", LIMIT_BOTH_UNSIGNED)

/* Computes half of a sum. */
static void halve(const htvm_add_t *p, const pair_t *pair)
{
    const int32_t lowest = p->in_unsigned ? 0 : -128, highest = p->in_unsigned ? 255 : 127;
    const int32_t low = p->low < lowest ? lowest : p->low;
    const int32_t high = p->high > highest ? highest : p->high;
    if (p->in_unsigned) {
        unsigned_halved(pair, low, high);
    } else {
        (high == highest ? signed_halved_to_low : signed_halved_to_limits)(pair, low, high);
    }
}

/* Whether results are half of a sum, some of which are within the limits. */
static bool is_half(const htvm_add_t *p)
{
    return p->mul == 1 && p->add == 0 && p->shift == 1 && p->low <= (p->in_unsigned ? 255 : 127) &&
           p->high >= (p->in_unsigned ? 0 : -128);
}

/* Computes `blocks` blocks of eight elements. */
static void add_two(const htvm_add_t *p, uint8_t *out, uint32_t at, uint32_t blocks)
{
    const bool is_signed = p->low == -p->high - 1, is_small = p->mul >= -128 && p->mul <= 127;
    const uint32_t unit = p->table == NULL && is_small ? (uint8_t)p->mul : 1u;
    const pair_t pair = {
        (const uint8_t *)p->in[0] + at, (const uint8_t *)p->in[1] + at, out + at, blocks,
        unit | unit << 16,
    };
    if (is_half(p)) {
        halve(p, &pair);
    } else if (p->table != NULL && p->in_unsigned) {
        unsigned_looked_up(p->table, &pair);
    } else if (p->table != NULL) {
        signed_looked_up(p->table + 256, &pair);
    } else if (p->in_unsigned && is_small) {
        (is_signed ? unsigned_small_to_signed : unsigned_small_to_limits)(p, &pair);
    } else if (p->in_unsigned) {
        (is_signed ? unsigned_to_signed : unsigned_to_limits)(p, &pair);
    } else if (is_small) {
        (is_signed ? signed_small_to_signed : signed_small_to_limits)(p, &pair);
    } else {
        (is_signed ? signed_to_signed : signed_to_limits)(p, &pair);
    }
}
#endif

/* Blocks of four elements of `count` operands; returns the first element that is left. */
HTVM_INLINE uint32_t fours(const htvm_add_t *p, uint8_t *out, uint32_t at, uint32_t end,
                           uint32_t count, bool is_unsigned)
{
    const uint8_t *in[4];
    for (uint32_t n = 0; n < count && n < 4; n++) {
        in[n] = p->in[n];
    }
    for (; at + LANES <= end; at += LANES) {
        int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (uint32_t n = 0; n < count; n++) {
            const uint32_t word = htvm_load4((count <= 4 ? in[n] : (const uint8_t *)p->in[n]) + at);
            s0 = is_unsigned ? htvm_dot4_unsigned(word, 1u, s0) : htvm_dot4(word, 1u, s0);
            s1 = is_unsigned ? htvm_dot4_unsigned(word, 1u << 8, s1) : htvm_dot4(word, 1u << 8, s1);
            s2 = is_unsigned ? htvm_dot4_unsigned(word, 1u << 16, s2)
                             : htvm_dot4(word, 1u << 16, s2);
            s3 = is_unsigned ? htvm_dot4_unsigned(word, 1u << 24, s3)
                             : htvm_dot4(word, 1u << 24, s3);
        }
        s0 = htvm_limit(htvm_scale(s0, p->mul, p->add, p->shift), p->low, p->high);
        s1 = htvm_limit(htvm_scale(s1, p->mul, p->add, p->shift), p->low, p->high);
        s2 = htvm_limit(htvm_scale(s2, p->mul, p->add, p->shift), p->low, p->high);
        s3 = htvm_limit(htvm_scale(s3, p->mul, p->add, p->shift), p->low, p->high);
        htvm_store4(out + at, (uint32_t)(uint8_t)s0 | (uint32_t)(uint8_t)s1 << 8 |
                                  (uint32_t)(uint8_t)s2 << 16 | (uint32_t)s3 << 24);
    }
    return at;
}

static void one(const htvm_add_t *p, uint8_t *out, uint32_t at)
{
    int32_t sum = 0;
    for (uint32_t n = 0; n < p->operands; n++) {
        const uint8_t byte = ((const uint8_t *)p->in[n])[at];
        sum += p->in_unsigned ? (int32_t)byte : (int32_t)(int8_t)byte;
    }
    if (p->table != NULL) {
        out[at] = p->table[sum + (p->in_unsigned ? 0 : 256)];
    } else if (p->wide) {
        out[at] = (uint8_t)htvm_scale_wide(sum, p->mul, p->add, p->shift, p->low, p->high);
    } else {
        out[at] = (uint8_t)htvm_limit(htvm_scale(sum, p->mul, p->add, p->shift), p->low, p->high);
    }
}

/* Elements of which there are no eights, or that assembly does not compute. */
HTVM_CALLED void rest(const htvm_add_t *what, uint8_t *out, uint32_t at, uint32_t end)
{
    const htvm_add_t p = *what; /* stored bytes cannot change it */
    if (p.wide || p.table != NULL) {
        /* one by one */
    } else if (p.in_unsigned) {
        at = fours(&p, out, at, end, p.operands, true);
    } else if (p.operands == 3) {
        at = fours(&p, out, at, end, 3, false);
    } else {
        at = fours(&p, out, at, end, p.operands, false);
    }
    for (; at < end; at++) {
        one(&p, out, at);
    }
}

void htvm_add(const htvm_add_t *what, uint8_t *out, uint32_t at, uint32_t end)
{
#if HTVM_SIMD
    if ((!what->wide || what->table != NULL) && what->operands == 2 && at + 2u * LANES <= end) {
        const uint32_t blocks = (end - at) / (2u * LANES);
        add_two(what, out, at, blocks);
        at += 2u * LANES * blocks;
    }
#endif
    if (at < end) {
        rest(what, out, at, end);
    }
}
