/* constant: net_depthwise_bias[8], int32: bias of depthwise, int32 8 */
/* constant: net_depthwise_weight[72], int8: weight of depthwise, int8 3x3x8x1 */
/* constant: net_dilated_bias[4], int32: bias of dilated, int32 4 */
/* constant: net_dilated_weight[288], int8: weight of dilated, int8 3x3x8x4 */
/* constant: net_first_bias[4], int32: bias of first, int32 4x1x1 */
/* constant: net_first_multiplier[4], int32: multiplier of first, int32 4 */
/* constant: net_first_shift[4], int32: shift of first, int32 4 */
/* constant: net_first_weight[288], int8: weight of first, int8 4x8x3x3 */
/* constant: net_grouped_bias[6], int32: bias of grouped, int32 6 */
/* constant: net_grouped_weight[216], int8: weight of grouped, int8 3x3x4x6 */

/*
 * depthwise: pad
 * int8 1x5x6x8 -> int8 1x6x7x8
 * borders filled, rows copied
 * 5 + 56 iterations shared by the cores; all operands in memory close to them (576 B)
 */
struct net_depthwise_pad_operands {
  const int8_t *in0;
  int8_t *out;
};

static void net_depthwise_pad_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_depthwise_pad_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  int8_t *const restrict out = operands->out;
  const int32_t begin_0 = htvm_parallel_begin(5, core, cores);
  const int32_t end_0 = htvm_parallel_begin(5, core + 1u, cores);
  const int32_t begin_1 = htvm_parallel_begin(56, core, cores);
  const int32_t end_1 = htvm_parallel_begin(56, core + 1u, cores);
  for (int32_t y = begin_0; y < end_0; ++y) {
    int32_t t1 = (y * 56);
    for (int32_t i = 0; i < 48; ++i) {
      out[(t1 + i)] = in0[((y * 48) + i)];
    }
    for (int32_t i_1 = 0; i_1 < 8; ++i_1) {
      out[((t1 + i_1) + 48)] = (int8_t)0;
    }
  }
  for (int32_t i_2 = begin_1; i_2 < end_1; ++i_2) {
    out[(i_2 + 280)] = (int8_t)0;
  }
}

void net_depthwise_pad(const int8_t *restrict in0, int8_t *restrict out)
{
  const struct net_depthwise_pad_operands operands = {
    htvm_parallel_memory(0u), /* in0 */
    htvm_parallel_memory(240u), /* out */
  };
  htvm_parallel_copy((void *)operands.in0, in0, 240u);
  htvm_parallel_wait();
  htvm_parallel_run(net_depthwise_pad_part0, &operands);
  htvm_parallel_copy(out, operands.out, 336u);
  htvm_parallel_wait();
}

/*
 * depthwise: depthwise + add + right_shift + clip + astype
 * int8 1x6x7x8 -> int8 1x2x3x8
 * 3 pixels of a channel at a time
 * 16 iterations shared by the cores; all operands in memory close to them (488 B)
 */
struct net_depthwise_operands {
  const int8_t *in0;
  const int8_t *weight;
  const int32_t *bias;
  int8_t *out;
};

static void net_depthwise_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_depthwise_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  const int8_t *const restrict weight = operands->weight;
  const int32_t *const restrict bias = operands->bias;
  int8_t *const restrict out = operands->out;
  const int32_t begin_0 = htvm_parallel_begin(16, core, cores);
  const int32_t end_0 = htvm_parallel_begin(16, core + 1u, cores);
  int32_t acc[3];
  for (int32_t n = begin_0; n < end_0; ++n) {
    int32_t y = (n / 8);
    int32_t c = (n % 8);
    HTVM_UNROLL(3)
    for (int32_t px = 0; px < 3; ++px) {
      acc[px] = 0;
    }
    HTVM_UNROLL(3)
    for (int32_t fy = 0; fy < 3; ++fy) {
      HTVM_UNROLL(3)
      for (int32_t fx = 0; fx < 3; ++fx) {
        HTVM_UNROLL(3)
        for (int32_t px_1 = 0; px_1 < 3; ++px_1) {
          int32_t t1 = (fx * 8);
          acc[px_1] = (acc[px_1] + (((int32_t)in0[(((((y * 112) + (fy * 56)) + (px_1 * 16)) + t1) + c)]) * ((int32_t)weight[(((fy * 24) + t1) + c)])));
        }
      }
    }
    HTVM_UNROLL(3)
    for (int32_t px_2 = 0; px_2 < 3; ++px_2) {
      int32_t v0 = (acc[px_2] + bias[c]) >> 8;
      int32_t v1 = (v0) < (127) ? (v0) : (127);
      out[(((y * 24) + (px_2 * 8)) + c)] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));
    }
  }
}

