/* dla: the instruction set.  Written by byoc_dory.soc.dla.header from the table in
 * byoc_dory/soc/dla/isa.py; do not edit. */
#ifndef DLA_ISA_H
#define DLA_ISA_H

/* configuration registers */
enum {
    DLA_IN0, /* SRAM address of the first operand */
    DLA_IN1, /* SRAM address of the second operand */
    DLA_WEIGHTS, /* SRAM address of the weights, K x fy x fx x C; depthwise C x fy x fx */
    DLA_BIAS, /* SRAM address of the biases, int32 [K], a multiple of 4 */
    DLA_OUT, /* SRAM address of the result; of int32, a multiple of 4 */
    DLA_CHANNELS, /* channels of the input that are summed */
    DLA_IN_HEIGHT, /* rows of the input */
    DLA_IN_WIDTH, /* columns of the input */
    DLA_IN_PIXEL, /* bytes from pixel to pixel of the first operand */
    DLA_IN_ROW, /* bytes from row to row of the first operand */
    DLA_IN1_PIXEL, /* bytes from pixel to pixel of the second operand */
    DLA_IN1_ROW, /* bytes from row to row of the second operand */
    DLA_OUT_CHANNELS, /* channels of the result */
    DLA_OUT_HEIGHT, /* rows of the result */
    DLA_OUT_WIDTH, /* columns of the result */
    DLA_OUT_PIXEL, /* bytes from pixel to pixel of the result */
    DLA_OUT_ROW, /* bytes from row to row of the result */
    DLA_KERNEL, /* height and width of the window */
    DLA_STRIDE, /* stride in y and x */
    DLA_PAD, /* zeros above and left of the input; all others follow from sizes */
    DLA_SHIFT, /* bits of a shift, 0 to 31 */
    DLA_CLIP, /* smallest and largest result of a requantization, int8 each */
    DLA_ALPHA, /* bits of the right shift of negative values (leaky ReLU), 0 to 7 */
    DLA_SLOT, /* number of the slot whose system address a transfer starts from */
    DLA_OFFSET, /* bytes from there */
    DLA_LOCAL, /* SRAM address of a transfer */
    DLA_ROWS, /* rows of a transfer */
    DLA_BYTES, /* bytes of a row */
    DLA_FAR_PITCH, /* bytes from row to row in system memory */
    DLA_LOCAL_PITCH, /* bytes from row to row in SRAM */
    DLA_CONFIG_REGISTERS
};

/* what the system addresses of transfers belong to */
enum { DLA_SLOTS = 4 };

/* flags of an instruction word */
enum {
    DLA_FLAG_REQUANT = 0x1, /* the result is int8: clip(sum >> SHIFT); otherwise int32 */
    DLA_FLAG_AVERAGE = 0x2, /* the average instead of the maximum, halves rounded up */
    DLA_FLAG_BIAS = 0x4, /* sums start with the biases; otherwise with zero */
};

/* what cycles are counted as */
enum { DLA_KIND_CONV, DLA_KIND_DEPTH, DLA_KIND_REQUANT, DLA_KIND_OTHER, DLA_KIND_DMA, DLA_KINDS };

/* opcodes: bits 31 to 24 of a word */
enum {
    DLA_SET = 0x01, /* the word after it goes to the register of bits 7 to 0 */
    DLA_OP_CONV = 0x10, /* convolution over all input channels, optionally requantized */
    DLA_OP_CONV_RELU = 0x11, /* convolution, requantized, negative results become zero */
    DLA_OP_DEPTH_CONV = 0x12, /* depthwise convolution of OUT_CHANNELS channels, optionally requantized */
    DLA_OP_MAT_MUL = 0x13, /* product of a matrix, whose rows are the pixels of the operand, with weights K x C */
    DLA_OP_ACT_RELU = 0x20, /* max(x, 0) */
    DLA_OP_ACT_LRELU = 0x21, /* x, or x >> ALPHA if it is negative */
    DLA_OP_POOL = 0x22, /* maximum, or average, of the elements of each window that are inside the input */
    DLA_OP_E_ABS = 0x30, /* |x|, at most 127 */
    DLA_OP_C_MIN = 0x31, /* the smaller one */
    DLA_OP_C_MAX = 0x32, /* the larger one */
    DLA_OP_E_ADD = 0x33, /* clip((a + b) >> SHIFT) */
    DLA_OP_E32_ADD = 0x34, /* a + b, which wraps */
    DLA_OP_E32_SHR = 0x35, /* x >> SHIFT, which floors; requantized, clip(x >> SHIFT) */
    DLA_OP_E32_SHL = 0x36, /* x << SHIFT, which wraps */
    DLA_OP_DMA_READ = 0x40, /* moves rows from system memory to SRAM */
    DLA_OP_DMA_WRITE = 0x41, /* moves rows from SRAM to system memory */
};

/* name, opcode, kind, flags it may have, bit set of the registers it reads (without
 * those that flags add) */
#define DLA_INSTRUCTIONS(each) \
    each(OP_CONV, 0x10u, DLA_KIND_CONV, 0x5u, 0x000ff3f5u) \
    each(OP_CONV_RELU, 0x11u, DLA_KIND_CONV, 0x4u, 0x003ff3f5u) \
    each(OP_DEPTH_CONV, 0x12u, DLA_KIND_DEPTH, 0x5u, 0x000ff3d5u) \
    each(OP_MAT_MUL, 0x13u, DLA_KIND_CONV, 0x4u, 0x0001f335u) \
    each(OP_ACT_RELU, 0x20u, DLA_KIND_OTHER, 0x0u, 0x0001f311u) \
    each(OP_ACT_LRELU, 0x21u, DLA_KIND_OTHER, 0x0u, 0x0041f311u) \
    each(OP_POOL, 0x22u, DLA_KIND_OTHER, 0x2u, 0x000ff3d1u) \
    each(OP_E_ABS, 0x30u, DLA_KIND_OTHER, 0x0u, 0x0001f311u) \
    each(OP_C_MIN, 0x31u, DLA_KIND_OTHER, 0x0u, 0x0001ff13u) \
    each(OP_C_MAX, 0x32u, DLA_KIND_OTHER, 0x0u, 0x0001ff13u) \
    each(OP_E_ADD, 0x33u, DLA_KIND_OTHER, 0x0u, 0x0031ff13u) \
    each(OP_E32_ADD, 0x34u, DLA_KIND_OTHER, 0x0u, 0x0001ff13u) \
    each(OP_E32_SHR, 0x35u, DLA_KIND_REQUANT, 0x1u, 0x0011f311u) \
    each(OP_E32_SHL, 0x36u, DLA_KIND_REQUANT, 0x0u, 0x0011f311u) \
    each(OP_DMA_READ, 0x40u, DLA_KIND_DMA, 0x0u, 0x3f800000u) \
    each(OP_DMA_WRITE, 0x41u, DLA_KIND_DMA, 0x0u, 0x3f800000u)

#define DLA_REGISTER_NAMES \
    "IN0", "IN1", "WEIGHTS", "BIAS", "OUT", "CHANNELS", "IN_HEIGHT", "IN_WIDTH", "IN_PIXEL", "IN_ROW", "IN1_PIXEL", "IN1_ROW", "OUT_CHANNELS", "OUT_HEIGHT", "OUT_WIDTH", "OUT_PIXEL", "OUT_ROW", "KERNEL", "STRIDE", "PAD", "SHIFT", "CLIP", "ALPHA", "SLOT", "OFFSET", "LOCAL", "ROWS", "BYTES", "FAR_PITCH", "LOCAL_PITCH"

#endif
