// One inference by ExecuTorch's runtime.  `network.h` names the operators of the program, declared by
// the sources that it includes.
#include <cstdarg>
#include <cstdint>
#include <cstring>

#include <executorch/extension/kernel_util/make_boxed_from_unboxed_functor.h>
#include <executorch/runtime/core/hierarchical_allocator.h>
#include <executorch/runtime/executor/memory_manager.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/runtime.h>

#include "network.h"

#define NOINIT __attribute__((section(".noinit"), aligned(16), used))

extern "C" {
NOINIT uint8_t planned[PLANNED_BYTES];
NOINIT uint8_t loaded[LOADED_BYTES];
NOINIT uint8_t temporary[TEMPORARY_BYTES];
NOINIT uint8_t input[INPUT_BYTES];
NOINIT uint8_t output[OUTPUT_BYTES];
NOINIT uint32_t loaded_used;
NOINIT uint32_t temporary_used;
NOINIT int32_t failed;  // the first step that failed; 0: none
extern const uint8_t network[];
extern const uint8_t network_end[];
[[noreturn]] void htvm_fault(void);
}

namespace {

using namespace executorch::runtime;

// Counts what a runtime asks for, over all times that it begins anew.
class Pool final : public MemoryAllocator {
  public:
    Pool(uint32_t bytes, uint8_t *base, uint32_t *most)
        : MemoryAllocator(bytes, base), most_(most)
    {
        *most = 0;
    }

    void *allocate(size_t bytes, size_t alignment) override
    {
        uint8_t *const at = static_cast<uint8_t *>(MemoryAllocator::allocate(bytes, alignment));
        const uint32_t end = at == nullptr ? 0 : static_cast<uint32_t>(at + bytes - base_address());
        *most_ = end > *most_ ? end : *most_;
        return at;
    }

  private:
    uint32_t *most_;
};

// The program is in flash.
class Flash final : public DataLoader {
  public:
    Result<FreeableBuffer> load(size_t offset, size_t bytes, const SegmentInfo &) const override
    {
        return FreeableBuffer(network + offset, bytes, nullptr);
    }
    Result<size_t> size() const override { return static_cast<size_t>(network_end - network); }
};

int fail(int step)
{
    failed = step;
    return step;
}

}  // namespace

// What the runtime calls of the libraries beyond our firmware's.  It frees nothing.
void operator delete(void *) noexcept { htvm_fault(); }
void operator delete(void *, std::size_t) noexcept { htvm_fault(); }
extern "C" float fabsf(float x)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    bits &= 0x7fffffffu;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

// Names of operators are made of texts.
extern "C" int snprintf(char *to, std::size_t room, const char *format, ...)
{
    va_list texts;
    va_start(texts, format);
    std::size_t length = 0;
    const auto put = [&](char letter) {
        if (length + 1 < room) {
            to[length] = letter;
        }
        length += 1;
    };
    for (; *format != '\0'; ++format) {
        if (format[0] != '%') {
            put(*format);
            continue;
        }
        if (*++format != 's') {
            htvm_fault();
        }
        for (const char *text = va_arg(texts, const char *); *text != '\0'; ++text) {
            put(*text);
        }
    }
    va_end(texts);
    if (room != 0) {
        to[length < room ? length : room - 1] = '\0';
    }
    return static_cast<int>(length);
}

int main()
{
    runtime_init();
    const Kernel kernels[] = {KERNELS};
    if (register_kernels({kernels, sizeof kernels / sizeof kernels[0]}) != Error::Ok) {
        return fail(1);
    }
    Flash flash;
    Result<Program> program = Program::load(&flash, Program::Verification::Minimal);
    if (!program.ok()) {
        return fail(2);
    }
    Pool pool(sizeof loaded, loaded, &loaded_used);
    Pool scratch(sizeof temporary, temporary, &temporary_used);
    Span<uint8_t> spans[] = {{planned, sizeof planned}};
    HierarchicalAllocator hierarchy({spans, 1});
    MemoryManager memory(&pool, &hierarchy, &scratch);
    Result<Method> method = program->load_method("forward", &memory);
    if (!method.ok()) {
        return fail(3);
    }
    executorch::aten::Tensor first = method->get_input(0).toTensor();
    if (first.nbytes() != sizeof input) {
        return fail(4);
    }
    std::memcpy(first.mutable_data_ptr(), input, sizeof input);
    if (method->execute() != Error::Ok) {
        return fail(5);
    }
    const executorch::aten::Tensor last = method->get_output(0).toTensor();
    if (last.nbytes() != sizeof output) {
        return fail(6);
    }
    std::memcpy(output, last.const_data_ptr(), sizeof output);
    return fail(0);
}
