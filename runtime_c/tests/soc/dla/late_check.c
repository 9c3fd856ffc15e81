/* Assembles the regions of a file, with sanitizers, and compares words with those expected.  The
 * file has cases, each: nine numbers of the design, and the lengths of JSON, weights and words
 * (uint32), then these.  Every arena is allocated exactly, so that an access outside ends the run;
 * smaller ones must say what they need. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dla_late.h"

static void *read_exactly(FILE *file, size_t bytes)
{
    void *data = malloc(bytes > 0 ? bytes : 1);
    if (data == NULL || fread(data, 1, bytes, file) != bytes) {
        fprintf(stderr, "the file of cases is too short\n");
        exit(2);
    }
    return data;
}

static int32_t try_arena(const char *json, size_t json_bytes, const uint8_t *weights,
                         size_t weights_bytes, const dla_late_design_t *design, size_t bytes,
                         const uint32_t *words, size_t count, dla_late_t *late)
{
    void *arena = malloc(bytes > 0 ? bytes : 1);
    const int32_t code =
        dla_late_assemble(json, json_bytes, weights, weights_bytes, design, arena, bytes, late);
    if (code == 0 && (late->word_count != count || memcmp(late->words, words, 4 * count) != 0)) {
        fprintf(stderr, "the words differ\n");
        exit(1);
    }
    free(arena);
    return code;
}

int main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    uint32_t head[12];
    unsigned cases = 0;
    while (file != NULL && fread(head, sizeof head, 1, file) == 1) {
        dla_late_design_t design;
        memcpy(&design, head, sizeof design);
        char *json = read_exactly(file, head[9]);
        uint8_t *weights = read_exactly(file, head[10]);
        uint32_t *words = read_exactly(file, 4u * (size_t)head[11]);
        dla_late_t late;
        size_t bytes = 0;
        unsigned attempts = 0;
        int32_t code = DLA_LATE_TABLES;
        while ((code == DLA_LATE_TABLES || code == DLA_LATE_ARENA) && attempts++ < 3) {
            code = try_arena(json, head[9], weights, head[10], &design, bytes, words, head[11],
                             &late);
            if (code != 0 && late.needed > bytes + 4) {
                const size_t needed = late.needed;
                for (size_t less = 4; less <= 12 && needed >= less; less += 4) {
                    const int32_t again = try_arena(json, head[9], weights, head[10], &design,
                                                    needed - less, words, head[11], &late);
                    if (again != DLA_LATE_TABLES && again != DLA_LATE_ARENA) {
                        fprintf(stderr, "case %u: an arena too small gives %" PRId32 "\n", cases,
                                again);
                        return 1;
                    }
                }
                bytes = needed;
            }
        }
        if (code != 0) {
            fprintf(stderr, "case %u: code %" PRId32 " at %" PRIu64 "\n", cases, code, late.at);
            return 1;
        }
        for (size_t length = 0; length < head[9]; length += 7) {
            char *part = malloc(length > 0 ? length : 1);
            memcpy(part, json, length);
            code = try_arena(part, length, weights, head[10], &design, bytes, words, head[11],
                             &late);
            free(part);
            if (code != DLA_LATE_TRUNCATED) {
                fprintf(stderr, "case %u: %zu bytes of JSON give %" PRId32 "\n", cases, length,
                        code);
                return 1;
            }
        }
        free(json);
        free(weights);
        free(words);
        ++cases;
    }
    printf("%u cases\n", cases);
    return file != NULL && fclose(file) == 0 ? 0 : 2;
}