void net_depthwise(const int8_t *restrict in0, const int8_t *restrict weight, const int32_t *restrict bias, int8_t *restrict out)
{
  const struct net_depthwise_operands operands = {
    htvm_parallel_memory(112u), /* in0 */
    htvm_parallel_memory(0u), /* weight */
    htvm_parallel_memory(80u), /* bias */
    htvm_parallel_memory(448u), /* out */
  };
  htvm_parallel_copy((void *)operands.in0, in0, 336u);
  htvm_parallel_copy((void *)operands.weight, weight, 72u);
  htvm_parallel_copy((void *)operands.bias, bias, 32u);
  htvm_parallel_wait();
  htvm_parallel_run(net_depthwise_part0, &operands);
  htvm_parallel_copy(out, operands.out, 48u);
  htvm_parallel_wait();
}

/*
 * grouped: depthwise + add + right_shift + clip + astype
 * int8 1x5x6x8 -> int8 1x3x4x6
 * element-wise operators inlined
 * 72 iterations shared by the cores; all operands in memory close to them (552 B)
 */
struct net_grouped_operands {
  const int8_t *in0;
  const int8_t *weight;
  const int32_t *bias;
  int8_t *out;
};

static void net_grouped_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_grouped_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  const int8_t *const restrict weight = operands->weight;
  const int32_t *const restrict bias = operands->bias;
  int8_t *const restrict out = operands->out;
  const int32_t begin_0 = htvm_parallel_begin(72, core, cores);
  const int32_t end_0 = htvm_parallel_begin(72, core + 1u, cores);
  int32_t acc;
  for (int32_t n = begin_0; n < end_0; ++n) {
    int32_t i1 = (n / 24);
    int32_t i2 = ((n / 6) % 4);
    int32_t i3 = (n % 6);
    acc = 0;
    for (int32_t ax4 = 0; ax4 < 3; ++ax4) {
      for (int32_t ax5 = 0; ax5 < 3; ++ax5) {
        for (int32_t ax6 = 0; ax6 < 4; ++ax6) {
          acc = (acc + (((int32_t)in0[((((((i1 * 48) + (ax4 * 48)) + (i2 * 8)) + (ax5 * 8)) + ((i3 / 3) * 4)) + ax6)]) * ((int32_t)weight[((((ax4 * 72) + (ax5 * 24)) + (ax6 * 6)) + i3)])));
        }
      }
    }
    int32_t v0 = (acc + bias[i3]) >> 8;
    int32_t v1 = (v0) < (127) ? (v0) : (127);
    out[(((i1 * 24) + (i2 * 6)) + i3)] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));
  }
}

void net_grouped(const int8_t *restrict in0, const int8_t *restrict weight, const int32_t *restrict bias, int8_t *restrict out)
{
  const struct net_grouped_operands operands = {
    htvm_parallel_memory(224u), /* in0 */
    htvm_parallel_memory(0u), /* weight */
    htvm_parallel_memory(464u), /* bias */
    htvm_parallel_memory(496u), /* out */
  };
  htvm_parallel_copy((void *)operands.in0, in0, 240u);
  htvm_parallel_copy((void *)operands.weight, weight, 216u);
  htvm_parallel_copy((void *)operands.bias, bias, 24u);
  htvm_parallel_wait();
  htvm_parallel_run(net_grouped_part0, &operands);
  htvm_parallel_copy(out, operands.out, 72u);
  htvm_parallel_wait();
}

/*
 * dilated: dilated_conv2d + add + right_shift + clip + astype
 * int8 1x5x6x8 -> int8 1x1x2x4
 * element-wise operators inlined
 * 8 iterations shared by the cores; all operands in memory close to them (552 B)
 */
struct net_dilated_operands {
  const int8_t *in0;
  const int8_t *weight;
  const int32_t *bias;
  int8_t *out;
};

