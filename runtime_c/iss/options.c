/* Parses the command line of the simulator (options.h). */
#include "options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void htvm_iss_complain(const char *what, const char *which)
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
    if (strcmp(name, "--dirty") == 0) {
        snapshot_t *one = &bus->dirtied[bus->dirtied_count];
        return bus->dirtied_count++ < MAX_DIRTIED && parse_u32(&value, ':', &one->addr) &&
               parse_u32(&value, '\0', &one->size);
    }
    if (strcmp(name, "--snapshots") == 0) {
        options->snapshots = value;
        return true;
    }
    if (strcmp(name, "--watch") == 0) {
        range_t *one = &watch->ranges[watch->range_count];
        options->watched = true;
        return watch->range_count++ < WATCHES && parse_u32(&value, ':', &one->addr) &&
               parse_u32(&value, ':', &one->size) &&
               parse_number(&value, '\0', UINT64_MAX, &one->until);
    }
    if (strcmp(name, "--stack-at") == 0) {
        options->watched = true;
        return watch->cycle_count < WATCHES &&
               parse_number(&value, '\0', UINT64_MAX, &watch->cycles[watch->cycle_count++]);
    }
    if (strcmp(name, "--wake") == 0) {
        options->watched = true;
        return watch->wake_count < WATCHES &&
               parse_number(&value, '\0', UINT64_MAX, &watch->wakes[watch->wake_count++]);
    }
    if (strcmp(name, "--functions") == 0) {
        options->functions = value;
        return true;
    }
    if (strcmp(name, "--calls") == 0) {
        options->watched = true;
        options->calls = value;
        return true;
    }
    if (strcmp(name, "--returns") == 0) {
        options->returns = value;
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

bool htvm_iss_parse_command_line(iss_t *iss, options_t *options, int argc, char **argv)
{
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--step-polls") == 0) {
            iss->step_polls = true;
        } else if (argv[i][0] == '-' && argv[i][1] == '-') {
            if (i + 1 == argc) {
                htvm_iss_complain("value is missing", argv[i]);
                return false;
            }
            if (!parse_option(iss, options, argv[i], argv[i + 1])) {
                htvm_iss_complain("unknown option, or its value is not understood", argv[i]);
                return false;
            }
            ++i;
        } else if (options->elf == NULL) {
            options->elf = argv[i];
        } else {
            htvm_iss_complain("one program at a time", argv[i]);
            return false;
        }
    }
    if (options->elf == NULL) {
        htvm_iss_complain("FILE.elf is missing", "usage");
        return false;
    }
    if ((options->calls == NULL) != (options->returns == NULL)) {
        htvm_iss_complain("one of them is missing", "--calls, --returns");
        return false;
    }
    return true;
}
