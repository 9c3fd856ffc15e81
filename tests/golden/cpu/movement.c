/* constant: net_nearest_columns[3], int32: columns of nearest, int32 3 */
/* constant: net_nearest_rows[5], int32: rows of nearest, int32 5 */

/*
 * pad: pad
 * int8 1x5x6x8 -> int8 1x9x9x8
 * borders filled, rows copied
 */
void net_pad_pad(const int8_t *restrict in0, int8_t *restrict out) {
  for (int32_t i = 0; i < 72; ++i) {
    out[i] = (int8_t)-7;
  }
  for (int32_t y = 0; y < 5; ++y) {
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
  for (int32_t i_4 = 0; i_4 < 216; ++i_4) {
    out[(i_4 + 432)] = (int8_t)-7;
  }
}

/*
 * pad_axes: pad_axes
 * int8 1x5x6x8 -> int8 1x6x6x10
 * element-wise operators inlined
 */
void net_pad_axes(const int8_t *restrict in0, int8_t *restrict out) {
  for (int32_t i1 = 0; i1 < 6; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
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
}

/*
 * transpose: transpose
 * int8 1x5x6x8 -> int8 1x8x5x6
 * element-wise operators inlined
 */
void net_transpose(const int8_t *restrict in0, int8_t *restrict out) {
  for (int32_t i1 = 0; i1 < 8; ++i1) {
    for (int32_t i2 = 0; i2 < 5; ++i2) {
      for (int32_t i3 = 0; i3 < 6; ++i3) {
        out[(((i1 * 30) + (i2 * 6)) + i3)] = in0[(((i2 * 48) + (i3 * 8)) + i1)];
      }
    }
  }
}

/*
 * concat: concat
 * int8 1x5x6x8 -> int8 1x5x6x16
 * element-wise operators inlined
 */
void net_concat(const int8_t *restrict in0, const int8_t *restrict in1, int8_t *restrict out) {
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 6; ++i2) {
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
}

/*
 * slice: slice
 * int8 1x5x6x8 -> int8 1x3x3x6
 * element-wise operators inlined
 */
void net_slice(const int8_t *restrict in0, int8_t *restrict out) {
  for (int32_t i1 = 0; i1 < 3; ++i1) {
    for (int32_t i2 = 0; i2 < 3; ++i2) {
      for (int32_t i3 = 0; i3 < 6; ++i3) {
        out[(((i1 * 18) + (i2 * 6)) + i3)] = in0[((((i1 * 48) + (i2 * 16)) + i3) + 50)];
      }
    }
  }
}

/*
 * nearest: nearest
 * int8 1x5x6x8 -> int8 1x5x3x8
 * element-wise operators inlined
 */
void net_nearest(const int8_t *restrict in0, const int32_t *restrict rows, const int32_t *restrict columns, int8_t *restrict out) {
  for (int32_t i1 = 0; i1 < 5; ++i1) {
    for (int32_t i2 = 0; i2 < 3; ++i2) {
      for (int64_t i3 = (int64_t)0; i3 < (int64_t)8; ++i3) {
        out[(((((int64_t)i1) * (int64_t)24) + (((int64_t)i2) * (int64_t)8)) + i3)] = in0[(((((int64_t)rows[i1]) * (int64_t)48) + (((int64_t)columns[i2]) * (int64_t)8)) + i3)];
      }
    }
  }
}

/*
 * interleave: interleave
 * int8 1x5x6x8 -> int8 1x11x13x8
 * element-wise operators inlined
 */
void net_interleave(const int8_t *restrict in0, int8_t *restrict out) {
  for (int32_t i1 = 0; i1 < 11; ++i1) {
    for (int32_t i2 = 0; i2 < 13; ++i2) {
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
}
