/* constant: net_nearest_columns[3], int32: columns of nearest, int32 3 */
/* constant: net_nearest_rows[5], int32: rows of nearest, int32 5 */

/*
 * pad: pad
 * int8 1x5x6x8 -> int8 1x9x9x8
 * borders filled, rows copied
 * 72 + 5 + 216 iterations shared by the cores; all operands in memory close to them (888 B)
 */
struct net_pad_pad_operands {
  const int8_t *in0;
  int8_t *out;
};

static void net_pad_pad_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_pad_pad_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  int8_t *const restrict out = operands->out;
  const int32_t begin_0 = htvm_parallel_begin(72, core, cores);
  const int32_t end_0 = htvm_parallel_begin(72, core + 1u, cores);
  const int32_t begin_1 = htvm_parallel_begin(5, core, cores);
  const int32_t end_1 = htvm_parallel_begin(5, core + 1u, cores);
  const int32_t begin_2 = htvm_parallel_begin(216, core, cores);
  const int32_t end_2 = htvm_parallel_begin(216, core + 1u, cores);
  for (int32_t i = begin_0; i < end_0; ++i) {
    out[i] = (int8_t)-7;
  }
  for (int32_t y = begin_1; y < end_1; ++y) {
    int32_t t1 = (y * 72);
    for (int32_t i_1 = 0; i_1 < 16; ++i_1) {
      out[((t1 + i_1) + 72)] = (int8_t)-7;
    }
    for (int32_t i_2 = 0; i_2 < 48; ++i_2) {
      out[((t1 + i_2) + 88)] = in0[((y * 48) + i_2)];
    }
    for (int32_t i_3 = 0; i_3 < 8; ++i_3) {
      out[((t1 + i_3) + 136)] = (int8_t)-7;
    }
  }
  for (int32_t i_4 = begin_2; i_4 < end_2; ++i_4) {
    out[(i_4 + 432)] = (int8_t)-7;
  }
}

void net_pad_pad(const int8_t *restrict in0, int8_t *restrict out)
{
  const struct net_pad_pad_operands operands = {
    htvm_parallel_memory(0u), /* in0 */
    htvm_parallel_memory(240u), /* out */
  };
  htvm_parallel_copy((void *)operands.in0, in0, 240u);
  htvm_parallel_wait();
  htvm_parallel_run(net_pad_pad_part0, &operands);
  htvm_parallel_copy(out, operands.out, 648u);
  htvm_parallel_wait();
}

/*
 * pad_axes: pad_axes
 * int8 1x5x6x8 -> int8 1x6x6x10
 * element-wise operators inlined
 * 36 iterations shared by the cores; all operands in memory close to them (600 B)
 */
struct net_pad_axes_operands {
  const int8_t *in0;
  int8_t *out;
};

static void net_pad_axes_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_pad_axes_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  int8_t *const restrict out = operands->out;
  const int32_t begin_0 = htvm_parallel_begin(36, core, cores);
  const int32_t end_0 = htvm_parallel_begin(36, core + 1u, cores);
  for (int32_t n = begin_0; n < end_0; ++n) {
    int32_t i1 = (n / 6);
    int32_t i2 = (n % 6);
    for (int32_t i3 = 0; i3 < 10; ++i3) {
      int8_t condval;
      if ((i1 < 5) && (2 <= i3)) {
        condval = in0[((((i1 * 48) + (i2 * 8)) + i3) - 2)];
      } else {
        condval = (int8_t)5;
      }
      out[(((i1 * 60) + (i2 * 10)) + i3)] = condval;
    }
  }
}

void net_pad_axes(const int8_t *restrict in0, int8_t *restrict out)
{
  const struct net_pad_axes_operands operands = {
    htvm_parallel_memory(0u), /* in0 */
    htvm_parallel_memory(240u), /* out */
  };
  htvm_parallel_copy((void *)operands.in0, in0, 240u);
  htvm_parallel_wait();
  htvm_parallel_run(net_pad_axes_part0, &operands);
  htvm_parallel_copy(out, operands.out, 360u);
  htvm_parallel_wait();
}

