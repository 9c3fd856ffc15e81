/* Logging of events and complaints, shared by the device models of all SoCs. */
#include "htvm_soc_log.h"

#include <inttypes.h>
#include <stdlib.h>

void htvm_log_free(htvm_log_t *log)
{
    free(log->events);
    *log = (htvm_log_t){0};
}

void htvm_log_event(htvm_log_t *log, htvm_event_t event)
{
    if (log->count == log->room) {
        const size_t room = log->room == 0 ? 256 : 2 * log->room;
        htvm_event_t *grown = realloc(log->events, room * sizeof *grown);
        if (grown == NULL) {
            if (!log->complained) {
                log->complained = true;
                snprintf(log->complaint, sizeof log->complaint,
                         "no memory on the simulating machine for %zu events", room);
            }
            return;
        }
        log->events = grown;
        log->room = room;
    }
    log->events[log->count++] = event;
}

void htvm_log_complaint(htvm_log_t *log, const char *device, const char *format, va_list arguments)
{
    if (log->complained) {
        return;
    }
    log->complained = true;
    const int used = snprintf(log->complaint, sizeof log->complaint, "%s: ", device);
    vsnprintf(log->complaint + used, sizeof log->complaint - (size_t)used, format, arguments);
}

const char *htvm_log_error(const htvm_log_t *log)
{
    return log->complained ? log->complaint : NULL;
}

static void print_rows(FILE *out, const char *name, const htvm_rows_t *rows)
{
    if (rows->bytes != 0) {
        fprintf(out,
                ",\"%s\":[%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]", name,
                rows->rows, rows->row_stride, rows->pixels, rows->pixel_stride, rows->bytes);
    }
}

void htvm_log_print(const htvm_log_t *log, FILE *out)
{
    for (size_t i = 0; i < log->count; i++) {
        const htvm_event_t *e = &log->events[i];
        fprintf(out,
                "{\"unit\":\"%s\",\"start\":%" PRIu64 ",\"end\":%" PRIu64
                ",\"what\":\"%s\",\"bytes\":%" PRIu64 ",\"macs\":%" PRIu64 ",\"array\":%" PRIu64
                ",\"weights\":%" PRIu64 ",\"issued\":%" PRIu64 ",\"from\":%" PRIu32
                ",\"to\":%" PRIu32 ",\"written\":%" PRIu64,
                e->unit, e->start, e->end, e->what, e->bytes, e->macs, e->array, e->weights,
                e->issued, e->from, e->to, e->written);
        print_rows(out, "from_rows", &e->from_rows);
        print_rows(out, "to_rows", &e->to_rows);
        fprintf(out, "}\n");
    }
}
