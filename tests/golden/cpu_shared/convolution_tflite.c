/* constant: net_conv_bias[10], int32: bias of conv, int32 10 */
/* constant: net_conv_multiplier[10], int32: multiplier of conv, int32 10 */
/* constant: net_conv_shift[10], int32: shift of conv, int32 10 */
/* constant: net_conv_weight[720], int8: weight of conv, int8 3x3x8x10 */
/* constant: net_pointwise_bias[4], int32: bias of pointwise, int32 4 */
/* constant: net_pointwise_weight[40], int8: weight of pointwise, int8 1x1x10x4 */

/*
 * conv: pad
 * int8 1x5x6x8 -> int8 1x7x8x8
 * borders filled, rows copied
 * 64 + 5 + 64 iterations shared by the cores; all operands in memory close to them (688 B)
 */
struct net_conv_pad_operands {
  const int8_t *in0;
  int8_t *out;
};

static void net_conv_pad_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_conv_pad_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  int8_t *const restrict out = operands->out;
  const int32_t begin_0 = htvm_parallel_begin(64, core, cores);
  const int32_t end_0 = htvm_parallel_begin(64, core + 1u, cores);
  const int32_t begin_1 = htvm_parallel_begin(5, core, cores);
  const int32_t end_1 = htvm_parallel_begin(5, core + 1u, cores);
  const int32_t begin_2 = htvm_parallel_begin(64, core, cores);
  const int32_t end_2 = htvm_parallel_begin(64, core + 1u, cores);
  for (int32_t i = begin_0; i < end_0; ++i) {
    out[i] = (int8_t)0;
  }
  for (int32_t y = begin_1; y < end_1; ++y) {
    int32_t t1 = (y * 64);
    for (int32_t i_1 = 0; i_1 < 8; ++i_1) {
      out[((t1 + i_1) + 64)] = (int8_t)0;
    }
    for (int32_t i_2 = 0; i_2 < 48; ++i_2) {
      out[((t1 + i_2) + 72)] = in0[((y * 48) + i_2)];
    }
    for (int32_t i_3 = 0; i_3 < 8; ++i_3) {
      out[((t1 + i_3) + 120)] = (int8_t)0;
    }
  }
  for (int32_t i_4 = begin_2; i_4 < end_2; ++i_4) {
    out[(i_4 + 384)] = (int8_t)0;
  }
}

void net_conv_pad(const int8_t *restrict in0, int8_t *restrict out)
{
  const struct net_conv_pad_operands operands = {
    htvm_parallel_memory(0u), /* in0 */
    htvm_parallel_memory(240u), /* out */
  };
  htvm_parallel_copy((void *)operands.in0, in0, 240u);
  htvm_parallel_wait();
  htvm_parallel_run(net_conv_pad_part0, &operands);
  htvm_parallel_copy(out, operands.out, 448u);
  htvm_parallel_wait();
}

/*
 * conv: conv2d + add + tflite_requantize + add + clip + astype
 * int8 1x7x8x8 -> int8 1x5x6x10
 * register block of 6 pixels x 2 channels
 * 25 iterations shared by the cores; all operands in memory close to them (1588 B)
 */
struct net_conv_operands {
  const int8_t *in0;
  const int8_t *weight;
  const int32_t *bias;
  const int32_t *multiplier;
  const int32_t *shift;
  int8_t *out;
};

static void net_conv_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_conv_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  const int8_t *const restrict weight = operands->weight;
  const int32_t *const restrict bias = operands->bias;
  const int32_t *const restrict multiplier = operands->multiplier;
  const int32_t *const restrict shift = operands->shift;
  int8_t *const restrict out = operands->out;
  const int32_t begin_0 = htvm_parallel_begin(25, core, cores);
  const int32_t end_0 = htvm_parallel_begin(25, core + 1u, cores);
  int32_t acc[12];
  int32_t wide0;
  int32_t narrow1;
  for (int32_t n = begin_0; n < end_0; ++n) {
    int32_t y = (n / 5);
    int32_t kb = (n % 5);
    HTVM_UNROLL(6)
    for (int32_t k = 0; k < 6; ++k) {
      HTVM_UNROLL(2)
      for (int32_t l = 0; l < 2; ++l) {
        acc[((k * 2) + l)] = 0;
      }
    }
    int32_t t1 = (kb * 2);
    for (int32_t fy = 0; fy < 3; ++fy) {
      HTVM_UNROLL(2)
      for (int32_t f = 0; f < 24; ++f) {
        HTVM_UNROLL(6)
        for (int32_t px = 0; px < 6; ++px) {
          HTVM_UNROLL(2)
          for (int32_t ki = 0; ki < 2; ++ki) {
            int32_t t2 = ((px * 2) + ki);
            acc[t2] = (acc[t2] + (((int32_t)in0[((((y * 64) + (fy * 64)) + (px * 8)) + f)]) * ((int32_t)weight[((((fy * 240) + (f * 10)) + t1) + ki)])));
          }
        }
      }
    }
    HTVM_UNROLL(6)
    for (int32_t px_1 = 0; px_1 < 6; ++px_1) {
      HTVM_UNROLL(2)
      for (int32_t ki_1 = 0; ki_1 < 2; ++ki_1) {
        int32_t t3 = (t1 + ki_1);
        wide0 = (acc[((px_1 * 2) + ki_1)] + bias[t3]);
        narrow1 = ((int32_t)((((int64_t)wide0) * ((int64_t)((uint32_t)multiplier[t3]))) >> (int64_t)32));
        wide0 = ((int32_t)(((((int64_t)wide0) * ((int64_t)((uint32_t)multiplier[t3]))) >> (int64_t)31) & (int64_t)1));
        int32_t v0 = (((((narrow1 + wide0) - ((int32_t)((narrow1 + wide0) < 0))) >> shift[t3]) + 1) >> 1) + 3;
        int32_t v1 = (v0) < (127) ? (v0) : (127);
        out[((((y * 60) + (px_1 * 10)) + t1) + ki_1)] = ((int8_t)((v1) > (0) ? (v1) : (0)));
      }
    }
  }
}