/*
 * transpose: transpose
 * int8 1x5x6x8 -> int8 1x8x5x6
 * element-wise operators inlined
 * 8 iterations shared by the cores; all operands in memory close to them (480 B)
 */
struct net_transpose_operands {
  const int8_t *in0;
  int8_t *out;
};

static void net_transpose_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_transpose_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  int8_t *const restrict out = operands->out;
  const int32_t begin_0 = htvm_parallel_begin(8, core, cores);
  const int32_t end_0 = htvm_parallel_begin(8, core + 1u, cores);
  for (int32_t i1 = begin_0; i1 < end_0; ++i1) {
    for (int32_t i2 = 0; i2 < 5; ++i2) {
      for (int32_t i3 = 0; i3 < 6; ++i3) {
        out[(((i1 * 30) + (i2 * 6)) + i3)] = in0[(((i2 * 48) + (i3 * 8)) + i1)];
      }
    }
  }
}

void net_transpose(const int8_t *restrict in0, int8_t *restrict out)
{
  const struct net_transpose_operands operands = {
    htvm_parallel_memory(0u), /* in0 */
    htvm_parallel_memory(240u), /* out */
  };
  htvm_parallel_copy((void *)operands.in0, in0, 240u);
  htvm_parallel_wait();
  htvm_parallel_run(net_transpose_part0, &operands);
  htvm_parallel_copy(out, operands.out, 240u);
  htvm_parallel_wait();
}

/*
 * concat: concat
 * int8 1x5x6x8 -> int8 1x5x6x16
 * element-wise operators inlined
 * 30 iterations shared by the cores; all operands in memory close to them (960 B)
 */
struct net_concat_operands {
  const int8_t *in0;
  const int8_t *in1;
  int8_t *out;
};

static void net_concat_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_concat_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  const int8_t *const restrict in1 = operands->in1;
  int8_t *const restrict out = operands->out;
  const int32_t begin_0 = htvm_parallel_begin(30, core, cores);
  const int32_t end_0 = htvm_parallel_begin(30, core + 1u, cores);
  for (int32_t n = begin_0; n < end_0; ++n) {
    int32_t i1 = (n / 6);
    int32_t i2 = (n % 6);
    for (int32_t i3 = 0; i3 < 16; ++i3) {
      int32_t t1 = (((i1 * 48) + (i2 * 8)) + i3);
      int8_t condval;
      if (i3 < 8) {
        condval = in0[t1];
      } else {
        condval = in1[(t1 - 8)];
      }
      out[(((i1 * 96) + (i2 * 16)) + i3)] = condval;
    }
  }
}

void net_concat(const int8_t *restrict in0, const int8_t *restrict in1, int8_t *restrict out)
{
  const struct net_concat_operands operands = {
    htvm_parallel_memory(0u), /* in0 */
    htvm_parallel_memory(240u), /* in1 */
    htvm_parallel_memory(480u), /* out */
  };
  htvm_parallel_copy((void *)operands.in0, in0, 240u);
  htvm_parallel_copy((void *)operands.in1, in1, 240u);
  htvm_parallel_wait();
  htvm_parallel_run(net_concat_part0, &operands);
  htvm_parallel_copy(out, operands.out, 480u);
  htvm_parallel_wait();
}

/*
 * slice: slice
 * int8 1x5x6x8 -> int8 1x3x3x6
 * element-wise operators inlined
 * 54 iterations shared by the cores; out in memory close to them (54 B)
 */
struct net_slice_operands {
  const int8_t *in0;
  int8_t *out;
};

static void net_slice_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_slice_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  int8_t *const restrict out = operands->out;
  const int32_t begin_0 = htvm_parallel_begin(54, core, cores);
  const int32_t end_0 = htvm_parallel_begin(54, core + 1u, cores);
  for (int32_t n = begin_0; n < end_0; ++n) {
    int32_t i1 = (n / 18);
    int32_t i2 = ((n / 6) % 3);
    int32_t i3 = (n % 6);
    out[(((i1 * 18) + (i2 * 6)) + i3)] = in0[((((i1 * 48) + (i2 * 16)) + i3) + 50)];
  }
}