static void net_dilated_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_dilated_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  const int8_t *const restrict weight = operands->weight;
  const int32_t *const restrict bias = operands->bias;
  int8_t *const restrict out = operands->out;
  const int32_t begin_0 = htvm_parallel_begin(8, core, cores);
  const int32_t end_0 = htvm_parallel_begin(8, core + 1u, cores);
  int32_t acc;
  for (int32_t n = begin_0; n < end_0; ++n) {
    int32_t i2 = (n / 4);
    int32_t i3 = (n % 4);
    acc = 0;
    for (int32_t ax4 = 0; ax4 < 3; ++ax4) {
      for (int32_t ax5 = 0; ax5 < 3; ++ax5) {
        for (int32_t ax6 = 0; ax6 < 8; ++ax6) {
          int32_t t1 = (ax4 * 96);
          acc = (acc + (((int32_t)in0[(((t1 + (ax5 * 16)) + (i2 * 8)) + ax6)]) * ((int32_t)weight[(((t1 + (ax5 * 32)) + (ax6 * 4)) + i3)])));
        }
      }
    }
    int32_t v0 = (acc + bias[i3]) >> 8;
    int32_t v1 = (v0) < (127) ? (v0) : (127);
    out[((i2 * 4) + i3)] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));
  }
}

void net_dilated(const int8_t *restrict in0, const int8_t *restrict weight, const int32_t *restrict bias, int8_t *restrict out)
{
  const struct net_dilated_operands operands = {
    htvm_parallel_memory(0u), /* in0 */
    htvm_parallel_memory(240u), /* weight */
    htvm_parallel_memory(544u), /* bias */
    htvm_parallel_memory(528u), /* out */
  };
  htvm_parallel_copy((void *)operands.in0, in0, 240u);
  htvm_parallel_copy((void *)operands.weight, weight, 288u);
  htvm_parallel_copy((void *)operands.bias, bias, 16u);
  htvm_parallel_wait();
  htvm_parallel_run(net_dilated_part0, &operands);
  htvm_parallel_copy(out, operands.out, 8u);
  htvm_parallel_wait();
}

/*
 * first: pad
 * int8 1x8x5x6 -> int8 1x8x7x8
 * borders filled, rows copied
 * 8 iterations shared by the cores; all operands in memory close to them (688 B)
 */
struct net_first_pad_operands {
  const int8_t *in0;
  int8_t *out;
};

static void net_first_pad_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_first_pad_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  int8_t *const restrict out = operands->out;
  const int32_t begin_0 = htvm_parallel_begin(8, core, cores);
  const int32_t end_0 = htvm_parallel_begin(8, core + 1u, cores);
  for (int32_t y = begin_0; y < end_0; ++y) {
    int32_t t1 = (y * 56);
    for (int32_t i = 0; i < 8; ++i) {
      out[(t1 + i)] = (int8_t)0;
    }
    for (int32_t x = 0; x < 5; ++x) {
      int32_t t2 = (t1 + (x * 8));
      out[(t2 + 8)] = (int8_t)0;
      for (int32_t i_1 = 0; i_1 < 6; ++i_1) {
        out[((t2 + i_1) + 9)] = in0[(((y * 30) + (x * 6)) + i_1)];
      }
      out[(t2 + 15)] = (int8_t)0;
    }
    for (int32_t i_2 = 0; i_2 < 8; ++i_2) {
      out[((t1 + i_2) + 48)] = (int8_t)0;
    }
  }
}

void net_first_pad(const int8_t *restrict in0, int8_t *restrict out)
{
  const struct net_first_pad_operands operands = {
    htvm_parallel_memory(0u), /* in0 */
    htvm_parallel_memory(240u), /* out */
  };
  htvm_parallel_copy((void *)operands.in0, in0, 240u);
  htvm_parallel_wait();
  htvm_parallel_run(net_first_pad_part0, &operands);
  htvm_parallel_copy(out, operands.out, 448u);
  htvm_parallel_wait();
}

/*
 * first: conv2d + add + tflite_requantize + add + clip + astype
 * int8 1x8x7x8 -> int8 1x4x5x6
 * register block of 3 pixels x 4 channels
 * 5 iterations shared by the cores; all operands in memory close to them (904 B)
 */
