/* Transposition of bytes; see htvm_transpose.h. */
#include "htvm_transpose.h"

void htvm_transpose(const htvm_transposed_t *what, const htvm_rows_t *rows, uint8_t *out)
{
    htvm_transpose_here(what, rows, out);
}
