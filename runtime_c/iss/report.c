/* The report of a run, as one JSON object. */
#include "harts.h"
#include "watch.h"

#include <inttypes.h>
#include <stdio.h>

static void write_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; ++text) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            fprintf(out, "\\%c", c);
        } else if (c < 0x20 || c > 0x7e) {
            fprintf(out, "\\u%04x", c);
        } else {
            fputc(c, out);
        }
    }
    fputc('"', out);
}

/* A word of the form (code << 16) | 0x3333 is a failure's code, 0x5555 success; other words are
 * the code themselves.  A failure whose code lost its upper bits is still one. */
static uint32_t exit_code(uint32_t word)
{
    const uint32_t kind = word & 0xffffu;
    if (kind == 0x3333u) {
        return word >> 16 != 0 ? word >> 16 : 1;
    }
    return kind == 0x5555u ? 0 : word;
}

bool htvm_iss_write_report(const iss_t *iss, const char *path)
{
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        return false;
    }
    fprintf(out, "{\"cycles\": %" PRIu64 ", \"instructions\": %" PRIu64 ",\n", iss->cycles,
            iss->retired);
    if (iss->bus.ended) {
        fprintf(out, " \"exit_code\": %" PRIu32 ",\n", exit_code(iss->bus.exit_word));
    } else {
        fprintf(out, " \"exit_code\": null,\n");
    }
    if (iss->has_stack) {
        fprintf(out, " \"stack_used\": %" PRIu32 ",\n", iss->stack_high - iss->lowest_sp);
    } else {
        fprintf(out, " \"stack_used\": null,\n");
    }
    fprintf(out, " \"pc\": %" PRIu32 ",\n \"trap\": ", iss->pc);
    if (iss->trap[0] == '\0') {
        fprintf(out, "null");
    } else {
        write_string(out, iss->trap);
    }
    fprintf(out, ",\n \"marks\": [");
    for (size_t i = 0; i < iss->bus.mark_count; ++i) {
        fprintf(out, "%s[%" PRIu64 ", %" PRIu32 "]", i == 0 ? "" : ", ", iss->bus.marks[i].cycle,
                iss->bus.marks[i].event);
    }
    fprintf(out, "]");
#ifdef HTVM_ISS_HARTS
    htvm_harts_report(iss->harts, out);
#endif
    if (iss->watch != NULL) {
        htvm_iss_watch_report(iss->watch, out);
    }
    fprintf(out, "}\n");
    const bool good = ferror(out) == 0;
    return fclose(out) == 0 && good;
}
