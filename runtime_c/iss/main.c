/* One run: loads a program into the machine of the command line (options.h), runs it, and writes
 * down what was asked for.
 *
 * Ends with 0 if the program reached its exit (its code is in the report), 1 if it trapped, 2 if it
 * could not be started.
 */
#include "harts.h"
#include "options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RAN = 0, TRAPPED = 1, UNUSABLE = 2 };

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
        htvm_iss_complain("cannot be opened", path);
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
    htvm_iss_complain("cannot be read", path);
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
        htvm_iss_complain(problem, path);
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
        htvm_iss_complain("does not fit into RAM at the address given", what->path);
    }
    free(file);
    return memory != NULL;
}

static bool peek(iss_t *iss, const transfer_t *what)
{
    const uint8_t *memory = htvm_iss_bus_map(&iss->bus, what->addr, what->size);
    if (memory == NULL) {
        htvm_iss_complain("that memory is not in RAM", what->path);
        return false;
    }
    FILE *file = fopen(what->path, "wb");
    bool good = file != NULL && fwrite(memory, 1, what->size, file) == what->size;
    good = file != NULL && fclose(file) == 0 && good;
    if (!good) {
        htvm_iss_complain("cannot be written", what->path);
    }
    return good;
}

static bool write_events(const iss_t *iss, const char *path)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        htvm_iss_complain("cannot be written", path);
        return false;
    }
    htvm_soc_events(iss->bus.soc, file);
#ifdef HTVM_ISS_HARTS
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
        htvm_iss_complain(htvm_soc_error(iss->bus.soc), "--set");
        return false;
    }
    return true;
}

/* Runs the program on the core or cores there are. */
static int execute(iss_t *iss, const options_t *options)
{
#ifdef HTVM_ISS_HARTS
    iss->harts = htvm_harts_new(iss, options->harts);
    if (iss->harts == NULL) {
        htvm_iss_complain(iss->trap, "--harts");
        return UNUSABLE;
    }
    return (options->watched ? htvm_harts_run_watched : htvm_harts_run)(iss->harts) ? RAN : TRAPPED;
#else
    if (options->harts != 1) {
        htvm_iss_complain("this machine's core is alone", "--harts");
        return UNUSABLE;
    }
    return (options->watched ? htvm_iss_run_watched(iss) : htvm_iss_run(iss)) ? RAN : TRAPPED;
#endif
}

/* Opens a file to write to, if there is a path; false after a complaint. */
static bool open_output(FILE **file, const char *path)
{
    *file = path != NULL ? fopen(path, "wb") : NULL;
    if (path != NULL && *file == NULL) {
        htvm_iss_complain("cannot be written", path);
    }
    return path == NULL || *file != NULL;
}

/* Closes it; false, after a complaint, if not all is there. */
static bool close_output(FILE *file, const char *path, bool failed)
{
    if (file != NULL && (fclose(file) != 0 || failed)) {
        htvm_iss_complain("cannot be written, or a range is no memory", path);
        return false;
    }
    return true;
}

/* Reads what whoever looks asked for, and opens the files for what is seen. */
static bool begin_look(iss_t *iss, options_t *options)
{
    watch_t *const watch = &options->watch;
    size_t size;
    if (options->functions != NULL) {
        watch->functions = read_file(options->functions, &size);
        if (watch->functions == NULL) {
            return false;
        }
        watch->function_count = size / 4;
    }
    if (options->calls != NULL) {
        watch->returns.list = read_file(options->calls, &size);
        watch->returns.count = size / (4 * WORDS_OF_CALL);
        watch->returns.cycles = calloc(watch->returns.count + 1, sizeof(uint64_t));
        watch->returns.bus = &iss->bus;
        if (watch->returns.list == NULL || watch->returns.cycles == NULL) {
            return false;
        }
    }
    if (options->watched) {
        iss->watch = watch;
    }
    return open_output(&iss->bus.snapshot_file, options->snapshots) &&
           open_output(&watch->returns.file, options->returns);
}

static bool end_look(iss_t *iss, const options_t *options)
{
    const returns_t *const returns = &options->watch.returns;
    const bool snapshots =
        close_output(iss->bus.snapshot_file, options->snapshots, iss->bus.snapshot_failed);
    return close_output(returns->file, options->returns, returns->failed) && snapshots;
}

/* Runs the program, and lets look at it whoever asked for that. */
static int run(iss_t *iss, options_t *options)
{
    const int ended = begin_look(iss, options) ? execute(iss, options) : UNUSABLE;
    return end_look(iss, options) ? ended : UNUSABLE;
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
        htvm_iss_complain(iss->trap, options->elf);
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
        htvm_iss_complain("cannot be written", options->report);
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
    if (htvm_iss_parse_command_line(&iss, &options, argc, argv) &&
        (iss.bus.ram_count > 0 || bare_machine(&iss.bus))) {
        const htvm_bus_t bus = {&iss.bus, htvm_iss_bus_map};
        iss.bus.soc = htvm_soc_new(&bus);
        if (iss.bus.soc != NULL) {
            result = simulate(&iss, &options);
            htvm_soc_free(iss.bus.soc);
        } else {
            htvm_iss_complain("out of memory", "soc");
        }
    }
#ifdef HTVM_ISS_HARTS
    htvm_harts_free(iss.harts);
#endif
    free(options.watch.functions);
    free(options.watch.returns.list);
    free(options.watch.returns.cycles);
    htvm_iss_bus_free(&iss.bus);
    return result;
}
