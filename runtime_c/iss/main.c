/* Command line of the simulator.
 *
 *   iss FILE.elf [--ram BASE:SIZE]... [--putchar ADDR] [--exit ADDR] [--trace ADDR]
 *       [--poke ADDR:FILE]... [--peek ADDR:SIZE:FILE]... [--stack LOW:HIGH]
 *       [--set ADDR:VALUE]... [--max-cycles N] [--step-polls] [--report FILE.json]
 *       [--events FILE.jsonl] [--snapshot ADDR:SIZE]... [--snapshots FILE]
 *       [--watch ADDR:SIZE:EVENT] [--stack-at CYCLE]... [--functions FILE] [--harts N]
 *
 * Without --ram it is the bare machine: 4 MiB at 0x80000000, putchar at 0x10000000, exit at
 * 0x00100000, marks at 0x20000ff0.  Pokes are made after loading, in their order; peeks after the
 * run, also after one that trapped.  --set writes a device register before the first cycle:
 * settings of device models, which no program can change.  --snapshot appends memory (RAM, or the
 * devices' own) to the file of snapshots at every mark with an odd event, in the order given.
 * --watch reports who stored last into a range before the mark EVENT, --stack-at who stored at a
 * cycle; --functions has the addresses of all functions (ascending, 32 bits, little-endian), by
 * which a jump to another function is told from others.  --harts is the number of harts, 1 unless
 * given; more than that, only cores with a scoreboard can be (core.h), and these cannot be watched.
 * Ends with 0 if the program reached its
 * exit (its code is in the report), 1 if it trapped, 2 if it could not be started.
 */
#include "harts.h"
#include "watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RAN = 0, TRAPPED = 1, UNUSABLE = 2, MAX_TRANSFERS = 256, MAX_SETTINGS = 16 };

typedef struct {
    uint32_t addr, size;
    const char *path;
} transfer_t;

typedef struct {
    uint32_t addr, value;
} setting_t;

typedef struct {
    uint32_t harts;
    const char *elf, *report, *events;
    setting_t settings[MAX_SETTINGS];
    size_t setting_count;
    const char *snapshots, *functions;
    watch_t watch;
    bool watched;
    transfer_t pokes[MAX_TRANSFERS], peeks[MAX_TRANSFERS];
    size_t poke_count, peek_count;
} options_t;

static void complain(const char *what, const char *which)
{
    fprintf(stderr, "iss: %s: %s\n", which, what);
}

/* Reads a number up to `stop`; moves *text behind it. */
static bool parse_number(const char **text, char stop, uint64_t limit, uint64_t *value)
{
    char *end;
    if (**text < '0' || **text > '9') {
        return false;
    }
    *value = strtoull(*text, &end, 0);
    if (end == *text || *end != stop || *value > limit) {
        return false;
    }
    *text = end + (stop != '\0');
    return true;
}

static bool parse_u32(const char **text, char stop, uint32_t *value)
{
    uint64_t wide;
    if (!parse_number(text, stop, UINT32_MAX, &wide)) {
        return false;
    }
    *value = (uint32_t)wide;
    return true;
}

static bool parse_address(const char *text, bool *has, uint32_t *addr)
{
    *has = true;
    return parse_u32(&text, '\0', addr);
}

static bool parse_transfer(const char *text, bool sized, transfer_t *list, size_t *count)
{
    transfer_t one = {0};
    if (*count == MAX_TRANSFERS || !parse_u32(&text, ':', &one.addr) ||
        (sized && !parse_u32(&text, ':', &one.size)) || *text == '\0') {
        return false;
    }
    one.path = text;
    list[(*count)++] = one;
    return true;
}

/* Options of whoever looks at a run. */
static bool parse_look(iss_t *iss, options_t *options, const char *name, const char *value)
{
    bus_t *bus = &iss->bus;
    watch_t *watch = &options->watch;
    if (strcmp(name, "--snapshot") == 0) {
        snapshot_t *one = &bus->snapshots[bus->snapshot_count];
        return bus->snapshot_count++ < MAX_SNAPSHOTS && parse_u32(&value, ':', &one->addr) &&
               parse_u32(&value, '\0', &one->size);
    }
    if (strcmp(name, "--snapshots") == 0) {
        options->snapshots = value;
        return true;
    }
    if (strcmp(name, "--watch") == 0) {
        options->watched = watch->has_range = true;
        return parse_u32(&value, ':', &watch->addr) && parse_u32(&value, ':', &watch->size) &&
               parse_u32(&value, '\0', &watch->until);
    }
    if (strcmp(name, "--stack-at") == 0) {
        options->watched = true;
        return watch->cycle_count < WATCH_CYCLES &&
               parse_number(&value, '\0', UINT64_MAX, &watch->cycles[watch->cycle_count++]);
    }
    if (strcmp(name, "--functions") == 0) {
        options->functions = value;
        return true;
    }
    return false;
}

