/* dla: late assembly.  From a region as JSON (byoc_dory/soc/dla/region_file.py) and its weights, the
 * device makes memory plan, tiles and command stream for its own accelerator at start-up: the same
 * words as byoc_dory/soc/dla/assemble.py, byte for byte.  It allocates nothing: all that it makes is
 * in the arena that it is given. */
#ifndef DLA_LATE_H
#define DLA_LATE_H

#include <stddef.h>
#include <stdint.h>

/* The numbers of an accelerator; see byoc_dory/soc/dla/design.py. */
typedef struct {
    uint32_t pes_in, pes_out; /* channels in parallel */
    uint32_t sram;            /* bytes */
    uint32_t dma_bytes;       /* bytes per cycle */
    uint32_t dma_setup;       /* cycles */
    uint32_t depthwise;       /* 0 by the host, 1 emulated, 2 native */
    uint32_t fused;           /* 1: a convolution requantizes its sums itself */
    uint32_t rows;            /* 1: rows are tiled, too */
    uint32_t resident;        /* 1: results may stay in SRAM between layers */
} dla_late_design_t;

enum {
    DLA_LATE_OK = 0,
    DLA_LATE_ARENA = -1,     /* the arena is too small: `needed` bytes are enough */
    DLA_LATE_TABLES = -2,    /* the arena does not even hold the tables of tensors and layers:
                                `needed` bytes are enough for those, and tell the rest */
    DLA_LATE_TRUNCATED = -3, /* the JSON ends too early */
    DLA_LATE_SYNTAX = -4,    /* it is no JSON at byte `at` */
    DLA_LATE_FORMAT = -5,    /* it is no region */
    DLA_LATE_VERSION = -6,   /* its schema has version `at`, which this program does not know */
    DLA_LATE_FIELD = -7,     /* a field is missing, unknown or out of range at byte `at` */
    DLA_LATE_LAYER = -8,     /* layer number `at` contradicts its tensors */
    DLA_LATE_LENGTH = -9,    /* there are fewer or more weights than the JSON says */
    DLA_LATE_WEIGHTS = -10,  /* the weights are those of another network: their hash differs */
    DLA_LATE_SRAM = -11,     /* layer number `at` needs at least `needed` bytes of SRAM */
    DLA_LATE_DESIGN = -12    /* a number of the design is out of range */
};

/* No enum: C11 6.7.2.2p2 wants values of int there. */
#define DLA_LATE_NOWHERE 0xffffffffu

enum { DLA_LATE_CONV, DLA_LATE_DEPTHWISE, DLA_LATE_DENSE, DLA_LATE_ADD };
enum { DLA_LATE_INPUT, DLA_LATE_OUTPUT, DLA_LATE_INTERNAL };

typedef struct {
    uint32_t channels, rows, columns, kind;
    uint32_t place; /* in SRAM while planning; DLA_LATE_NOWHERE: it is not there */
    uint32_t last;  /* number of the last layer that reads it */
    uint32_t stays; /* 1: from its layer to its last reader */
    uint32_t known; /* 1: while checking, an earlier layer or the caller has written it */
} dla_late_tensor_t;

typedef struct {
    /* from the JSON */
    uint32_t op, inputs[2], output, kernel[2], stride[2], pad[4], shift;
    int32_t clip[2];
    uint32_t weights;
    /* the plan */
    uint32_t tile_k, tile_y, operands[2], result, sums, block, resident[2], stays;
} dla_late_layer_t;

typedef struct {
    dla_late_tensor_t *tensors;
    dla_late_layer_t *layers;
    uint32_t *starts; /* first word of each layer, and the number of words */
    uint32_t *words;
    uint32_t tensor_count, layer_count, word_count;
    uint32_t weights_bytes;
    uint32_t peak;               /* bytes of SRAM in use */
    uint32_t written, unchanged; /* register writes, and those that were left out */
    uint64_t needed;             /* bytes of the arena, or of SRAM; see the codes */
    uint64_t at;                 /* of an error; see the codes */
} dla_late_t;

/* Assembles a region; 0 or one of the codes above, with `late->needed` and `late->at`.  After 0,
 * `late` points into the arena.  Weights are only hashed; NULL leaves that out.  Nothing outside of
 * arena[0 .. bytes) and *late is written. */
int32_t dla_late_assemble(const char *json, size_t json_bytes, const uint8_t *weights,
                          size_t weights_bytes, const dla_late_design_t *design, void *arena,
                          size_t bytes, dla_late_t *late);

/* ---- for the files of the component ---- */

int32_t dla_late_read(const char *json, size_t bytes, const uint8_t *weights, size_t weights_bytes,
                      void *arena, size_t arena_bytes, dla_late_t *late);
int32_t dla_late_plan(dla_late_t *late, const dla_late_design_t *design);
/* Writes words as far as there is room; late->word_count is how many there are. */
void dla_late_stream(dla_late_t *late, const dla_late_design_t *design, uint64_t room);
void dla_late_sha256(const uint8_t *data, size_t bytes, uint8_t digest[32]);

uint64_t dla_late_channel_bytes(const dla_late_t *late, const dla_late_layer_t *layer);
uint64_t dla_late_bias_offset(const dla_late_t *late, const dla_late_layer_t *layer);
uint64_t dla_late_block_bytes(const dla_late_t *late, const dla_late_layer_t *layer);
/* First input row that output rows read, and the one behind the last. */
void dla_late_input_rows(const dla_late_t *late, const dla_late_layer_t *layer, uint32_t start,
                         uint32_t rows, uint32_t *first, uint32_t *last);

static inline uint64_t dla_late_up(uint64_t value, uint64_t step)
{
    return (value + step - 1u) / step * step;
}

static inline uint64_t dla_late_groups(uint64_t size, uint64_t width)
{
    return (size + width - 1u) / width;
}

#endif
