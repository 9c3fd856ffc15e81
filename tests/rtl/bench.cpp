// Runs one bare-metal ELF file on the CV32E40P RTL (top cv32e40p_core).  The machine is the bare
// machine of the simulator: 4 MiB of RAM at 0x80000000, a byte stored to 0x10000000 is printed, a
// word stored to 0x00100000 ends the run, a word stored to 0x20000ff0 is a mark.
//
//   bench FILE.elf [--max-cycles N] [--poke ADDR:FILE]... [--marks FILE] [--trace FILE]
//         [--slow BEGIN:END:GRANT:RESPONSE] [--wake ADDR]
//
// Memories never wait, except for data accesses from BEGIN to END - 1: those are granted so many cycles
// later, and answered so many cycles after that.  A word n stored to the address of --wake raises an
// interrupt n cycles later, and 0 ends it.
// The marks have one line "cycle event" each, the trace one line "cycle pc" per instruction that
// leaves the decode stage.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>

#include "Vcv32e40p_core.h"
#include "Vcv32e40p_core___024root.h"
#include "verilated.h"

namespace {

constexpr uint32_t kRamBase = 0x80000000u;
constexpr uint32_t kRamBytes = 4u << 20;
constexpr uint32_t kPutchar = 0x10000000u;
constexpr uint32_t kExit = 0x00100000u;
constexpr uint32_t kMark = 0x20000ff0u;
constexpr uint32_t kInterrupt = 1u << 16;

uint8_t ram[kRamBytes];

[[noreturn]] void die(const char *what) {
    std::fprintf(stderr, "bench: %s\n", what);
    std::exit(2);
}

uint32_t word_at(uint32_t addr) {
    uint32_t value = 0;
    const uint32_t offset = (addr & ~3u) - kRamBase;
    if (offset < kRamBytes) std::memcpy(&value, ram + offset, 4);
    return value;
}

// Loads the PT_LOAD segments; the files come from our own linker, so only gross errors are caught.
uint32_t load_elf(const char *path) {
    std::FILE *file = std::fopen(path, "rb");
    if (!file) die("cannot open the ELF file");
    std::fseek(file, 0, SEEK_END);
    const long bytes = std::ftell(file);
    std::rewind(file);
    if (bytes < 52) die("not an ELF file");
    std::unique_ptr<uint8_t[]> image(new uint8_t[bytes]);
    if (std::fread(image.get(), 1, bytes, file) != static_cast<size_t>(bytes)) die("short read");
    std::fclose(file);
    auto u32 = [&](long at) { uint32_t v; std::memcpy(&v, image.get() + at, 4); return v; };
    auto u16 = [&](long at) { uint16_t v; std::memcpy(&v, image.get() + at, 2); return v; };
    if (std::memcmp(image.get(), "\177ELF\1\1", 6) != 0) die("not a little-endian ELF32 file");
    for (unsigned i = 0; i < u16(44); ++i) {
        const long header = static_cast<long>(u32(28)) + 32L * i;
        if (header + 32 > bytes) die("program header outside of the file");
        if (u32(header) != 1) continue;
        const uint32_t offset = u32(header + 4), addr = u32(header + 12), size = u32(header + 16);
        if (addr - kRamBase > kRamBytes - size || static_cast<long>(offset) + size > bytes)
            die("segment outside of RAM");
        std::memcpy(ram + (addr - kRamBase), image.get() + offset, size);
    }
    return u32(24);
}

void poke(const char *text) {
    char *end;
    const uint32_t offset = static_cast<uint32_t>(std::strtoul(text, &end, 0)) - kRamBase;
    std::FILE *file = *end == ':' ? std::fopen(end + 1, "rb") : nullptr;
    if (!file || offset >= kRamBytes) die("a poke is not possible");
    if (std::fread(ram + offset, 1, kRamBytes - offset, file) == 0) die("a poke is empty");
    std::fclose(file);
}

struct Port {  // answers one cycle after the request, never waits
    bool pending = false;
    uint32_t data = 0;
};

struct Slow {  // a part of memory, and the cycles that it takes longer
    uint32_t begin = 0, end = 0;
    unsigned grant = 0, response = 0;
    bool holds(uint32_t addr) const { return addr >= begin && addr < end; }
};

struct Response {
    uint64_t cycle;
    uint32_t data;
};

Slow slow_part(const char *text) {
    Slow part;
    char *at = nullptr;
    part.begin = static_cast<uint32_t>(std::strtoul(text, &at, 0));
    if (*at == ':') part.end = static_cast<uint32_t>(std::strtoul(at + 1, &at, 0));
    if (*at == ':') part.grant = static_cast<unsigned>(std::strtoul(at + 1, &at, 0));
    if (*at == ':') part.response = static_cast<unsigned>(std::strtoul(at + 1, &at, 0));
    if (*at != '\0' || part.begin >= part.end) die("a slow part is not possible");
    return part;
}

}  // namespace

