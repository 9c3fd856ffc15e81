/* Parts of attention of one query over many positions, for heads of any number of words.
 *
 * Positions have a byte each in `scores`: first the masked score, int8, then the weight, int8. */
#ifndef HTVM_ATTENTION_H
#define HTVM_ATTENTION_H

#include <stdint.h>

#include "htvm_scale.h"
#include "htvm_simd.h"

/* How a product becomes a masked score. */
typedef struct {
    int32_t mul, add;
    uint32_t shift;
    const int8_t *open, *shut; /* masked score of scores -128 to 127, for masks 0 and -128 */
    const int8_t *before;      /* for other masks: function of scores -128 to 127, */
    const int8_t *mask;        /* function of masks -128 to 127, */
    const int8_t *sums;        /* and of the sums of both, -256 to 255 */
} htvm_scores_t;

/* The masked score of one key of `words` words. */
HTVM_INLINE int32_t htvm_attention_score(const htvm_scores_t *p, const uint8_t *query,
                                         const uint8_t *key, int8_t mask, uint32_t words)
{
    int32_t sum = 0;
    for (uint32_t i = 0; i < words; i++) {
        sum = htvm_dot4(htvm_load4(query + 4u * i), htvm_load4(key + 4u * i), sum);
    }
    const int32_t s = htvm_limit(htvm_scale(sum, p->mul, p->add, p->shift), -128, 127);
    return p->sums[p->before[s + 128] + p->mask[mask + 128] + 256];
}

/* Adds weight * values[0..3] to four sums. */
HTVM_INLINE void htvm_attention_add(int32_t weight, const uint8_t *values, int32_t sums[4])
{
    for (uint32_t i = 0; i < 4u; i++) {
        sums[i] += weight * (int8_t)values[i];
    }
}

/* scores[n] of `count` keys of `words` words each; returns the largest of these and `largest`. */
int32_t htvm_attention_scores(const htvm_scores_t *p, const uint8_t *query, const uint8_t *keys,
                              const int8_t *mask, uint32_t count, uint32_t words, int8_t *scores,
                              int32_t largest);

/* Sum of exponentials[largest - score] of all positions. */
uint32_t htvm_attention_sum(const int8_t *scores, uint32_t count, const uint32_t *exponentials,
                            int32_t largest);

/* scores[n] = weights[255 - (largest - scores[n])], in place. */
void htvm_attention_weights(int8_t *scores, uint32_t count, const int8_t *weights, int32_t largest);

/* Adds weights[n] * values[n][0..3] to four sums, for `count` rows that are `pitch` bytes apart. */
void htvm_attention_mix(const int8_t *weights, const uint8_t *values, uint32_t count,
                        uint32_t pitch, int32_t sums[4]);

#endif
