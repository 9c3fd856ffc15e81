/* Loads and stores of harts with the pipeline, as cases of the switch in harts_pipeline.c, whose names
 * they use. */
#ifndef HTVM_ISS_HARTS_ACCESS_H
#define HTVM_ISS_HARTS_ACCESS_H

static inline bool crosses_word(uint32_t addr, uint32_t size) { return (addr & 3u) + size > 4; }

/* An access to a register, and what it increments its address register to. */
typedef struct {
    uint32_t addr, size, value, after;
} access_t;

#define IS_NEAR(addr, width) (near_size >= (width) && (addr) - near_base <= near_size - (width))

/* An access to memory nearby.  In the turn of its second half it comes here again. */
#define AWAIT_BANKS(addr, width)                                                     \
    if ((width) > 1 && crosses_word((addr), (width))) {                              \
        if (waited == 0) {                                                           \
            const uint64_t next = htvm_harts_bank(all, (addr), cycle, 1) + 1;        \
            waited = (uint32_t)(next - cycle);                                       \
            cycle = next;                                                            \
            TURN();                                                                  \
        }                                                                            \
        const uint64_t served = htvm_harts_bank(all, ((addr) | 3u) + 1u, cycle, 1);  \
        BUSY(waited + (served - cycle));                                             \
        cycle = served;                                                              \
        waited = 0;                                                                  \
    } else {                                                                         \
        const uint64_t served = htvm_harts_bank(all, (addr), cycle, 1);              \
        if (served != cycle) {                                                       \
            BUSY(served - cycle);                                                    \
            cycle = served;                                                          \
        }                                                                            \
    }

/* An access to other memory; `p` is NULL if there is none. */
#define AWAIT_FAR(addr, width)                                                              \
    if ((addr) - ram->base <= ram->size - (width)) {                                        \
        p = ram->bytes + ((addr) - ram->base);                                              \
    } else {                                                                                \
        p = htvm_iss_bus_map(&all->iss->bus, (addr), (width));                              \
    }                                                                                       \
    if (p != NULL) {                                                                        \
        const bool twice = (width) > 1 && crosses_word((addr), (width));                    \
        const uint32_t wait = twice ? 2u * FAR_WAIT + CROSSING_EXTRA : (uint32_t)FAR_WAIT;  \
        if (wait != 0) {                                                                    \
            BUSY(wait);                                                                     \
            cycle += wait;                                                                  \
        }                                                                                   \
    }

/* The address register, unless it is x0. */
#define INCREMENT_TO(value)                                                                 \
    if (d->rs1 != 0) {                                                                      \
        RS1 = (value);                                                                      \
        if (d->rs1 == REG_SP && !htvm_harts_stack(all->iss, hart, RS1)) {                   \
            goto trapped;                                                                   \
        }                                                                                   \
    }

#define LOAD_FROM(operation, width, read, extend, address, increments, increment)           \
    case operation: {                                                                       \
        const uint32_t addr = (address);                                                    \
        uint8_t *p;                                                                         \
        TURN();                                                                             \
        if (IS_NEAR(addr, (width))) {                                                       \
            p = near + (addr - near_base);                                                  \
            AWAIT_BANKS(addr, (width));                                                     \
        } else {                                                                            \
            AWAIT_FAR(addr, (width));                                                       \
            if (p == NULL) {                                                                \
                access = (access_t){addr, (width), 0, addr + (increment)};                  \
                goto read_register;                                                         \
            }                                                                               \
        }                                                                                   \
        const uint32_t value = (read);                                                      \
        hart->last_effect = retired;                                                        \
        if (increments) {                                                                   \
            INCREMENT_TO(addr + (increment));                                               \
        }                                                                                   \
        x[d->rd] = (extend); /* behind the increment: the value loaded wins */              \
        break;                                                                              \
    }

#define STORE_TO(operation, width, write, address, increments, increment)                   \
    case operation: {                                                                       \
        const uint32_t addr = (address);                                                    \
        const uint32_t value = RS2;                                                         \
        uint8_t *p;                                                                         \
        TURN();                                                                             \
        if (IS_NEAR(addr, (width))) {                                                       \
            p = near + (addr - near_base);                                                  \
            AWAIT_BANKS(addr, (width));                                                     \
        } else {                                                                            \
            AWAIT_FAR(addr, (width));                                                       \
            if (p == NULL) {                                                                \
                access = (access_t){addr, (width), value, addr + (increment)};              \
                goto write_register;                                                        \
            }                                                                               \
        }                                                                                   \
        hart->last_effect = retired;                                                        \
        ON_STORE(addr, (width), cycle);                                                     \
        write;                                                                              \
        if (increments) {                                                                   \
            INCREMENT_TO(addr + (increment));                                               \
        }                                                                                   \
        break;                                                                              \
    }

#define LOAD(op, width, read, extend) LOAD_FROM(op, width, read, extend, RS1 + IMM, false, 0u)
#define LOAD_POST(op, width, read, extend) \
    LOAD_FROM(op##_POST, width, read, extend, RS1, true, IMM + RS2)
#define LOAD_INDEXED(op, width, read, extend) \
    LOAD_FROM(op##_INDEXED, width, read, extend, RS1 + RS2, false, 0u)
#define STORE(op, width, write) STORE_TO(op, width, write, RS1 + IMM, false, 0u)
#define STORE_POST(op, width, write) STORE_TO(op##_POST, width, write, RS1, true, IMM + x[d->rd])
#define STORE_INDEXED(op, width, write) \
    STORE_TO(op##_INDEXED, width, write, RS1 + x[d->rd], false, 0u)

#endif