int main(int argc, char **argv) {
    uint64_t max_cycles = 1000000000ull;
    std::FILE *trace = nullptr, *marks = nullptr;
    Slow slow;
    uint32_t wake_addr = 0;
    uint64_t wake_at = UINT64_MAX;
    if (argc < 2 || argc % 2 != 0) die("usage: bench FILE.elf [--option VALUE]...");
    const uint32_t entry = load_elf(argv[1]);
    for (int i = 2; i < argc; i += 2) {
        if (!std::strcmp(argv[i], "--max-cycles")) max_cycles = std::strtoull(argv[i + 1], nullptr, 0);
        else if (!std::strcmp(argv[i], "--poke")) poke(argv[i + 1]);
        else if (!std::strcmp(argv[i], "--marks")) marks = std::fopen(argv[i + 1], "w");
        else if (!std::strcmp(argv[i], "--trace")) trace = std::fopen(argv[i + 1], "w");
        else if (!std::strcmp(argv[i], "--slow")) slow = slow_part(argv[i + 1]);
        else if (!std::strcmp(argv[i], "--wake"))
            wake_addr = static_cast<uint32_t>(std::strtoul(argv[i + 1], nullptr, 0));
        else die("unknown option");
    }
    VerilatedContext context;
    Vcv32e40p_core core{&context};

    core.boot_addr_i = entry;
    core.mtvec_addr_i = kRamBase;
    core.dm_halt_addr_i = kRamBase;
    core.dm_exception_addr_i = kRamBase;
    core.hart_id_i = 0;
    core.pulp_clock_en_i = 1;
    core.scan_cg_en_i = 0;
    core.irq_i = 0;
    core.debug_req_i = 0;
    core.fetch_enable_i = 1;
    core.instr_gnt_i = 1;
    core.data_gnt_i = 1;
    core.apu_gnt_i = 0;
    core.apu_rvalid_i = 0;
    core.rst_ni = 0;
    Port fetch;
    std::deque<Response> responses;  // to data accesses, in their order
    unsigned waited = 0;             // of the data access that is not granted yet
    for (uint64_t cycle = 0; cycle < max_cycles; ++cycle) {
        core.rst_ni = cycle >= 4;
        core.clk_i = 0;
        core.instr_rvalid_i = fetch.pending;
        core.instr_rdata_i = fetch.data;
        core.data_rvalid_i = !responses.empty() && responses.front().cycle <= cycle;
        if (core.data_rvalid_i) {
            core.data_rdata_i = responses.front().data;
            responses.pop_front();
        }
        core.irq_i = cycle >= wake_at ? kInterrupt : 0;
        core.eval();
        unsigned response = 0;
        core.data_gnt_i = 1;
        if (core.data_req_o && slow.holds(core.data_addr_o)) {
            core.data_gnt_i = waited >= slow.grant;
            waited = core.data_gnt_i ? 0 : waited + 1;
            response = slow.response;
            core.eval();
        }
        if (cycle < 4) {
            core.clk_i = 1;
            core.eval();
            continue;
        }
        const auto *root = core.rootp;
        if (trace && root->cv32e40p_core__DOT__id_valid && root->cv32e40p_core__DOT__is_decoding)
            std::fprintf(trace, "%llu %08x\n", static_cast<unsigned long long>(cycle),
                         root->cv32e40p_core__DOT__pc_id);
        fetch.pending = core.instr_req_o;
        if (fetch.pending) fetch.data = word_at(core.instr_addr_o);
        if (core.data_req_o && core.data_gnt_i) {
            const uint32_t addr = core.data_addr_o;
            const uint64_t last = responses.empty() ? 0 : responses.back().cycle;
            responses.push_back({std::max(cycle + 1 + response, last + 1), word_at(addr)});
            if (core.data_we_o) {
                const uint32_t word = addr & ~3u;
                if (word == kPutchar) {
                    std::putchar(static_cast<int>(core.data_wdata_o & 0xff));
                } else if (word == kExit) {
                    std::fflush(stdout);
                    if (trace) std::fclose(trace);
                    if (marks) std::fclose(marks);
                    return core.data_wdata_o == 0x5555u ? 0 : 1;
                } else if (word == kMark) {
                    if (marks)
                        std::fprintf(marks, "%llu %u\n", static_cast<unsigned long long>(cycle),
                                     core.data_wdata_o);
                } else if (wake_addr != 0 && word == wake_addr) {
                    wake_at = core.data_wdata_o ? cycle + core.data_wdata_o : UINT64_MAX;
                } else if (word - kRamBase < kRamBytes) {
                    for (unsigned lane = 0; lane < 4; ++lane)
                        if (core.data_be_o >> lane & 1)
                            ram[word - kRamBase + lane] =
                                static_cast<uint8_t>(core.data_wdata_o >> (8 * lane));
                } else {
                    die("store outside of RAM");
                }
            }
        }
        core.clk_i = 1;
        core.eval();
    }
    die("the program did not end");
}
