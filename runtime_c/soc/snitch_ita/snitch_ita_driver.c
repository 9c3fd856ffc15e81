/* Driver of ITA.  It runs on the simulated hart, too; its cycles are hidden behind the running task
 * if the next one is programmed in time. */
#include "snitch_ita_driver.h"

#include <stddef.h>

#include "htvm_hal.h"

#define ITA(reg) (SNITCH_ITA_ITA_REGISTERS + SNITCH_##reg)

/* The registers from SIZE0 to OUT_STRIDE are an image of the descriptor. */
#define IMAGE_WORDS 13u
_Static_assert(sizeof(snitch_ita_task_t) == 4u * IMAGE_WORDS, "image");
_Static_assert(SNITCH_ITA_SIZE0 + 4u * IMAGE_WORDS == SNITCH_ITA_START, "image");
_Static_assert(offsetof(snitch_ita_task_t, cols) == 2, "SIZE0");
_Static_assert(offsetof(snitch_ita_task_t, inner) == SNITCH_ITA_SIZE1 - SNITCH_ITA_SIZE0, "SIZE1");
_Static_assert(offsetof(snitch_ita_task_t, length) == 6, "SIZE1");
_Static_assert(offsetof(snitch_ita_task_t, operation) == SNITCH_ITA_MODE - SNITCH_ITA_SIZE0,
               "MODE");
_Static_assert(offsetof(snitch_ita_task_t, requant) == SNITCH_ITA_REQUANT0 - SNITCH_ITA_SIZE0,
               "REQUANT0");
_Static_assert(offsetof(snitch_ita_task_t, act_requant) == SNITCH_ITA_REQUANT1 - SNITCH_ITA_SIZE0,
               "REQUANT1");
_Static_assert(offsetof(snitch_ita_task_t, gelu_b) == SNITCH_ITA_GELU - SNITCH_ITA_SIZE0, "GELU");
_Static_assert(offsetof(snitch_ita_task_t, left) == SNITCH_ITA_LEFT - SNITCH_ITA_SIZE0, "LEFT");
_Static_assert(offsetof(snitch_ita_task_t, out_stride) == SNITCH_ITA_OUT_STRIDE - SNITCH_ITA_SIZE0,
               "OUT_STRIDE");

uint32_t snitch_ita_program(const snitch_ita_task_t *task)
{
    /* Promising the alignment, and using the builtin, makes this one load: in freestanding code
     * memcpy would be a function call. */
    const uint8_t *from = __builtin_assume_aligned(task, sizeof(uint32_t));
    uint32_t polls = 0;
    while (htvm_hal_read(ITA(REG_ROOM)) == 0) {
        if (htvm_hal_timeout(++polls) != 0) {
            return htvm_hal_read(ITA(REG_STARTED));
        }
    }
    for (uint32_t i = 0; i < IMAGE_WORDS; i++) {
        uint32_t word;
        __builtin_memcpy(&word, from + 4u * i, sizeof word);
        htvm_hal_write(ITA(ITA_SIZE0) + 4u * i, word);
    }
    htvm_hal_write(ITA(ITA_START), 1);
    return htvm_hal_read(ITA(REG_STARTED));
}

int32_t snitch_ita_wait_for(uint32_t number)
{
    uint32_t polls = 0;
    while ((int32_t)(htvm_hal_read(ITA(REG_COMPLETED)) - number) < 0) {
        const int32_t timeout = htvm_hal_timeout(++polls);
        if (timeout != 0) {
            return timeout;
        }
    }
    return (int32_t)htvm_hal_read(ITA(REG_ERROR));
}

int32_t snitch_ita_wait(void)
{
    uint32_t polls = 0;
    while (htvm_hal_read(ITA(REG_STATUS)) == SNITCH_STATUS_BUSY) {
        const int32_t timeout = htvm_hal_timeout(++polls);
        if (timeout != 0) {
            return timeout;
        }
    }
    return (int32_t)htvm_hal_read(ITA(REG_ERROR));
}
