/* constant: net_onnx_quantize_exact_scale[1], float32: scale of onnx_quantize_exact, float32 1 */
/* constant: net_onnx_quantize_scale[1], float32: scale of onnx_quantize, float32 1 */
/* constant: net_quantize_scale[1], float32: scale of quantize, float32 1 */

/*
 * onnx_quantize: onnx_quantize
 * float32 1x24 -> int8 1x24
 * element-wise operators inlined
 */
void net_onnx_quantize(const float *restrict in0, const float *restrict scale, int8_t *restrict out) {
  for (int32_t i1 = 0; i1 < 24; ++i1) {
    float ratio = (in0[i1] / scale[0]);
    float below = ((ratio < 5.120000e+02f) ? ratio : 5.120000e+02f);
    float value = ((-5.120000e+02f < below) ? below : -5.120000e+02f);
    /* Floats of this magnitude are integers: the sum is rounded to one, ties to even. */
    float moved = (value + 1.200000e+07f);
    int32_t v0 = ((int32_t)(moved - 1.200000e+07f)) - 3;
    int32_t v1 = (v0) < (127) ? (v0) : (127);
    out[i1] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));
  }
}

/*
 * onnx_quantize_exact: onnx_quantize
 * float32 1x24 -> uint8 1x24
 * element-wise operators inlined
 */
void net_onnx_quantize_exact(const float *restrict in0, const float *restrict scale, uint8_t *restrict out) {
  for (int32_t i1 = 0; i1 < 24; ++i1) {
    float ratio = (in0[i1] / scale[0]);
    float below = ((ratio < 5.120000e+02f) ? ratio : 5.120000e+02f);
    float value = ((-5.120000e+02f < below) ? below : -5.120000e+02f);
    /* Floats of this magnitude are integers: the sum is rounded to one, ties to even. */
    float moved = (value + 1.200000e+07f);
    int32_t v0 = ((int32_t)(moved - 1.200000e+07f)) + 3;
    int32_t v1 = (v0) < (255) ? (v0) : (255);
    out[i1] = ((uint8_t)((v1) > (0) ? (v1) : (0)));
  }
}

/*
 * quantize: quantize
 * float32 1x24 -> int8 1x24
 * element-wise operators inlined
 */
void net_quantize(const float *restrict in0, const float *restrict scale, int8_t *restrict out) {
  for (int32_t i1 = 0; i1 < 24; ++i1) {
    float ratio = (in0[i1] / scale[0]);
    float low = ((ratio < 5.120000e+02f) ? ratio : 5.120000e+02f);
    float value = ((-5.120000e+02f < low) ? low : -5.120000e+02f);
    int32_t whole = ((int32_t)value);
    int32_t v0 = ((whole + ((int32_t)(5.000000e-01f <= (value - ((float)whole))))) - ((int32_t)((value - ((float)whole)) <= -5.000000e-01f))) - 5;
    int32_t v1 = (v0) < (127) ? (v0) : (127);
    out[i1] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));
  }
}

/*
 * dequantize: dequantize
 * int8 1x24 -> float32 1x24
 * element-wise operators inlined
 */
void net_dequantize(const int8_t *restrict in0, const float *restrict scale, float *restrict out) {
  for (int32_t i1 = 0; i1 < 24; ++i1) {
    out[i1] = (((float)(((int32_t)in0[i1]) + 5)) * scale[0]);
  }
}
