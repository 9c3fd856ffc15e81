/* dla: reading JSON in place; see dla_late_json.h. */
#include "dla_late_json.h"

#include <string.h>

#include "dla_late.h"

enum { DEEPEST = 8 };

bool dla_json_fail(dla_json_t *r, int32_t code)
{
    if (r->code == 0) {
        r->code = r->at >= r->end && code == DLA_LATE_SYNTAX ? DLA_LATE_TRUNCATED : code;
    }
    return false;
}

void dla_json_space(dla_json_t *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r')) {
        ++r->at;
    }
}

bool dla_json_next(dla_json_t *r, char wanted)
{
    dla_json_space(r);
    if (r->code != 0 || r->at >= r->end || *r->at != wanted) {
        return false;
    }
    ++r->at;
    return true;
}

bool dla_json_expect(dla_json_t *r, char wanted)
{
    return dla_json_next(r, wanted) || dla_json_fail(r, DLA_LATE_SYNTAX);
}

static bool one_of(char found, const char *characters)
{
    while (*characters != '\0' && *characters != found) {
        ++characters;
    }
    return *characters != '\0';
}

/* Goes to the last character of an escape. */
static bool escape(dla_json_t *r)
{
    if (++r->at == r->end) {
        return dla_json_fail(r, DLA_LATE_TRUNCATED);
    }
    if (!one_of(*r->at, "\"\\/bfnrtu")) {
        return dla_json_fail(r, DLA_LATE_SYNTAX);
    }
    for (uint32_t digits = *r->at == 'u' ? 4 : 0; digits > 0; --digits) {
        if (++r->at == r->end) {
            return dla_json_fail(r, DLA_LATE_TRUNCATED);
        }
        if (!one_of(*r->at, "0123456789abcdefABCDEF")) {
            return dla_json_fail(r, DLA_LATE_SYNTAX);
        }
    }
    return true;
}

bool dla_json_string(dla_json_t *r, dla_json_text_t *found)
{
    if (!dla_json_expect(r, '"')) {
        return false;
    }
    found->text = r->at;
    for (; r->at < r->end && *r->at != '"'; ++r->at) {
        if ((unsigned char)*r->at < 0x20) {
            return dla_json_fail(r, DLA_LATE_SYNTAX);
        }
        if (*r->at == '\\' && !escape(r)) {
            return false;
        }
    }
    if (r->at >= r->end) {
        return dla_json_fail(r, DLA_LATE_TRUNCATED);
    }
    found->bytes = (size_t)(r->at++ - found->text);
    return true;
}

bool dla_json_number(dla_json_t *r, int64_t low, int64_t high, int64_t *value)
{
    dla_json_space(r);
    const bool negative = dla_json_next(r, '-');
    const char *const begin = r->at;
    int64_t found = 0;
    uint32_t digits = 0;
    while (r->code == 0 && r->at < r->end && *r->at >= '0' && *r->at <= '9') {
        found = 10 * found + (*r->at++ - '0');
        if (++digits > 12) {
            return dla_json_fail(r, DLA_LATE_FIELD);
        }
        if (digits > 1 && *begin == '0') {
            return dla_json_fail(r, DLA_LATE_SYNTAX);
        }
    }
    if (digits == 0) {
        return dla_json_fail(r, DLA_LATE_SYNTAX);
    }
    if (r->at < r->end && (*r->at == '.' || *r->at == 'e' || *r->at == 'E')) {
        return dla_json_fail(r, DLA_LATE_FIELD);
    }
    *value = negative ? -found : found;
    return (*value >= low && *value <= high) || dla_json_fail(r, DLA_LATE_FIELD);
}

bool dla_json_whole(dla_json_t *r, int64_t high, uint32_t *value)
{
    int64_t found = 0;
    const bool read = dla_json_number(r, 0, high, &found);
    *value = (uint32_t)found;
    return read;
}

bool dla_json_is(dla_json_text_t span, const char *word)
{
    return span.bytes == strlen(word) && memcmp(span.text, word, span.bytes) == 0;
}

/* Passes a number, true, false or null, which other schemas may have. */
static bool skip_word(dla_json_t *r)
{
    static const char CHARACTERS[] = "+-.0123456789abcdefghijklmnopqrstuvwxyzE";
    const char *const begin = r->at;
    while (r->at < r->end && one_of(*r->at, CHARACTERS)) {
        ++r->at;
    }
    return r->at > begin || dla_json_fail(r, DLA_LATE_SYNTAX);
}

bool dla_json_skip(dla_json_t *r, uint32_t depth)
{
    dla_json_text_t ignored;
    dla_json_space(r);
    if (r->code != 0 || r->at >= r->end) {
        return dla_json_fail(r, DLA_LATE_SYNTAX);
    }
    const char first = *r->at;
    if (first == '"') {
        return dla_json_string(r, &ignored);
    }
    if (first != '{' && first != '[') {
        return skip_word(r);
    }
    if (depth == DEEPEST) {
        return dla_json_fail(r, DLA_LATE_SYNTAX);
    }
    const char last = first == '{' ? '}' : ']';
    ++r->at;
    if (dla_json_next(r, last)) {
        return true;
    }
    do {
        if (first == '{' && !(dla_json_string(r, &ignored) && dla_json_expect(r, ':'))) {
            return false;
        }
        if (!dla_json_skip(r, depth + 1)) {
            return false;
        }
    } while (dla_json_next(r, ','));
    return dla_json_expect(r, last);
}

bool dla_json_list(dla_json_t *r, uint32_t count, int64_t low, int64_t high, int64_t *values)
{
    if (!dla_json_expect(r, '[')) {
        return false;
    }
    for (uint32_t i = 0; i < count; ++i) {
        if (i > 0 && !dla_json_next(r, ',')) {
            return dla_json_fail(r, DLA_LATE_FIELD);
        }
        if (!dla_json_number(r, low, high, &values[i])) {
            return false;
        }
    }
    return dla_json_next(r, ']') || dla_json_fail(r, DLA_LATE_FIELD);
}

bool dla_json_wholes(dla_json_t *r, uint32_t count, uint32_t *values)
{
    int64_t found[4] = {0};
    const bool read = dla_json_list(r, count, 0, 0x7fff, found);
    for (uint32_t i = 0; i < count; ++i) {
        values[i] = (uint32_t)found[i];
    }
    return read;
}
