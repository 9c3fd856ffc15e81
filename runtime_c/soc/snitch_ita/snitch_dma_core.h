/* What the DMA core does; private to the drivers. */
#ifndef SNITCH_DMA_CORE_H
#define SNITCH_DMA_CORE_H

#include <stdint.h>

/* Takes orders from the queue and gives them to the DMA, for ever. */
_Noreturn void snitch_dma_serve(void);

#endif
