/* Command line of the simulator.
 *
 *   iss FILE.elf [--ram BASE:SIZE]... [--putchar ADDR] [--exit ADDR] [--trace ADDR]
 *       [--poke ADDR:FILE]... [--peek ADDR:SIZE:FILE]... [--stack LOW:HIGH]
 *       [--set ADDR:VALUE]... [--max-cycles N] [--step-polls] [--report FILE.json]
 *       [--events FILE.jsonl] [--snapshot ADDR:SIZE]... [--snapshots FILE]
 *       [--dirty ADDR:SIZE]...
 *       [--watch ADDR:SIZE:CYCLE]... [--stack-at CYCLE]... [--wake N]... [--functions FILE]
 *       [--calls FILE --returns FILE] [--harts N]
 *
 * Without --ram it is the bare machine: 4 MiB at 0x80000000, putchar at 0x10000000, exit at
 * 0x00100000, marks at 0x20000ff0.  Pokes are made after loading, in their order; peeks after the
 * run, also after one that trapped.  --set writes a device register before the first cycle:
 * settings of device models, which no program can change.  --snapshot appends memory (RAM, or the
 * devices' own) to the file of snapshots at every mark with an odd event, in the order given.
 * --dirty fills memory at the first mark, so that whatever is written there later changes it.
 * --watch reports who stored last into a range before CYCLE, --stack-at who stored to a device at a
 * cycle, --wake who made the Nth wake-up of each hart (from 1); --functions has the addresses of all
 * functions (ascending, 32 bits, little-endian), by which a jump to another function is told from
 * others.  --calls has calls of functions in the order in which they come, three such words each: the
 * function, and the address and bytes of memory that is appended to the file of --returns when it
 * returns.  --harts is the number of harts, 1 unless given; machines whose core is alone have no more
 * (core.h).
 */
#ifndef HTVM_ISS_OPTIONS_H
#define HTVM_ISS_OPTIONS_H

#include "iss.h"
#include "watch.h"

enum { MAX_TRANSFERS = 256, MAX_SETTINGS = 16 };

typedef struct {
    uint32_t addr, size;
    const char *path;
} transfer_t;

typedef struct {
    uint32_t addr, value;
} setting_t;

/* What is not the machine's own: those options are set in the iss_t. */
typedef struct {
    uint32_t harts;
    const char *elf, *report, *events;
    setting_t settings[MAX_SETTINGS];
    size_t setting_count;
    const char *snapshots, *functions, *calls, *returns;
    watch_t watch;
    bool watched;
    transfer_t pokes[MAX_TRANSFERS], peeks[MAX_TRANSFERS];
    size_t poke_count, peek_count;
} options_t;

/* Tells the user what is wrong, and with which option or file. */
void htvm_iss_complain(const char *what, const char *which);

/* Fills in machine and options; false, after a complaint, if they are not understood. */
bool htvm_iss_parse_command_line(iss_t *iss, options_t *options, int argc, char **argv);

#endif
