/* Ethos-U as the device of a SoC: programs reach it through the driver's functions, so there are no
 * registers to read and write. */
#include "htvm_soc_bare.h"

#include "htvm_ethos_u.h"

const char *htvm_soc_error(const htvm_soc_t *soc)
{
    (void)soc;
    return htvm_ethos_u_complaint();
}