void net_slice(const int8_t *restrict in0, int8_t *restrict out)
{
  const struct net_slice_operands operands = {
    in0,
    htvm_parallel_memory(0u), /* out */
  };
  htvm_parallel_run(net_slice_part0, &operands);
  htvm_parallel_copy(out, operands.out, 54u);
  htvm_parallel_wait();
}

/*
 * nearest: nearest
 * int8 1x5x6x8 -> int8 1x5x3x8
 * element-wise operators inlined
 * 15 iterations shared by the cores; all operands in memory close to them (392 B)
 */
struct net_nearest_operands {
  const int8_t *in0;
  const int32_t *rows;
  const int32_t *columns;
  int8_t *out;
};

static void net_nearest_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_nearest_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  const int32_t *const restrict rows = operands->rows;
  const int32_t *const restrict columns = operands->columns;
  int8_t *const restrict out = operands->out;
  const int32_t begin_0 = htvm_parallel_begin(15, core, cores);
  const int32_t end_0 = htvm_parallel_begin(15, core + 1u, cores);
  for (int32_t n = begin_0; n < end_0; ++n) {
    int32_t i1 = (n / 3);
    int32_t i2 = (n % 3);
    for (int64_t i3 = (int64_t)0; i3 < (int64_t)8; ++i3) {
      out[(((((int64_t)i1) * (int64_t)24) + (((int64_t)i2) * (int64_t)8)) + i3)] = in0[(((((int64_t)rows[i1]) * (int64_t)48) + (((int64_t)columns[i2]) * (int64_t)8)) + i3)];
    }
  }
}

void net_nearest(const int8_t *restrict in0, const int32_t *restrict rows, const int32_t *restrict columns, int8_t *restrict out)
{
  const struct net_nearest_operands operands = {
    htvm_parallel_memory(176u), /* in0 */
    htvm_parallel_memory(16u), /* rows */
    htvm_parallel_memory(0u), /* columns */
    htvm_parallel_memory(48u), /* out */
  };
  htvm_parallel_copy((void *)operands.in0, in0, 240u);
  htvm_parallel_copy((void *)operands.rows, rows, 20u);
  htvm_parallel_copy((void *)operands.columns, columns, 12u);
  htvm_parallel_wait();
  htvm_parallel_run(net_nearest_part0, &operands);
  htvm_parallel_copy(out, operands.out, 120u);
  htvm_parallel_wait();
}

/*
 * interleave: interleave
 * int8 1x5x6x8 -> int8 1x11x13x8
 * element-wise operators inlined
 * 143 iterations shared by the cores; all operands in memory close to them (1384 B)
 */
struct net_interleave_operands {
  const int8_t *in0;
  int8_t *out;
};

static void net_interleave_part0(const void *args, uint32_t core, uint32_t cores)
{
  const struct net_interleave_operands *const operands = args;
  const int8_t *const restrict in0 = operands->in0;
  int8_t *const restrict out = operands->out;
  const int32_t begin_0 = htvm_parallel_begin(143, core, cores);
  const int32_t end_0 = htvm_parallel_begin(143, core + 1u, cores);
  for (int32_t n = begin_0; n < end_0; ++n) {
    int32_t i1 = (n / 13);
    int32_t i2 = (n % 13);
    for (int32_t i3 = 0; i3 < 8; ++i3) {
      int32_t t1 = (i1 + 1);
      int32_t t2 = (i2 + 1);
      int8_t condval;
      if (((((t1 % 2) == 0) && (1 <= i1)) && ((t2 % 2) == 0)) && (1 <= i2)) {
        condval = in0[(((((t1 >> 1) * 48) + ((t2 >> 1) * 8)) + i3) - 56)];
      } else {
        condval = (int8_t)-3;
      }
      out[(((i1 * 104) + (i2 * 8)) + i3)] = condval;
    }
  }
}

void net_interleave(const int8_t *restrict in0, int8_t *restrict out)
{
  const struct net_interleave_operands operands = {
    htvm_parallel_memory(0u), /* in0 */
    htvm_parallel_memory(240u), /* out */
  };
  htvm_parallel_copy((void *)operands.in0, in0, 240u);
  htvm_parallel_wait();
  htvm_parallel_run(net_interleave_part0, &operands);
  htvm_parallel_copy(out, operands.out, 1144u);
  htvm_parallel_wait();
}
