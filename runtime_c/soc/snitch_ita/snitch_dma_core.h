/* The program of the DMA core; private to the drivers. */
#ifndef SNITCH_DMA_CORE_H
#define SNITCH_DMA_CORE_H

#include <stdint.h>

/* Takes transfers from the queue and gives them to the DMA; never returns. */
_Noreturn void snitch_dma_serve(void);

#endif
