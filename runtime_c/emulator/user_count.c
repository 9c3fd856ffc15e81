/* Plugin of QEMU's user mode: counts instructions, and notes the count at each entry of watched code.
 *
 * Arguments: ranges=FILE, pairs of first address and that behind the last, 64 bits each; notes=FILE,
 * to which pairs of address and count are written; limit=NUMBER, from which on the process is ended.
 * The declarations are of functions that versions 1 and 2 of QEMU's interface both have; its header is
 * not installed with it.  QEMU up to 8 takes version 1, from 9 on version 2. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t plugin_id_t;
struct qemu_plugin_tb;
typedef void (*translated_t)(plugin_id_t, struct qemu_plugin_tb *);
typedef void (*executed_t)(unsigned int, void *);
typedef void (*ended_t)(plugin_id_t, void *);

#ifndef HTVM_PLUGIN_VERSION
#define HTVM_PLUGIN_VERSION 1
#endif

extern int qemu_plugin_version;
int qemu_plugin_version = HTVM_PLUGIN_VERSION;
int qemu_plugin_install(plugin_id_t id, const void *info, int number, char **arguments);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id_t id, translated_t call);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, executed_t call, int flags,
                                          void *data);
void qemu_plugin_register_atexit_cb(plugin_id_t id, ended_t call, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);

typedef struct {
    uint64_t address, instructions;
    int watched;
} block_t;

enum { MOST_RANGES = 65536, TOO_MANY = 75 };

static uint64_t ranges[MOST_RANGES][2];
static size_t range_number;
static uint64_t executed, limit = UINT64_MAX;
static FILE *notes;

static void on_executed(unsigned int core, void *data)
{
    const block_t *const block = data;
    (void)core;
    if (block->watched) {
        const uint64_t note[2] = {block->address, executed};
        fwrite(note, sizeof note, 1, notes);
    }
    executed += block->instructions;
    if (executed > limit) {
        fclose(notes);
        _Exit(TOO_MANY);
    }
}

/* A block stays for the whole run: QEMU does not say when it forgets one. */
static void on_translated(plugin_id_t id, struct qemu_plugin_tb *translated)
{
    block_t *const block = malloc(sizeof *block);
    (void)id;
    if (block == NULL) {
        abort();
    }
    block->address = qemu_plugin_tb_vaddr(translated);
    block->instructions = qemu_plugin_tb_n_insns(translated);
    block->watched = 0;
    for (size_t i = 0; i < range_number; i++) {
        block->watched |= ranges[i][0] <= block->address && block->address < ranges[i][1];
    }
    qemu_plugin_register_vcpu_tb_exec_cb(translated, on_executed, 0, block);
}

static void on_end(plugin_id_t id, void *data)
{
    (void)id;
    (void)data;
    fclose(notes);
}

int qemu_plugin_install(plugin_id_t id, const void *info, int number, char **arguments)
{
    (void)info;
    for (int i = 0; i < number; i++) {
        const char *const value = strchr(arguments[i], '=');
        if (value == NULL) {
            return 1;
        }
        if (strncmp(arguments[i], "ranges=", 7) == 0) {
            FILE *const file = fopen(value + 1, "rb");
            if (file == NULL) {
                return 1;
            }
            range_number = fread(ranges, sizeof ranges[0], MOST_RANGES, file);
            fclose(file);
        } else if (strncmp(arguments[i], "notes=", 6) == 0) {
            notes = fopen(value + 1, "wb");
        } else if (strncmp(arguments[i], "limit=", 6) == 0) {
            limit = strtoull(value + 1, NULL, 10);
        }
    }
    if (notes == NULL) {
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
    qemu_plugin_register_atexit_cb(id, on_end, NULL);
    return 0;
}