struct net_first_operands {
  const int8_t *in0;
  const int8_t *weight;
  const int32_t *bias;
  const int32_t *multiplier;
  const int32_t *shift;
  int8_t *out;
};

static void net_first_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_first_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  const int8_t *const restrict weight = operands->weight;
  const int32_t *const restrict bias = operands->bias;
  const int32_t *const restrict multiplier = operands->multiplier;
  const int32_t *const restrict shift = operands->shift;
  int8_t *const restrict out = operands->out;
  const int32_t begin_0 = htvm_parallel_begin(5, core, cores);
  const int32_t end_0 = htvm_parallel_begin(5, core + 1u, cores);
  int32_t conv2d_nchw[12];
  int32_t wide0;
  int32_t narrow1;
  for (int32_t y = begin_0; y < end_0; ++y) {
    for (int32_t xb = 0; xb < 2; ++xb) {
      HTVM_UNROLL(3)
      for (int32_t k = 0; k < 3; ++k) {
        HTVM_UNROLL(4)
        for (int32_t l = 0; l < 4; ++l) {
          conv2d_nchw[((l * 3) + k)] = 0;
        }
      }
      int32_t t1 = (xb * 3);
      for (int32_t ax4 = 0; ax4 < 8; ++ax4) {
        for (int32_t fy = 0; fy < 3; ++fy) {
          HTVM_UNROLL(3)
          for (int32_t f = 0; f < 3; ++f) {
            HTVM_UNROLL(3)
            for (int32_t px = 0; px < 3; ++px) {
              HTVM_UNROLL(4)
              for (int32_t ki = 0; ki < 4; ++ki) {
                int32_t t2 = ((ki * 3) + px);
                conv2d_nchw[t2] = (conv2d_nchw[t2] + (((int32_t)in0[((((((ax4 * 56) + (y * 8)) + (fy * 8)) + t1) + px) + f)]) * ((int32_t)weight[((((ki * 72) + (ax4 * 9)) + (fy * 3)) + f)])));
              }
            }
          }
        }
      }
      HTVM_UNROLL(3)
      for (int32_t px_1 = 0; px_1 < 3; ++px_1) {
        HTVM_UNROLL(4)
        for (int32_t ki_1 = 0; ki_1 < 4; ++ki_1) {
          wide0 = (conv2d_nchw[((ki_1 * 3) + px_1)] + bias[ki_1]);
          narrow1 = ((int32_t)((((int64_t)wide0) * ((int64_t)((uint32_t)multiplier[ki_1]))) >> (int64_t)32));
          wide0 = ((int32_t)(((((int64_t)wide0) * ((int64_t)((uint32_t)multiplier[ki_1]))) >> (int64_t)31) & (int64_t)1));
          int32_t v0 = (((((narrow1 + wide0) - ((int32_t)((narrow1 + wide0) < 0))) >> shift[ki_1]) + 1) >> 1) + 3;
          int32_t v1 = (v0) < (127) ? (v0) : (127);
          out[((((ki_1 * 30) + (y * 6)) + t1) + px_1)] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));
        }
      }
    }
  }
}

void net_first(const int8_t *restrict in0, const int8_t *restrict weight, const int32_t *restrict bias, const int32_t *restrict multiplier, const int32_t *restrict shift, int8_t *restrict out)
{
  const struct net_first_operands operands = {
    htvm_parallel_memory(288u), /* in0 */
    htvm_parallel_memory(0u), /* weight */
    htvm_parallel_memory(752u), /* bias */
    htvm_parallel_memory(736u), /* multiplier */
    htvm_parallel_memory(768u), /* shift */
    htvm_parallel_memory(784u), /* out */
  };
  htvm_parallel_copy((void *)operands.in0, in0, 448u);
  htvm_parallel_copy((void *)operands.weight, weight, 288u);
  htvm_parallel_copy((void *)operands.bias, bias, 16u);
  htvm_parallel_copy((void *)operands.multiplier, multiplier, 16u);
  htvm_parallel_copy((void *)operands.shift, shift, 16u);
  htvm_parallel_wait();
  htvm_parallel_run(net_first_part0, &operands);
  htvm_parallel_copy(out, operands.out, 120u);
  htvm_parallel_wait();
}
