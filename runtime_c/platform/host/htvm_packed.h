/* TVM's calling convention for packed functions, as far as tensors of this machine need it
 * (tvm/ffi/c_api.h, dlpack.h). */
#ifndef HTVM_PACKED_H
#define HTVM_PACKED_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    const int64_t *shape, *strides;
    uint64_t byte_offset;
} htvm_dltensor_t;

typedef struct {
    int32_t type_index;
    uint32_t zero;
    union {
        int64_t integer;
        void *object;
    } value;
} htvm_any_t;

#define HTVM_ANY_DLTENSOR 7
#define HTVM_ANY_TENSOR 70
#define HTVM_OBJECT_HEADER 24 /* bytes before the DLTensor of a tensor object */
#define HTVM_DEVICE_CPU 1

/* Of TVM's runtime, which loads the library. */
extern __attribute__((weak)) void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);

/* Raises an error in the caller; returns what a packed function then returns. */
static inline int htvm_packed_error(const char *message)
{
    if (TVMFFIErrorSetRaisedFromCStr != NULL) {
        TVMFFIErrorSetRaisedFromCStr("SimulationError", message);
    }
    return -1;
}

/* Returns the bytes of an argument, or NULL if it is no contiguous tensor of this machine with so many. */
static inline uint8_t *htvm_packed_bytes(const htvm_any_t *argument, uint64_t bytes)
{
    const htvm_dltensor_t *tensor = NULL;
    if (argument->type_index == HTVM_ANY_DLTENSOR) {
        tensor = argument->value.object;
    } else if (argument->type_index == HTVM_ANY_TENSOR) {
        const uint8_t *const object = argument->value.object;
        tensor = (const htvm_dltensor_t *)(const void *)(object + HTVM_OBJECT_HEADER);
    }
    if (tensor == NULL || tensor->device_type != HTVM_DEVICE_CPU) {
        return NULL;
    }
    uint64_t found = ((uint64_t)tensor->bits * tensor->lanes + 7u) / 8u;
    for (int32_t axis = tensor->ndim - 1; axis >= 0; axis--) {
        if (tensor->strides != NULL && tensor->shape[axis] != 1 &&
            (uint64_t)tensor->strides[axis] * (((uint64_t)tensor->bits * tensor->lanes + 7u) / 8u) != found) {
            return NULL;
        }
        found *= (uint64_t)tensor->shape[axis];
    }
    return found == bytes ? (uint8_t *)tensor->data + tensor->byte_offset : NULL;
}

#endif
