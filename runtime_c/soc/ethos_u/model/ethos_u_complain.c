/* Ethos-U: complaints as text, without a standard library. */
#include "ethos_u_model.h"

#include <stdarg.h>

typedef struct {
    char *text;
    size_t used, room; /* one character is kept for the end */
} line_t;

static void put(line_t *line, char c)
{
    if (line->used < line->room) {
        line->text[line->used++] = c;
    }
}

static void put_text(line_t *line, const char *text)
{
    while (*text != '\0') {
        put(line, *text++);
    }
}

static void put_number(line_t *line, uint64_t value, uint32_t base)
{
    char digits[24];
    uint32_t count = 0;
    do {
        digits[count++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value != 0);
    while (count != 0) {
        put(line, digits[--count]);
    }
}

static void put_field(line_t *line, char kind, va_list *arguments)
{
    if (kind == 's') {
        put_text(line, va_arg(*arguments, const char *));
    } else if (kind == 'u') {
        put_number(line, va_arg(*arguments, uint32_t), 10);
    } else if (kind == 'd') {
        const int32_t value = va_arg(*arguments, int32_t);
        if (value < 0) {
            put(line, '-');
        }
        put_number(line, value < 0 ? 0u - (uint32_t)value : (uint32_t)value, 10);
    } else if (kind == 'l') {
        put_number(line, va_arg(*arguments, uint64_t), 10);
    } else if (kind == 'x') {
        put_text(line, "0x");
        put_number(line, va_arg(*arguments, uint64_t), 16);
    }
}

bool ethos_u_complain(ethos_u_t *npu, htvm_ethos_u_status_t status, const char *format, ...)
{
    if (ethos_u_failed(npu)) {
        return false;
    }
    npu->status = status;
    line_t line = {npu->result->complaint, 0, sizeof npu->result->complaint - 1u};
    if (npu->operation != NULL) {
        put_text(&line, npu->operation);
        put_text(&line, " (word ");
        put_number(&line, npu->command, 10);
        put_text(&line, "): ");
    }
    va_list arguments;
    va_start(arguments, format);
    for (; *format != '\0'; ++format) {
        if (*format == '%' && format[1] != '\0') {
            put_field(&line, *++format, &arguments);
        } else {
            put(&line, *format);
        }
    }
    va_end(arguments);
    line.text[line.used] = '\0';
    return false;
}
