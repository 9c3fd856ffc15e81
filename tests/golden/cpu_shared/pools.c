/* constant: net_onnx_average_factors[2], int32: factors of onnx_average, int32 2 */
/* constant: net_tflite_mean_multiplier[1], int32: multiplier of tflite_mean, int32 1 */

/*
 * average_pool: average_pool2d
 * int8 1x5x6x8 -> int8 1x3x3x8
 * element-wise operators inlined
 * on one core; all operands in memory close to them (312 B)
 */
struct net_average_pool_operands {
  const int8_t *in0;
  int8_t *out;
  int32_t *total;
  int32_t *narrow0;
  int32_t *narrow1;
};

static void net_average_pool_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_average_pool_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  int8_t *const restrict out = operands->out;
  int32_t *const restrict total = operands->total;
  int32_t *const restrict narrow0 = operands->narrow0;
  int32_t *const restrict narrow1 = operands->narrow1;
  (void)core;
  (void)cores;
  for (int32_t i1 = 0; i1 < 3; ++i1) {
    for (int32_t i2 = 0; i2 < 3; ++i2) {
      for (int32_t i3 = 0; i3 < 8; ++i3) {
        total[0] = 0;
        int32_t t1 = (i1 * 2);
        for (int32_t ax4 = 0; ax4 < 3; ++ax4) {
          for (int32_t ax5 = 0; ax5 < 2; ++ax5) {
            int32_t condval;
            if ((1 <= (t1 + ax4)) && (((ax4 >> 1) + i1) < 3)) {
              condval = ((int32_t)in0[((((((i1 * 96) + (ax4 * 48)) + (i2 * 16)) + (ax5 * 8)) + i3) - 48)]);
            } else {
              condval = 0;
            }
            total[0] = (total[0] + condval);
          }
        }
        int32_t v0 = t1 + 2;
        int32_t v1 = t1 - 1;
        narrow0[0] = (((v0) < (5) ? (v0) : (5)) - ((v1) > (0) ? (v1) : (0)));
        narrow1[0] = 2;
        int32_t condval_1;
        if (0 <= total[0]) {
          condval_1 = ((narrow0[0] * narrow1[0]) / 2);
        } else {
          condval_1 = (((narrow0[0] * narrow1[0]) / 2) * -1);
        }
        int32_t v2 = (total[0] + condval_1) / (narrow0[0] * narrow1[0]);
        int32_t v3 = (v2) < (127) ? (v2) : (127);
        out[(((i1 * 24) + (i2 * 8)) + i3)] = ((int8_t)((v3) > (-128) ? (v3) : (-128)));
      }
    }
  }
}

void net_average_pool(const int8_t *restrict in0, int8_t *restrict out)
{
  int32_t total[1];
  int32_t narrow0[1];
  int32_t narrow1[1];
  const struct net_average_pool_operands operands = {
    htvm_parallel_memory(0u), /* in0 */
    htvm_parallel_memory(240u), /* out */
    total,
    narrow0,
    narrow1,
  };
  htvm_parallel_copy((void *)operands.in0, in0, 240u);
  htvm_parallel_wait();
  net_average_pool_part0(&operands, 0u, 1u);
  htvm_parallel_copy(out, operands.out, 72u);
  htvm_parallel_wait();
}

/*
 * max_pool: max_pool2d
 * int8 1x5x6x8 -> int8 1x3x3x8
 * element-wise operators inlined
 * 72 iterations shared by the cores; all operands in memory close to them (312 B)
 */
struct net_max_pool_operands {
  const int8_t *in0;
  int8_t *out;
};