static bool parse_option(iss_t *iss, options_t *options, const char *name, const char *value)
{
    bus_t *bus = &iss->bus;
    uint32_t base, size;

    if (strcmp(name, "--ram") == 0) {
        return parse_u32(&value, ':', &base) && parse_u32(&value, '\0', &size) &&
               htvm_iss_bus_add_ram(bus, base, size);
    }
    if (strcmp(name, "--putchar") == 0) {
        return parse_address(value, &bus->has_putchar, &bus->putchar_addr);
    }
    if (strcmp(name, "--exit") == 0) {
        return parse_address(value, &bus->has_exit, &bus->exit_addr);
    }
    if (strcmp(name, "--trace") == 0) {
        return parse_address(value, &bus->has_trace, &bus->trace_addr);
    }
    if (strcmp(name, "--poke") == 0) {
        return parse_transfer(value, false, options->pokes, &options->poke_count);
    }
    if (strcmp(name, "--peek") == 0) {
        return parse_transfer(value, true, options->peeks, &options->peek_count);
    }
    if (strcmp(name, "--set") == 0) {
        setting_t *one = &options->settings[options->setting_count];
        return options->setting_count++ < MAX_SETTINGS && parse_u32(&value, ':', &one->addr) &&
               parse_u32(&value, '\0', &one->value) && htvm_soc_owns(one->addr);
    }
    if (strcmp(name, "--stack") == 0) {
        iss->has_stack = true;
        const bool good = parse_u32(&value, ':', &iss->stack_low) &&
                          parse_u32(&value, '\0', &iss->stack_high) &&
                          iss->stack_low < iss->stack_high;
        iss->lowest_sp = iss->stack_high;
        return good;
    }
    if (strcmp(name, "--max-cycles") == 0) {
        return parse_number(&value, '\0', UINT64_MAX - 1, &iss->max_cycles);
    }
    if (strcmp(name, "--harts") == 0) {
        return parse_u32(&value, '\0', &options->harts);
    }
    if (strcmp(name, "--report") == 0) {
        options->report = value;
        return true;
    }
    if (strcmp(name, "--events") == 0) {
        options->events = value;
        return true;
    }
    return parse_look(iss, options, name, value);
}

static bool parse_command_line(iss_t *iss, options_t *options, int argc, char **argv)
{
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--step-polls") == 0) {
            iss->step_polls = true;
        } else if (argv[i][0] == '-' && argv[i][1] == '-') {
            if (i + 1 == argc) {
                complain("value is missing", argv[i]);
                return false;
            }
            if (!parse_option(iss, options, argv[i], argv[i + 1])) {
                complain("unknown option, or its value is not understood", argv[i]);
                return false;
            }
            ++i;
        } else if (options->elf == NULL) {
            options->elf = argv[i];
        } else {
            complain("one program at a time", argv[i]);
            return false;
        }
    }
    if (options->elf == NULL) {
        complain("FILE.elf is missing", "usage");
        return false;
    }
    return true;
}

static bool bare_machine(bus_t *bus)
{
    bus->has_putchar = bus->has_exit = bus->has_trace = true;
    bus->putchar_addr = 0x10000000u;
    bus->exit_addr = 0x00100000u;
    bus->trace_addr = 0x20000ff0u;
    return htvm_iss_bus_add_ram(bus, 0x80000000u, 4u << 20);
}

/* The whole file in malloc'ed memory, at least one byte of it; NULL after a complaint. */
static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = NULL;
    size_t room = 0;

    *size = 0;
    if (file == NULL) {
        complain("cannot be opened", path);
        return NULL;
    }
    for (;;) {
        if (*size == room) {
            room = room == 0 ? 1u << 16 : 2 * room;
            uint8_t *grown = realloc(bytes, room);
            if (grown == NULL) {
                break;
            }
            bytes = grown;
        }
        const size_t got = fread(bytes + *size, 1, room - *size, file);
        if (got == 0 && ferror(file) == 0) {
            fclose(file);
            return bytes;
        }
        if (got == 0) {
            break;
        }
        *size += got;
    }
    complain("cannot be read", path);
    free(bytes);
    fclose(file);
    return NULL;
}

static bool load(iss_t *iss, const char *path)
{
    size_t size;
    uint8_t *file = read_file(path, &size);
    if (file == NULL) {
        return false;
    }
    const char *problem = htvm_iss_load_elf(iss, file, size);
    free(file);
    if (problem != NULL) {
        complain(problem, path);
    }
    return problem == NULL;
}

static bool poke(iss_t *iss, const transfer_t *what)
{
    size_t size;
    uint8_t *file = read_file(what->path, &size);
    if (file == NULL) {
        return false;
    }
    uint8_t *memory = size <= UINT32_MAX
                          ? htvm_iss_bus_map(&iss->bus, what->addr, (uint32_t)size)
                          : NULL;
    if (memory != NULL) {
        memcpy(memory, file, size);
    } else {
        complain("does not fit into RAM at the address given", what->path);
    }
    free(file);
    return memory != NULL;
}