void net_conv(const int8_t *restrict in0, const int8_t *restrict weight, const int32_t *restrict bias, const int32_t *restrict multiplier, const int32_t *restrict shift, int8_t *restrict out)
{
  const struct net_conv_operands operands = {
    htvm_parallel_memory(0u), /* in0 */
    htvm_parallel_memory(448u), /* weight */
    htvm_parallel_memory(1216u), /* bias */
    htvm_parallel_memory(1168u), /* multiplier */
    htvm_parallel_memory(1264u), /* shift */
    htvm_parallel_memory(1312u), /* out */
  };
  htvm_parallel_copy((void *)operands.in0, in0, 448u);
  htvm_parallel_copy((void *)operands.weight, weight, 720u);
  htvm_parallel_copy((void *)operands.bias, bias, 40u);
  htvm_parallel_copy((void *)operands.multiplier, multiplier, 40u);
  htvm_parallel_copy((void *)operands.shift, shift, 40u);
  htvm_parallel_wait();
  htvm_parallel_run(net_conv_part0, &operands);
  htvm_parallel_copy(out, operands.out, 300u);
  htvm_parallel_wait();
}

/*
 * pointwise: conv2d + add + right_shift + clip + astype
 * int8 1x5x6x10 -> int8 1x5x6x4
 * register block of 3 pixels x 4 channels
 * 10 iterations shared by the cores; all operands in memory close to them (476 B)
 */
struct net_pointwise_operands {
  const int8_t *in0;
  const int8_t *weight;
  const int32_t *bias;
  int8_t *out;
};

static void net_pointwise_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_pointwise_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  const int8_t *const restrict weight = operands->weight;
  const int32_t *const restrict bias = operands->bias;
  int8_t *const restrict out = operands->out;
  const int32_t begin_0 = htvm_parallel_begin(10, core, cores);
  const int32_t end_0 = htvm_parallel_begin(10, core + 1u, cores);
  int32_t acc[12];
  for (int32_t rb = begin_0; rb < end_0; ++rb) {
    HTVM_UNROLL(3)
    for (int32_t i = 0; i < 3; ++i) {
      HTVM_UNROLL(4)
      for (int32_t j = 0; j < 4; ++j) {
        acc[((i * 4) + j)] = 0;
      }
    }
    HTVM_UNROLL(2)
    for (int32_t c = 0; c < 10; ++c) {
      HTVM_UNROLL(3)
      for (int32_t px = 0; px < 3; ++px) {
        HTVM_UNROLL(4)
        for (int32_t ki = 0; ki < 4; ++ki) {
          int32_t t2 = ((px * 4) + ki);
          acc[t2] = (acc[t2] + (((int32_t)in0[(((rb * 30) + (px * 10)) + c)]) * ((int32_t)weight[((c * 4) + ki)])));
        }
      }
    }
    HTVM_UNROLL(3)
    for (int32_t px_1 = 0; px_1 < 3; ++px_1) {
      HTVM_UNROLL(4)
      for (int32_t ki_1 = 0; ki_1 < 4; ++ki_1) {
        int32_t t1 = (px_1 * 4);
        int32_t v0 = (acc[(t1 + ki_1)] + bias[ki_1]) >> 9;
        int32_t v1 = (v0) < (127) ? (v0) : (127);
        out[(((rb * 12) + t1) + ki_1)] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));
      }
    }
  }
}

void net_pointwise(const int8_t *restrict in0, const int8_t *restrict weight, const int32_t *restrict bias, int8_t *restrict out)
{
  const struct net_pointwise_operands operands = {
    htvm_parallel_memory(64u), /* in0 */
    htvm_parallel_memory(0u), /* weight */
    htvm_parallel_memory(48u), /* bias */
    htvm_parallel_memory(368u), /* out */
  };
  htvm_parallel_copy((void *)operands.in0, in0, 300u);
  htvm_parallel_copy((void *)operands.weight, weight, 40u);
  htvm_parallel_copy((void *)operands.bias, bias, 16u);
  htvm_parallel_wait();
  htvm_parallel_run(net_pointwise_part0, &operands);
  htvm_parallel_copy(out, operands.out, 120u);
  htvm_parallel_wait();
}
