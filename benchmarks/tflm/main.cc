// One inference by TFLite Micro's interpreter.  The operators are those of the network, in the
// variants for int8 only, which take the least flash.
#include <cstdint>
#include <cstring>

#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/schema/schema_generated.h"

#include "network.h"

#define NOINIT __attribute__((section(".noinit"), aligned(16), used))

extern "C" {
NOINIT uint8_t arena[ARENA_BYTES];
NOINIT uint8_t input[INPUT_BYTES];
NOINIT uint8_t output[OUTPUT_BYTES];
NOINIT uint32_t arena_used;
NOINIT int32_t failed;  // the first step that failed; 0: none
extern const uint8_t network[];
}

namespace {

int fail(int step)
{
    failed = step;
    return step;
}

alignas(8) uint8_t interpreter_place[sizeof(tflite::MicroInterpreter)];
alignas(8) uint8_t resolver_place[sizeof(tflite::MicroMutableOpResolver<OPERATORS>)];

}  // namespace

int main()
{
    auto &resolver = *new (resolver_place) tflite::MicroMutableOpResolver<OPERATORS>;
    if (!add_operators(resolver)) {
        return fail(1);
    }
    auto &interpreter = *new (interpreter_place) tflite::MicroInterpreter(
        tflite::GetModel(network), resolver, arena, sizeof arena);
    if (interpreter.AllocateTensors() != kTfLiteOk) {
        return fail(2);
    }
    arena_used = interpreter.arena_used_bytes();
    if (interpreter.input(0)->bytes != sizeof input || interpreter.output(0)->bytes != sizeof output) {
        return fail(3);
    }
    std::memcpy(interpreter.input(0)->data.raw, input, sizeof input);
    if (interpreter.Invoke() != kTfLiteOk) {
        return fail(4);
    }
    std::memcpy(output, interpreter.output(0)->data.raw, sizeof output);
    return fail(0);
}
