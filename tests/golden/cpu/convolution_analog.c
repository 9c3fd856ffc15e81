/* constant: net_conv_bias[5], int32: bias of conv, int32 5 */
/* constant: net_conv_constant_0[5], int32: constant_0 of conv, int32 5 */
/* constant: net_conv_weight[990], int8: weight of conv, int8 3x3x22x5 */
/* constant: net_conv_weight_2[5760], int8: weight of conv, int8 3x3x128x5 */

/*
 * conv: strided_slice
 * int8 1x3x3x150 -> int8 1x3x3x128
 * element-wise operators inlined
 */
void net_conv(const int8_t *restrict in0, int8_t *restrict out) {
  for (int32_t ax1 = 0; ax1 < 3; ++ax1) {
    for (int32_t ax2 = 0; ax2 < 3; ++ax2) {
      for (int32_t ax3 = 0; ax3 < 128; ++ax3) {
        out[(((ax1 * 384) + (ax2 * 128)) + ax3)] = in0[(((ax1 * 450) + (ax2 * 150)) + ax3)];
      }
    }
  }
}

/*
 * conv: pad
 * int8 1x3x3x128 -> int8 1x5x5x128
 * borders filled, rows copied
 */
void net_conv_pad(const int8_t *restrict in0, int8_t *restrict out) {
  for (int32_t i = 0; i < 640; ++i) {
    out[i] = (int8_t)0;
  }
  for (int32_t y = 0; y < 3; ++y) {
    int32_t t1 = (y * 640);
    for (int32_t i_1 = 0; i_1 < 128; ++i_1) {
      out[((t1 + i_1) + 640)] = (int8_t)0;
    }
    for (int32_t i_2 = 0; i_2 < 384; ++i_2) {
      out[((t1 + i_2) + 768)] = in0[((y * 384) + i_2)];
    }
    for (int32_t i_3 = 0; i_3 < 128; ++i_3) {
      out[((t1 + i_3) + 1152)] = (int8_t)0;
    }
  }
  for (int32_t i_4 = 0; i_4 < 640; ++i_4) {
    out[(i_4 + 2560)] = (int8_t)0;
  }
}

/*
 * conv: strided_slice
 * int8 1x3x3x150 -> int8 1x3x3x22
 * element-wise operators inlined
 */
void net_conv_2(const int8_t *restrict in0, int8_t *restrict out) {
  for (int32_t ax1 = 0; ax1 < 3; ++ax1) {
    for (int32_t ax2 = 0; ax2 < 3; ++ax2) {
      for (int32_t ax3 = 0; ax3 < 22; ++ax3) {
        out[(((ax1 * 66) + (ax2 * 22)) + ax3)] = in0[((((ax1 * 450) + (ax2 * 150)) + ax3) + 128)];
      }
    }
  }
}

/*
 * conv: pad
 * int8 1x3x3x22 -> int8 1x5x5x22
 * borders filled, rows copied
 */
void net_conv_pad_2(const int8_t *restrict in0, int8_t *restrict out) {
  for (int32_t i = 0; i < 110; ++i) {
    out[i] = (int8_t)0;
  }
  for (int32_t y = 0; y < 3; ++y) {
    int32_t t1 = (y * 110);
    for (int32_t i_1 = 0; i_1 < 22; ++i_1) {
      out[((t1 + i_1) + 110)] = (int8_t)0;
    }
    for (int32_t i_2 = 0; i_2 < 66; ++i_2) {
      out[((t1 + i_2) + 132)] = in0[((y * 66) + i_2)];
    }
    for (int32_t i_3 = 0; i_3 < 22; ++i_3) {
      out[((t1 + i_3) + 198)] = (int8_t)0;
    }
  }
  for (int32_t i_4 = 0; i_4 < 110; ++i_4) {
    out[(i_4 + 440)] = (int8_t)0;
  }
}

/*
 * conv: conv2d + right_shift + clip
 * int8 1x5x5x22 -> int32 1x3x3x5
 * register block of 1 pixels x 5 channels
 */
void net_conv_3(const int8_t *restrict in0, const int8_t *restrict weight, int32_t *restrict out) {
  int32_t acc[5];
  for (int32_t y = 0; y < 3; ++y) {
    for (int32_t xb = 0; xb < 3; ++xb) {
      HTVM_UNROLL(5)
      for (int32_t l = 0; l < 5; ++l) {
        acc[l] = 0;
      }
      for (int32_t fy = 0; fy < 3; ++fy) {
        HTVM_UNROLL(6)
        for (int32_t f = 0; f < 66; ++f) {
          HTVM_UNROLL(5)
          for (int32_t ki = 0; ki < 5; ++ki) {
            acc[ki] = (acc[ki] + (((int32_t)in0[((((y * 110) + (fy * 110)) + (xb * 22)) + f)]) * ((int32_t)weight[(((fy * 330) + (f * 5)) + ki)])));
          }
        }
      }
      HTVM_UNROLL(5)
      for (int32_t ki_1 = 0; ki_1 < 5; ++ki_1) {
        int32_t v0 = acc[ki_1] >> 2;
        int32_t v1 = (v0) < (31) ? (v0) : (31);
        out[(((y * 15) + (xb * 5)) + ki_1)] = ((v1) > (-32) ? (v1) : (-32));
      }
    }
  }
}

/*
 * conv: conv2d + right_shift + clip + add + multiply + add + right_shift + clip + astype
 * int8 1x5x5x128 -> int8 1x3x3x5
 * register block of 1 pixels x 5 channels
 */
void net_conv_4(const int8_t *restrict in0, const int8_t *restrict weight, const int32_t *restrict in1, const int32_t *restrict constant_0, const int32_t *restrict bias, int8_t *restrict out) {
  int32_t acc[5];
  for (int32_t y = 0; y < 3; ++y) {
    for (int32_t xb = 0; xb < 3; ++xb) {
      HTVM_UNROLL(5)
      for (int32_t l = 0; l < 5; ++l) {
        acc[l] = 0;
      }
      for (int32_t fy = 0; fy < 3; ++fy) {
        HTVM_UNROLL(8)
        for (int32_t f = 0; f < 384; ++f) {
          HTVM_UNROLL(5)
          for (int32_t ki = 0; ki < 5; ++ki) {
            acc[ki] = (acc[ki] + (((int32_t)in0[((((y * 640) + (fy * 640)) + (xb * 128)) + f)]) * ((int32_t)weight[(((fy * 1920) + (f * 5)) + ki)])));
          }
        }
      }
      HTVM_UNROLL(5)
      for (int32_t ki_1 = 0; ki_1 < 5; ++ki_1) {
        int32_t t1 = (((y * 15) + (xb * 5)) + ki_1);
        int32_t v0 = acc[ki_1] >> 2;
        int32_t v1 = (v0) < (31) ? (v0) : (31);
        int32_t v2 = (((((v1) > (-32) ? (v1) : (-32)) + in1[t1]) * constant_0[ki_1]) + bias[ki_1]) >> 4;
        int32_t v3 = (v2) < (63) ? (v2) : (63);
        out[t1] = ((int8_t)((v3) > (-64) ? (v3) : (-64)));
      }
    }
  }
}