static void net_max_pool_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_max_pool_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  int8_t *const restrict out = operands->out;
  const int32_t begin_0 = htvm_parallel_begin(72, core, cores);
  const int32_t end_0 = htvm_parallel_begin(72, core + 1u, cores);
  for (int32_t n = begin_0; n < end_0; ++n) {
    int32_t ax1 = (n / 24);
    int32_t ax2 = ((n / 8) % 3);
    int32_t ax3 = (n % 8);
    int32_t t1 = (((ax1 * 24) + (ax2 * 8)) + ax3);
    out[t1] = (int8_t)-128;
    for (int32_t rv0 = 0; rv0 < 3; ++rv0) {
      for (int32_t rv1 = 0; rv1 < 2; ++rv1) {
        int8_t v0 = out[t1];
        int8_t condval;
        if ((1 <= ((ax1 * 2) + rv0)) && (((rv0 >> 1) + ax1) < 3)) {
          condval = in0[((((((ax1 * 96) + (rv0 * 48)) + (ax2 * 16)) + (rv1 * 8)) + ax3) - 48)];
        } else {
          condval = (int8_t)-128;
        }
        out[t1] = ((v0) > (condval) ? (v0) : (condval));
      }
    }
  }
}

void net_max_pool(const int8_t *restrict in0, int8_t *restrict out)
{
  const struct net_max_pool_operands operands = {
    htvm_parallel_memory(80u), /* in0 */
    htvm_parallel_memory(0u), /* out */
  };
  htvm_parallel_copy((void *)operands.in0, in0, 240u);
  htvm_parallel_wait();
  htvm_parallel_run(net_max_pool_part0, &operands);
  htvm_parallel_copy(out, operands.out, 72u);
  htvm_parallel_wait();
}

/*
 * max_pool_dilated: max_pool2d
 * int8 1x5x6x8 -> int8 1x3x3x8
 * element-wise operators inlined
 * 72 iterations shared by the cores; all operands in memory close to them (312 B)
 */
struct net_max_pool_dilated_operands {
  const int8_t *in0;
  int8_t *out;
};

static void net_max_pool_dilated_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_max_pool_dilated_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  int8_t *const restrict out = operands->out;
  const int32_t begin_0 = htvm_parallel_begin(72, core, cores);
  const int32_t end_0 = htvm_parallel_begin(72, core + 1u, cores);
  for (int32_t n = begin_0; n < end_0; ++n) {
    int32_t ax1 = (n / 24);
    int32_t ax2 = ((n / 8) % 3);
    int32_t ax3 = (n % 8);
    int32_t t1 = (((ax1 * 24) + (ax2 * 8)) + ax3);
    out[t1] = (int8_t)-128;
    for (int32_t rv0 = 0; rv0 < 3; ++rv0) {
      for (int32_t rv1 = 0; rv1 < 2; ++rv1) {
        int8_t v0 = out[t1];
        int8_t condval;
        if (((1 <= ((ax1 * 2) + rv0)) && (((rv0 >> 1) + ax1) < 3)) && ((ax2 + rv1) < 3)) {
          condval = in0[((((((ax1 * 96) + (rv0 * 48)) + (ax2 * 16)) + (rv1 * 16)) + ax3) - 48)];
        } else {
          condval = (int8_t)-128;
        }
        out[t1] = ((v0) > (condval) ? (v0) : (condval));
      }
    }
  }
}

void net_max_pool_dilated(const int8_t *restrict in0, int8_t *restrict out)
{
  const struct net_max_pool_dilated_operands operands = {
    htvm_parallel_memory(80u), /* in0 */
    htvm_parallel_memory(0u), /* out */
  };
  htvm_parallel_copy((void *)operands.in0, in0, 240u);
  htvm_parallel_wait();
  htvm_parallel_run(net_max_pool_dilated_part0, &operands);
  htvm_parallel_copy(out, operands.out, 72u);
  htvm_parallel_wait();
}

/*
 * onnx_average: onnx_average
 * int8 1x5x6x8 -> int8 1x2x3x8
 * element-wise operators inlined
 * 48 iterations shared by the cores; all operands in memory close to them (296 B)
 */
struct net_onnx_average_operands {
  const int8_t *in0;
  const int32_t *factors;
  int8_t *out;
};

