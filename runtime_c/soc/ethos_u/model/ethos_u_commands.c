/* Ethos-U: the command stream. */
#include "ethos_u_model.h"

/* Names by code; NULL: no operation. */
static const char *operation_name(uint32_t code, uint32_t parameter)
{
    static const char *const pools[ETHOS_U_POOLS] = {"POOL MAX", "POOL AVERAGE", "POOL REDUCE_SUM"};
    static const char *const elements[ETHOS_U_ELEMENTWISES] = {
        "ELEMENTWISE MUL", "ELEMENTWISE ADD",   "ELEMENTWISE SUB", "ELEMENTWISE MIN",
        "ELEMENTWISE MAX", "ELEMENTWISE LRELU", "ELEMENTWISE ABS", "ELEMENTWISE CLZ",
        "ELEMENTWISE SHR", "ELEMENTWISE SHL"};
    switch (code) {
    case ETHOS_U_STOP:
        return "STOP";
    case ETHOS_U_IRQ:
        return "IRQ";
    case ETHOS_U_CONV:
        return "CONV";
    case ETHOS_U_DEPTHWISE:
        return "DEPTHWISE";
    case ETHOS_U_POOL:
        return parameter < ETHOS_U_POOLS ? pools[parameter] : "POOL";
    case ETHOS_U_ELEMENTWISE:
        return parameter < ETHOS_U_ELEMENTWISES ? elements[parameter] : "ELEMENTWISE";
    case ETHOS_U_DMA_START:
        return "DMA_START";
    case ETHOS_U_DMA_WAIT:
        return "DMA_WAIT";
    case ETHOS_U_KERNEL_WAIT:
        return "KERNEL_WAIT";
    case ETHOS_U_PMU_MASK:
        return "PMU_MASK";
    default:
        return NULL;
    }
}

static bool operate(ethos_u_t *npu, uint32_t code, uint32_t parameter)
{
    ++npu->result->commands;
    switch (code) {
    case ETHOS_U_CONV:
    case ETHOS_U_DEPTHWISE:
        return ethos_u_convolve(npu, code == ETHOS_U_DEPTHWISE);
    case ETHOS_U_POOL:
        return ethos_u_pool(npu, parameter);
    case ETHOS_U_ELEMENTWISE:
        return ethos_u_elementwise(npu, parameter);
    case ETHOS_U_DMA_START:
        return ethos_u_dma(npu);
    case ETHOS_U_DMA_WAIT:
        ethos_u_wait_transfers(npu, parameter & 15u);
        return true;
    case ETHOS_U_KERNEL_WAIT:
        ethos_u_wait_kernels(npu, parameter & 15u);
        return true;
    default: /* interrupts and counters */
        return true;
    }
}

static bool set_register(ethos_u_t *npu, uint32_t word, const uint8_t *next)
{
    const uint32_t code = word & ETHOS_U_WORD_CODE, parameter = word >> 16;
    if (next != NULL) {
        npu->operation = "cmd1";
        return ethos_u_set_long(npu, code, parameter, ethos_u_read_word(next));
    }
    npu->operation = "cmd0";
    return ethos_u_set_short(npu, code, parameter);
}

bool ethos_u_execute(ethos_u_t *npu, const uint8_t *words, uint32_t count)
{
    for (uint32_t at = 0; at < count; ++at) {
        const uint32_t word = ethos_u_read_word(words + (size_t)at * 4u);
        const uint32_t code = word & ETHOS_U_WORD_CODE;
        const bool is_long = (word & ETHOS_U_WORD_LONG) != 0;
        npu->command = at;
        npu->operation = "stream";
        if ((word & ETHOS_U_WORD_RESERVED) != 0) {
            return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM, "%x is no command",
                                    (uint64_t)word);
        }
        if (is_long && at + 1u == count) {
            return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                    "the stream ends within a command");
        }
        if (is_long || code >= 0x100u) {
            if (!set_register(npu, word, is_long ? words + ((size_t)at + 1u) * 4u : NULL)) {
                return false;
            }
            at += is_long ? 1 : 0;
            continue;
        }
        npu->operation = operation_name(code, word >> 16);
        if (npu->operation == NULL) {
            npu->operation = "stream";
            return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM, "no operation has the code %x",
                                    (uint64_t)code);
        }
        if (code == ETHOS_U_STOP) {
            ethos_u_wait_kernels(npu, 0);
            ethos_u_wait_transfers(npu, 0);
            return true;
        }
        if (!operate(npu, code, word >> 16)) {
            return false;
        }
    }
    npu->operation = "stream";
    return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM, "it ends without STOP");
}
