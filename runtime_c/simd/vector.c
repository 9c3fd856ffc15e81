/* Products of one vector; see htvm_vector.h. */
#include "htvm_vector.h"

#include "htvm_scale.h"

#if HTVM_SIMD
#define SCALE(s)                                                                                   \
    "mul %[" s "], %[" s "], %[mul]\ncv.addnr %[" s "], %[add], %[shift]\n"                        \
    "cv.max %[" s "], %[" s "], %[low]\ncv.min %[" s "], %[" s "], %[high]\n"
/* Four rows a round; the pointer w goes from row to row and back. */
#define VECTOR(op)                                                                                 \
    __asm__ volatile(                                                                              \
        HTVM_LOOP                                                                                  \
        "0: .insn r 0x2b, 4, 0, x10, %[words], x0\n" /* cv.count 0 */                              \
        "mv %[s0], x0\nmv %[s1], x0\nmv %[s2], x0\nmv %[s3], x0\n"                                 \
        "3: cv.lw %[a], (%[x]), 4\ncv.lw %[b], (%[w]), %[step]\ncv.lw %[c], (%[w]), %[step]\n"     \
        "cv.lw %[d], (%[w]), %[step]\ncv.lw %[e], (%[w]), %[back]\n"                               \
        op " %[s0], %[a], %[b]\n" op " %[s1], %[a], %[c]\n"                                        \
        op " %[s2], %[a], %[d]\n" op " %[s3], %[a], %[e]\n"                                        \
        "4:\n" SCALE("s0") SCALE("s1") SCALE("s2") SCALE("s3")                                     \
        "cv.packlo.b %[s0], %[s1], %[s0]\ncv.packhi.b %[s0], %[s3], %[s2]\n"                       \
        "cv.sw %[s0], (%[out]), 4\n"                                                               \
        "sub %[x], %[x], %[step]\nadd %[w], %[w], %[next]\n"                                       \
        "addi %[quads], %[quads], -1\nbnez %[quads], 0b\n"                                         \
        ".option pop\n"                                                                            \
        : [x] "+&r"(x), [w] "+&r"(w), [out] "+&r"(out), [quads] "+&r"(quads), [a] "=&r"(a),        \
          [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d), [e] "=&r"(e), [s0] "=&r"(s0),                  \
          [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3)                                           \
        : [step] "r"(step), [back] "r"(4u - 3u * step), [next] "r"(3u * step),                     \
          [words] "r"(p->words), [mul] "r"(p->mul), [add] "r"(p->add), [shift] "r"(p->shift),      \
          [low] "r"(p->low), [high] "r"(p->high)                                                   \
        : "memory")

void htvm_vector(const htvm_vector_t *p)
{
    const uint8_t *x = p->in, *w = p->rows;
    uint8_t *out = p->out;
    uint32_t quads = p->quads, a, b, c, d, e;
    int32_t s0, s1, s2, s3;
    const uint32_t step = 4u * p->words;
    if (p->in_unsigned) {
        VECTOR("cv.sdotusp.b");
    } else {
        VECTOR("cv.sdotsp.b");
    }
}
#else
void htvm_vector(const htvm_vector_t *p)
{
    const uint8_t *row = p->rows;
    for (uint32_t k = 0; k < 4u * p->quads; k++) {
        int32_t sum = 0;
        for (uint32_t i = 0; i < p->words; i++, row += 4) {
            const uint32_t in = htvm_load4(p->in + 4u * i);
            sum = p->in_unsigned ? htvm_dot4_unsigned(in, htvm_load4(row), sum)
                                 : htvm_dot4(in, htvm_load4(row), sum);
        }
        const int32_t scaled = htvm_scale(sum, p->mul, p->add, p->shift);
        p->out[k] = (uint8_t)htvm_limit(scaled, p->low, p->high);
    }
}
#endif