static void net_onnx_average_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_onnx_average_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  const int32_t *const restrict factors = operands->factors;
  int8_t *const restrict out = operands->out;
  const int32_t begin_0 = htvm_parallel_begin(48, core, cores);
  const int32_t end_0 = htvm_parallel_begin(48, core + 1u, cores);
  int32_t total;
  for (int32_t n = begin_0; n < end_0; ++n) {
    int32_t i1 = (n / 24);
    int32_t i2 = ((n / 8) % 3);
    int32_t i3 = (n % 8);
    total = 0;
    int32_t t1 = (i2 * 8);
    for (int32_t ax4 = 0; ax4 < 4; ++ax4) {
      for (int32_t ax5 = 0; ax5 < 4; ++ax5) {
        total = ((total + ((int32_t)in0[(((((i1 * 48) + (ax4 * 48)) + t1) + (ax5 * 8)) + i3)])) + 3);
      }
    }
    int64_t condval;
    if ((int64_t)0 <= ((((int64_t)total) * ((int64_t)factors[0])) - ((int64_t)(((uint64_t)(((((int64_t)total) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1)) << ((uint64_t)(((int64_t)factors[1]) - (int64_t)1)))))) {
      condval = ((((int64_t)total) * ((int64_t)factors[0])) - ((int64_t)(((uint64_t)(((((int64_t)total) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1)) << ((uint64_t)(((int64_t)factors[1]) - (int64_t)1)))));
    } else {
      condval = (((int64_t)(((uint64_t)(((((int64_t)total) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1)) << ((uint64_t)(((int64_t)factors[1]) - (int64_t)1)))) - (((int64_t)total) * ((int64_t)factors[0])));
    }
    int64_t v0 = condval - (int64_t)1;
    int64_t v1 = (int64_t)25 - ((int64_t)factors[1]);
    int64_t v2 = ((int64_t)factors[1]) - (int64_t)25;
    int64_t v3 = (int64_t)0;
    int64_t v4 = (int64_t)0;
    int64_t v5 = (int64_t)0;
    int64_t condval_1;
    if ((int64_t)0 <= (((((int64_t)total) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1)) {
      condval_1 = (((((int64_t)total) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1);
    } else {
      condval_1 = ((int64_t)0 - (((((int64_t)total) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1));
    }
    int64_t v6 = (int64_t)0;
    int64_t v7 = (int64_t)0;
    int64_t v8 = (int64_t)0;
    int64_t v9 = (int64_t)0;
    int64_t v10 = (int64_t)0;
    int64_t v11 = (int64_t)0;
    int64_t condval_2;
    if ((int64_t)0 <= (((((int64_t)total) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1)) {
      condval_2 = (((((int64_t)total) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1);
    } else {
      condval_2 = ((int64_t)0 - (((((int64_t)total) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1));
    }
    int64_t v12 = (int64_t)0;
    int64_t v13 = (int64_t)0;
    int64_t v14 = (int64_t)0;
    int64_t condval_3;
    if ((int64_t)0 <= (((((int64_t)total) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1)) {
      condval_3 = (((((int64_t)total) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1);
    } else {
      condval_3 = ((int64_t)0 - (((((int64_t)total) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1));
    }
    int64_t v15 = (int64_t)0;
    int64_t v16 = (int64_t)0;
    int64_t v17 = (int64_t)0;
    int64_t v18 = (int64_t)0;
    int64_t v19 = (int64_t)0;
    int64_t v20 = (int64_t)0;
    int64_t condval_4;
    if ((int64_t)0 <= (((((int64_t)total) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1)) {
      condval_4 = (((((int64_t)total) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1);
    } else {
      condval_4 = ((int64_t)0 - (((((int64_t)total) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1));
    }
    total = ((int32_t)((((((((int64_t)total) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1) >> (int64_t)1) + (((((((int64_t)total) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1) >> (int64_t)1) & (((int64_t)((((int64_t)(((uint64_t)((v0) > (v3) ? (v0) : (v3))) << ((uint64_t)((v1) > (v4) ? (v1) : (v4))))) >> ((v2) > (v5) ? (v2) : (v5))) < condval_1)) & ((int64_t)((((int64_t)(((uint64_t)((v0) > (v6) ? (v0) : (v6))) << ((uint64_t)((v1) > (v7) ? (v1) : (v7))))) >> ((v2) > (v8) ? (v2) : (v8))) < ((((int64_t)(((uint64_t)((v0) > (v9) ? (v0) : (v9))) << ((uint64_t)((v1) > (v10) ? (v1) : (v10))))) >> ((v2) > (v11) ? (v2) : (v11))) ^ condval_2)))))) + (((int64_t)((int64_t)0 < ((((int64_t)total) * ((int64_t)factors[0])) - ((int64_t)(((uint64_t)(((((int64_t)total) * ((int64_t)factors[0])) >> (((int64_t)factors[1]) - (int64_t)1)) | (int64_t)1)) << ((uint64_t)(((int64_t)factors[1]) - (int64_t)1))))))) & ((((int64_t)((((int64_t)(((uint64_t)((v0) > (v12) ? (v0) : (v12))) << ((uint64_t)((v1) > (v13) ? (v1) : (v13))))) >> ((v2) > (v14) ? (v2) : (v14))) < condval_3)) & ((int64_t)((((int64_t)(((uint64_t)((v0) > (v15) ? (v0) : (v15))) << ((uint64_t)((v1) > (v16) ? (v1) : (v16))))) >> ((v2) > (v17) ? (v2) : (v17))) < ((((int64_t)(((uint64_t)((v0) > (v18) ? (v0) : (v18))) << ((uint64_t)((v1) > (v19) ? (v1) : (v19))))) >> ((v2) > (v20) ? (v2) : (v20))) ^ condval_4)))) ^ (int64_t)1))));
    int32_t v21 = total + 2;
    int32_t v22 = (v21) < (127) ? (v21) : (127);
    out[(((i1 * 24) + t1) + i3)] = ((int8_t)((v22) > (-128) ? (v22) : (-128)));
  }
}

void net_onnx_average(const int8_t *restrict in0, const int32_t *restrict factors, int8_t *restrict out)
{
  const struct net_onnx_average_operands operands = {
    htvm_parallel_memory(16u), /* in0 */
    htvm_parallel_memory(0u), /* factors */
    htvm_parallel_memory(256u), /* out */
  };
  htvm_parallel_copy((void *)operands.in0, in0, 240u);
  htvm_parallel_copy((void *)operands.factors, factors, 8u);
  htvm_parallel_wait();
  htvm_parallel_run(net_onnx_average_part0, &operands);
  htvm_parallel_copy(out, operands.out, 48u);
  htvm_parallel_wait();
}

/*
 * tflite_mean: tflite_mean
 * int8 1x5x6x8 -> int8 1x8
 * element-wise operators inlined
 * 8 iterations shared by the cores; all operands in memory close to them (252 B)
 */
struct net_tflite_mean_operands {
  const int8_t *in0;
  const int32_t *multiplier;
  int8_t *out;
};

static void net_tflite_mean_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_tflite_mean_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  const int32_t *const restrict multiplier = operands->multiplier;
  int8_t *const restrict out = operands->out;
  const int32_t begin_0 = htvm_parallel_begin(8, core, cores);
  const int32_t end_0 = htvm_parallel_begin(8, core + 1u, cores);
  int32_t total;
  for (int32_t i1 = begin_0; i1 < end_0; ++i1) {
    total = 0;
    for (int32_t ax2 = 0; ax2 < 5; ++ax2) {
      for (int32_t ax3 = 0; ax3 < 6; ++ax3) {
        total = (total + ((int32_t)in0[(((ax2 * 48) + (ax3 * 8)) + i1)]));
      }
    }
    total = ((int32_t)((((((int64_t)total) - (int64_t)90) * ((int64_t)multiplier[0])) + (int64_t)1073741824) >> (int64_t)31));
    int32_t v0 = (((total - ((int32_t)(total < 0))) + 4) >> 3) - 4;
    int32_t v1 = (v0) < (127) ? (v0) : (127);
    out[i1] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));
  }
}

void net_tflite_mean(const int8_t *restrict in0, const int32_t *restrict multiplier, int8_t *restrict out)
{
  const struct net_tflite_mean_operands operands = {
    htvm_parallel_memory(16u), /* in0 */
    htvm_parallel_memory(0u), /* multiplier */
    htvm_parallel_memory(256u), /* out */
  };
  htvm_parallel_copy((void *)operands.in0, in0, 240u);
  htvm_parallel_copy((void *)operands.multiplier, multiplier, 4u);
  htvm_parallel_wait();
  htvm_parallel_run(net_tflite_mean_part0, &operands);
  htvm_parallel_copy(out, operands.out, 8u);
  htvm_parallel_wait();
}
