/* A SoC without devices: the core and its RAM alone. */
#include "htvm_soc_bare.h"

const char *htvm_soc_error(const htvm_soc_t *soc)
{
    (void)soc;
    return NULL;
}
