/* dla: reading JSON in place, without memory of its own; only what regions consist of. */
#ifndef DLA_LATE_JSON_H
#define DLA_LATE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *start, *at, *end;
    int32_t code; /* the first error; nothing is read after it */
} dla_json_t;

/* A string between its quotes, escapes as they are. */
typedef struct {
    const char *text;
    size_t bytes;
} dla_json_text_t;

/* All of these return false after an error. */

/* Notes an error, if it is the first; returns false. */
bool dla_json_fail(dla_json_t *r, int32_t code);
void dla_json_space(dla_json_t *r);
/* Whether the next character is this one, which is then passed. */
bool dla_json_next(dla_json_t *r, char wanted);
bool dla_json_expect(dla_json_t *r, char wanted);
bool dla_json_string(dla_json_t *r, dla_json_text_t *found);
bool dla_json_number(dla_json_t *r, int64_t low, int64_t high, int64_t *value);
bool dla_json_whole(dla_json_t *r, int64_t high, uint32_t *value);
/* A list of exactly `count` numbers. */
bool dla_json_list(dla_json_t *r, uint32_t count, int64_t low, int64_t high, int64_t *values);
/* The same with at most four numbers of 15 bits. */
bool dla_json_wholes(dla_json_t *r, uint32_t count, uint32_t *values);
/* Passes a value of any kind, whose structure it checks. */
bool dla_json_skip(dla_json_t *r, uint32_t depth);
bool dla_json_is(dla_json_text_t text, const char *word);

#endif
