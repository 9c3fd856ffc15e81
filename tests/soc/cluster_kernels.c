/* Firmware that runs kernels of the cluster on whatever it is given.
 *
 * Marks: case << 1 before a kernel runs on all cores, plus 1 when it is done. */
#include "htvm_hal.h"
#include "htvm_hal_platform.h"
#include "cluster.h"
#include "cluster_dma.h"
#include "cluster_kernels.h"

enum { MOST_CASES = 200, MOST_WORDS = 32, IMAGE = 1 << 22 };

typedef struct {
    uint32_t kernel, words[MOST_WORDS]; /* its arguments */
    uint32_t image, image_bytes;        /* what is in L1 before, from its beginning */
    uint32_t from, to, bytes;           /* the result in L1, and where it is kept */
} case_t;

#define GIVEN __attribute__((section(".noinit"), aligned(64)))
extern case_t cases[MOST_CASES];
extern uint32_t count;
extern uint8_t image[IMAGE], results[IMAGE];
GIVEN case_t cases[MOST_CASES];
GIVEN uint32_t count;
GIVEN uint8_t image[IMAGE], results[IMAGE];

static void nothing(const void *args, uint32_t core, uint32_t cores)
{
    (void)args;
    (void)core;
    (void)cores;
}

static const cluster_kernel_t kernels[] = {
    nothing, cluster_gemm, cluster_matmul, cluster_add, cluster_map, cluster_table_softmax,
    cluster_ita_softmax, cluster_layer_norm, cluster_rms_norm, cluster_affine_norm, cluster_conv2d,
    cluster_depthwise, cluster_transpose,
};

int main(void)
{
    for (uint32_t n = 0; n < count; n++) {
        const case_t *const now = &cases[n];
        uint32_t args[MOST_WORDS];
        for (uint32_t i = 0; i < MOST_WORDS; i++) {
            args[i] = now->words[i];
        }
        if (now->image_bytes != 0) {
            const cluster_dma_t load = {
                .to = cluster_l1(0), .from = image + now->image, .bytes = now->image_bytes, .rows = 1};
            cluster_dma_wait(cluster_dma_start(&load));
        }
        /* Once more than measured, for nothing: everybody has slept then. */
        cluster_run(nothing, args);
        htvm_hal_trace(n << 1);
        cluster_run(kernels[now->kernel], args);
        htvm_hal_trace(n << 1 | 1u);
        if (now->bytes != 0) {
            const cluster_dma_t store = {
                .to = results + now->to, .from = cluster_l1(now->from), .bytes = now->bytes, .rows = 1};
            cluster_dma_wait(cluster_dma_start(&store));
        }
    }
    return 0;
}
