/* The part of math.h that a firmware without a C library has: single precision, in software.
 * All functions except nearbyintf and rintf come with the compiler. */
#ifndef HTVM_RV32_MATH_H
#define HTVM_RV32_MATH_H

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

float expf(float x);
float exp2f(float x);
float logf(float x);
float log2f(float x);
float sqrtf(float x);
float fabsf(float x);
float floorf(float x);
float ceilf(float x);
float truncf(float x);
float roundf(float x);
float fmaxf(float x, float y);
float fminf(float x, float y);
float fmodf(float x, float y);
float nearbyintf(float x);
float rintf(float x);

#endif