static bool peek(iss_t *iss, const transfer_t *what)
{
    const uint8_t *memory = htvm_iss_bus_map(&iss->bus, what->addr, what->size);
    if (memory == NULL) {
        complain("that memory is not in RAM", what->path);
        return false;
    }
    FILE *file = fopen(what->path, "wb");
    bool good = file != NULL && fwrite(memory, 1, what->size, file) == what->size;
    good = file != NULL && fclose(file) == 0 && good;
    if (!good) {
        complain("cannot be written", what->path);
    }
    return good;
}

static bool write_events(const iss_t *iss, const char *path)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        complain("cannot be written", path);
        return false;
    }
    htvm_soc_events(iss->bus.soc, file);
#ifdef HTVM_CORE_SCOREBOARD
    htvm_harts_events(iss->harts, file);
#endif
    return fclose(file) == 0;
}

static bool apply_settings(iss_t *iss, const options_t *options)
{
    for (size_t i = 0; i < options->setting_count; ++i) {
        htvm_soc_write(iss->bus.soc, options->settings[i].addr, options->settings[i].value, 0);
    }
    if (htvm_soc_error(iss->bus.soc) != NULL) {
        complain(htvm_soc_error(iss->bus.soc), "--set");
        return false;
    }
    return true;
}

/* Runs the program on the core or cores there are. */
static int execute(iss_t *iss, const options_t *options)
{
#ifdef HTVM_CORE_SCOREBOARD
    if (options->watched) {
        complain("this machine's harts cannot be watched", "--watch");
        return UNUSABLE;
    }
    iss->harts = htvm_harts_new(iss, options->harts);
    if (iss->harts == NULL) {
        complain(iss->trap, "--harts");
        return UNUSABLE;
    }
    return htvm_harts_run(iss->harts) ? RAN : TRAPPED;
#else
    if (options->harts != 1) {
        complain("this machine's core is alone", "--harts");
        return UNUSABLE;
    }
    return (options->watched ? htvm_iss_run_watched(iss) : htvm_iss_run(iss)) ? RAN : TRAPPED;
#endif
}

/* Runs the program, and lets look at it whoever asked for that. */
static int run(iss_t *iss, options_t *options)
{
    uint8_t *functions = NULL;
    if (options->functions != NULL) {
        size_t size;
        functions = read_file(options->functions, &size);
        if (functions == NULL) {
            return UNUSABLE;
        }
        options->watch.functions = functions;
        options->watch.function_count = size / 4;
    }
    if (options->snapshots != NULL) {
        iss->bus.snapshot_file = fopen(options->snapshots, "wb");
        if (iss->bus.snapshot_file == NULL) {
            complain("cannot be written", options->snapshots);
            free(functions);
            return UNUSABLE;
        }
    }
    if (options->watched) {
        options->watch.trace_addr = iss->bus.trace_addr;
        iss->watch = &options->watch;
    }
    const int ended = execute(iss, options);
    options->watch.functions = NULL;
    free(functions);
    if (options->snapshots != NULL &&
        (fclose(iss->bus.snapshot_file) != 0 || iss->bus.snapshot_failed)) {
        complain("cannot be written, or a range is no memory", options->snapshots);
        return UNUSABLE;
    }
    return ended;
}

static int simulate(iss_t *iss, options_t *options)
{
    if (!apply_settings(iss, options) || !load(iss, options->elf)) {
        return UNUSABLE;
    }
    for (size_t i = 0; i < options->poke_count; ++i) {
        if (!poke(iss, &options->pokes[i])) {
            return UNUSABLE;
        }
    }
    const int ended = run(iss, options);
    fflush(stdout);
    if (ended == UNUSABLE) {
        return UNUSABLE;
    }
    if (ended == TRAPPED) {
        complain(iss->trap, options->elf);
    }
    for (size_t i = 0; i < options->peek_count; ++i) {
        if (!peek(iss, &options->peeks[i])) {
            return UNUSABLE;
        }
    }
    if (options->events != NULL && !write_events(iss, options->events)) {
        return UNUSABLE;
    }
    if (options->report != NULL && !htvm_iss_write_report(iss, options->report)) {
        complain("cannot be written", options->report);
        return UNUSABLE;
    }
    return ended;
}

int main(int argc, char **argv)
{
    static options_t options;
    static iss_t iss;
    int result = UNUSABLE;

    options.harts = 1;
    htvm_iss_init(&iss);
    if (parse_command_line(&iss, &options, argc, argv) &&
        (iss.bus.ram_count > 0 || bare_machine(&iss.bus))) {
        const htvm_bus_t bus = {&iss.bus, htvm_iss_bus_map};
        iss.bus.soc = htvm_soc_new(&bus);
        if (iss.bus.soc != NULL) {
            result = simulate(&iss, &options);
            htvm_soc_free(iss.bus.soc);
        } else {
            complain("out of memory", "soc");
        }
    }
#ifdef HTVM_CORE_SCOREBOARD
    htvm_harts_free(iss.harts);
#endif
    htvm_iss_bus_free(&iss.bus);
    return result;
}
