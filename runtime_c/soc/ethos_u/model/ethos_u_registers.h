/* Ethos-U55 and -U65: the words of a command stream.
 *
 * A word has a code (bits 0 to 9) and a parameter (bits 16 to 31); bit 14 announces a second word.
 * Codes below 0x100 of single words start operations; all others set a register, which keeps its
 * value.  Names are those of Arm's public register description (ethos-u-vela, ethos_u55_regs). */
#ifndef ETHOS_U_REGISTERS_H
#define ETHOS_U_REGISTERS_H

enum {
    ETHOS_U_WORD_CODE = 0x3ff,
    ETHOS_U_WORD_RESERVED = 0xbc00,
    ETHOS_U_WORD_LONG = 0x4000, /* the value is the next word; the parameter has further bits */
};

/* Operations. */
enum {
    ETHOS_U_STOP = 0x00,
    ETHOS_U_IRQ = 0x01,
    ETHOS_U_CONV = 0x02,
    ETHOS_U_DEPTHWISE = 0x03,
    ETHOS_U_POOL = 0x05,        /* parameter: ETHOS_U_POOL_... */
    ETHOS_U_ELEMENTWISE = 0x06, /* parameter: ETHOS_U_MUL... */
    ETHOS_U_DMA_START = 0x10,
    ETHOS_U_DMA_WAIT = 0x11,    /* parameter: transfers that may still run */
    ETHOS_U_KERNEL_WAIT = 0x12, /* parameter: operations that may still run */
    ETHOS_U_PMU_MASK = 0x13,
};

enum { ETHOS_U_POOL_MAX, ETHOS_U_POOL_AVERAGE, ETHOS_U_POOL_SUM, ETHOS_U_POOLS };

enum {
    ETHOS_U_MUL,
    ETHOS_U_ADD,
    ETHOS_U_SUB,
    ETHOS_U_MIN,
    ETHOS_U_MAX,
    ETHOS_U_LRELU,
    ETHOS_U_ABS,
    ETHOS_U_CLZ,
    ETHOS_U_SHR,
    ETHOS_U_SHL,
    ETHOS_U_ELEMENTWISES,
};

/* Registers of one word; those of feature maps as distances from IFM, OFM or IFM2. */
enum {
    ETHOS_U_IFM = 0x100,
    ETHOS_U_OFM = 0x110,
    ETHOS_U_IFM2 = 0x180,
    ETHOS_U_ZERO_POINT = 0x09, /* not of the OFM */
    ETHOS_U_WIDTH0_M1 = 0x0a,
    ETHOS_U_HEIGHT0_M1 = 0x0b,
    ETHOS_U_HEIGHT1_M1 = 0x0c,
    ETHOS_U_REGION = 0x0f,

    ETHOS_U_IFM_PAD_TOP = 0x100,
    ETHOS_U_IFM_PAD_LEFT = 0x101,
    ETHOS_U_IFM_PAD_RIGHT = 0x102,
    ETHOS_U_IFM_PAD_BOTTOM = 0x103,
    ETHOS_U_IFM_DEPTH_M1 = 0x104,
    ETHOS_U_IFM_PRECISION = 0x105,
    ETHOS_U_IFM_UPSCALE = 0x107,
    ETHOS_U_OFM_WIDTH_M1 = 0x111,
    ETHOS_U_OFM_HEIGHT_M1 = 0x112,
    ETHOS_U_OFM_DEPTH_M1 = 0x113,
    ETHOS_U_OFM_PRECISION = 0x114,
    ETHOS_U_OFM_BLK_WIDTH_M1 = 0x115,
    ETHOS_U_OFM_BLK_HEIGHT_M1 = 0x116,
    ETHOS_U_OFM_BLK_DEPTH_M1 = 0x117,
    ETHOS_U_OFM_ZERO_POINT = 0x118,
    ETHOS_U_KERNEL_WIDTH_M1 = 0x120,
    ETHOS_U_KERNEL_HEIGHT_M1 = 0x121,
    ETHOS_U_KERNEL_STRIDE = 0x122,
    ETHOS_U_PARALLEL_MODE = 0x123,
    ETHOS_U_ACC_FORMAT = 0x124,
    ETHOS_U_ACTIVATION = 0x125,
    ETHOS_U_ACTIVATION_MIN = 0x126,
    ETHOS_U_ACTIVATION_MAX = 0x127,
    ETHOS_U_WEIGHT_REGION = 0x128,
    ETHOS_U_SCALE_REGION = 0x129,
    ETHOS_U_BLOCKDEP = 0x12f,
    ETHOS_U_DMA0_SRC_REGION = 0x130,
    ETHOS_U_DMA0_DST_REGION = 0x131,
    ETHOS_U_IFM2_BROADCAST = 0x180,
    ETHOS_U_IFM2_SCALAR = 0x181,
    ETHOS_U_IFM2_PRECISION = 0x185,
};

/* Registers of two words; those of feature maps as distances from the first base. */
enum {
    ETHOS_U_IFM_BASE0 = 0x00,
    ETHOS_U_OFM_BASE0 = 0x10,
    ETHOS_U_IFM2_BASE0 = 0x80,
    ETHOS_U_STRIDE_X = 0x04,
    ETHOS_U_STRIDE_Y = 0x05,
    ETHOS_U_STRIDE_C = 0x06,

    ETHOS_U_WEIGHT_BASE = 0x20,
    ETHOS_U_WEIGHT_LENGTH = 0x21,
    ETHOS_U_SCALE_BASE = 0x22,
    ETHOS_U_SCALE_LENGTH = 0x23,
    ETHOS_U_OFM_SCALE = 0x24, /* the parameter is the shift; likewise OPA_SCALE */
    ETHOS_U_OPA_SCALE = 0x25,
    ETHOS_U_OPB_SCALE = 0x26,
    ETHOS_U_DMA0_SRC = 0x30,
    ETHOS_U_DMA0_DST = 0x31,
    ETHOS_U_DMA0_LEN = 0x32,
};

/* Fields. */
enum {
    ETHOS_U_REGION_SHRAM = 0x100, /* of a DMA's region: the shared buffer */
    ETHOS_U_REGION_STRIDED = 0x600,

    ETHOS_U_KERNEL_PART_FIRST = 1 << 2,
    ETHOS_U_KERNEL_SMALL = 1 << 5, /* sub-kernels of 4x4 */

    ETHOS_U_OFM_GLOBAL_SCALE = 1 << 8,

    ETHOS_U_BROADCAST_H = 1 << 0,
    ETHOS_U_BROADCAST_W = 1 << 1,
    ETHOS_U_BROADCAST_C = 1 << 2,
    ETHOS_U_BROADCAST_SWAPPED = 1 << 6, /* IFM2 is operand A */
    ETHOS_U_BROADCAST_SCALAR = 1 << 7,

    ETHOS_U_ROUND_TFL = 0, /* twice, as TensorFlow Lite: at bit 31, then at the shift */
    ETHOS_U_ROUND_TRUNCATE = 1,
    ETHOS_U_ROUND_NATURAL = 2,

    ETHOS_U_TANH = 3,
    ETHOS_U_SIGMOID = 4,
    ETHOS_U_TABLE = 16, /* and the number of the table */

    ETHOS_U_CLIP_BY_OFM = 0,
    ETHOS_U_CLIP_UINT8 = 2,
    ETHOS_U_CLIP_INT8 = 3,
    ETHOS_U_CLIP_INT16 = 5,
};

#endif
