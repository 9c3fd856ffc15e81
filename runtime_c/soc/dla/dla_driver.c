/* dla: the driver.  It writes registers while an instruction runs, and starts the next one when it
 * has finished. */
#include "dla_driver.h"

#include "dla_regs.h"
#include "htvm_hal.h"
#include "htvm_soc.h"

static int32_t idle(void)
{
    uint32_t status, polls = 0;
    do {
        status = htvm_hal_read(DLA_DLA_REGISTERS + DLA_REG_STATUS);
    } while (status == DLA_STATUS_BUSY && htvm_hal_timeout(++polls) == 0);
    return status == DLA_STATUS_BUSY ? htvm_hal_timeout(polls) : (int32_t)status;
}

int32_t dla_run(const uint32_t *words, uint32_t count, const void *const slots[DLA_SLOTS])
{
    for (uint32_t slot = 0; slot < DLA_SLOTS; ++slot) {
        if (slots[slot] != NULL) {
            htvm_hal_write(DLA_DLA_REGISTERS + DLA_REG_SLOTS + 4u * slot,
                           htvm_hal_addr(slots[slot]));
        }
    }
    for (uint32_t at = 0; at < count; ++at) {
        const uint32_t word = words[at];
        if (word >> 24 == DLA_SET) {
            ++at;
            htvm_hal_write(DLA_DLA_REGISTERS + DLA_REG_CONFIG + 4u * (word & 0xffu), words[at]);
            continue;
        }
        const int32_t status = idle();
        if (status != 0) {
            return status;
        }
        htvm_hal_write(DLA_DLA_REGISTERS + DLA_REG_COMMAND, word);
    }
    return idle();
}
