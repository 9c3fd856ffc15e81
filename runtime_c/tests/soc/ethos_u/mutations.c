/* Runs damaged command streams: each ends with a complaint, the same result or another one.
 *
 *   mutations COUNT SEED FILE...
 *
 * A file has, as 32-bit words: bytes of the payload, number of regions, bytes of each; then the
 * payload and the regions.  Sanitizers end the program if memory is left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "htvm_ethos_u.h"

enum { WORKSPACE = 256 * 1024, WORK = 200 * 1000 };

typedef struct {
    uint32_t payload_bytes, regions, bytes[HTVM_ETHOS_U_REGIONS];
    uint8_t *payload, *region[HTVM_ETHOS_U_REGIONS];
} case_t;

typedef struct {
    uint32_t complaints, equal, different;
} outcomes_t;

static uint32_t state;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return below == 0 ? 0 : state % below;
}

/* Exactly so many bytes: sanitizers see the byte behind them. */
static uint8_t *room(uint32_t bytes)
{
    void *at = NULL;
    if (posix_memalign(&at, 16, bytes == 0 ? 1 : bytes) != 0) {
        exit(2);
    }
    return at;
}

static uint8_t *copy(const uint8_t *from, uint32_t bytes)
{
    uint8_t *const to = room(bytes);
    memcpy(to, from, bytes);
    return to;
}

static void read_bytes(void *to, uint32_t bytes, FILE *file)
{
    if (fread(to, 1, bytes, file) != bytes) {
        exit(2);
    }
}

static case_t load(const char *path)
{
    case_t made = {0};
    FILE *const file = fopen(path, "rb");
    if (file == NULL) {
        exit(2);
    }
    read_bytes(&made.payload_bytes, 4, file);
    read_bytes(&made.regions, 4, file);
    if (made.regions > HTVM_ETHOS_U_REGIONS) {
        exit(2);
    }
    read_bytes(made.bytes, 4 * made.regions, file);
    made.payload = room(made.payload_bytes);
    read_bytes(made.payload, made.payload_bytes, file);
    for (uint32_t i = 0; i < made.regions; ++i) {
        made.region[i] = room(made.bytes[i]);
        read_bytes(made.region[i], made.bytes[i], file);
    }
    fclose(file);
    return made;
}

static void free_case(case_t *gone)
{
    free(gone->payload);
    for (uint32_t i = 0; i < gone->regions; ++i) {
        free(gone->region[i]);
    }
}

static case_t copy_case(const case_t *from)
{
    case_t to = *from;
    to.payload = copy(from->payload, from->payload_bytes);
    for (uint32_t i = 0; i < from->regions; ++i) {
        to.region[i] = copy(from->region[i], from->bytes[i]);
    }
    return to;
}

static void mutate(case_t *damaged)
{
    const uint32_t words = damaged->payload_bytes / 4, at = 4 * draw(words);
    uint8_t *const word = damaged->payload + at;
    uint32_t region;
    if (words == 0) {
        return;
    }
    switch (draw(6)) {
    case 0: /* a bit */
        word[draw(4)] ^= (uint8_t)(1u << draw(8));
        break;
    case 1: /* a parameter, mostly a small one */
        word[2] = (uint8_t)draw(draw(2) == 0 ? 4 : 256);
        word[3] = (uint8_t)(draw(3) == 0 ? draw(256) : 0);
        break;
    case 2: /* a byte */
        word[draw(4)] = (uint8_t)draw(256);
        break;
    case 3: /* a command less, such as a wait */
        memmove(word, word + 4, damaged->payload_bytes - at - 4);
        break;
    case 4: /* the end */
        damaged->payload_bytes = draw(4) == 0 ? draw(damaged->payload_bytes) : at;
        break;
    default: /* weights, scales, data */
        region = draw(damaged->regions);
        if (damaged->bytes[region] != 0) {
            damaged->region[region][draw(damaged->bytes[region])] = (uint8_t)draw(256);
        }
        break;
    }
}

static htvm_ethos_u_status_t run(case_t *from, uint8_t *workspace, bool checked,
                                 htvm_ethos_u_result_t *result)
{
    size_t bytes[HTVM_ETHOS_U_REGIONS];
    /* Payloads that were cut get memory of their own size, too. */
    uint8_t *const payload = copy(from->payload, from->payload_bytes);
    for (uint32_t i = 0; i < from->regions; ++i) {
        bytes[i] = from->bytes[i];
    }
    const htvm_ethos_u_range_t known = {1, 0, from->regions > 1 ? bytes[1] : 0};
    const htvm_ethos_u_call_t call = {
        .payload = payload,
        .payload_bytes = from->payload_bytes,
        .base = from->region,
        .bytes = bytes,
        .regions = from->regions,
        .checked = checked,
        .written = checked && from->regions > 1 && draw(2) == 0 ? &known : NULL,
        .written_count = 1,
        .work_limit = WORK,
        .workspace = workspace,
        .workspace_bytes = WORKSPACE,
    };
    const htvm_ethos_u_status_t status = htvm_ethos_u_run(&call, result);
    free(payload);
    return status;
}

static bool same(const case_t *a, const case_t *b)
{
    for (uint32_t i = 0; i < a->regions; ++i) {
        if (memcmp(a->region[i], b->region[i], a->bytes[i]) != 0) {
            return false;
        }
    }
    return true;
}

static void damage(const case_t *original, uint32_t count, uint8_t *workspace, outcomes_t *outcomes)
{
    htvm_ethos_u_result_t result;
    case_t right = copy_case(original);
    const htvm_ethos_u_status_t status = run(&right, workspace, false, &result);
    if (status != HTVM_ETHOS_U_DONE) {
        fprintf(stderr, "undamaged: %s\n", result.complaint);
        exit(1);
    }
    for (uint32_t i = 0; i < count; ++i) {
        case_t damaged = copy_case(original);
        for (uint32_t changes = 1 + draw(3); changes != 0; --changes) {
            mutate(&damaged);
        }
        const htvm_ethos_u_status_t found = run(&damaged, workspace, draw(4) != 0, &result);
        if ((found == HTVM_ETHOS_U_DONE) != (result.complaint[0] == '\0')) {
            fprintf(stderr, "status %d, complaint \"%s\"\n", (int)found, result.complaint);
            exit(1);
        }
        outcomes->complaints += found != HTVM_ETHOS_U_DONE;
        outcomes->equal += found == HTVM_ETHOS_U_DONE && same(&damaged, &right);
        outcomes->different += found == HTVM_ETHOS_U_DONE && !same(&damaged, &right);
        free_case(&damaged);
    }
    free_case(&right);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        return 2;
    }
    const uint32_t count = (uint32_t)strtoul(argv[1], NULL, 10);
    outcomes_t outcomes = {0};
    uint8_t *const workspace = room(WORKSPACE);
    state = (uint32_t)strtoul(argv[2], NULL, 10) | 1u;
    for (int i = 3; i < argc; ++i) {
        case_t original = load(argv[i]);
        damage(&original, count, workspace, &outcomes);
        free_case(&original);
    }
    free(workspace);
    printf("%u complaints, %u equal, %u different\n", (unsigned)outcomes.complaints,
           (unsigned)outcomes.equal, (unsigned)outcomes.different);
    return 0;
}
