/* Ethos-U: a payload of driver actions, as Arm's core driver takes it. */
#include "ethos_u_model.h"

enum {
    MAGIC = 0x31504f43, /* "COP1" */
    ACTION_CONFIGURATION = 1,
    ACTION_STREAM = 2,
    ACTION_NOP = 5,
    CONFIGURATION_WORDS = 3,
};

static bool complain(ethos_u_t *npu, htvm_ethos_u_status_t status, const char *text)
{
    return ethos_u_complain(npu, status, "%s", text);
}

static bool is_aligned(const void *pointer) { return (uintptr_t)pointer % 16u == 0; }

static bool check_call(ethos_u_t *npu)
{
    const htvm_ethos_u_call_t *const call = npu->call;
    if (call->regions > HTVM_ETHOS_U_REGIONS) {
        return complain(npu, HTVM_ETHOS_U_BAD_CALL, "there are at most eight regions");
    }
    if (call->regions != 0 && (call->base == NULL || call->bytes == NULL)) {
        return complain(npu, HTVM_ETHOS_U_BAD_CALL, "regions need bases and sizes");
    }
    if (call->payload == NULL || !is_aligned(call->payload)) {
        return complain(npu, HTVM_ETHOS_U_BAD_CALL,
                        "the payload's address is not a multiple of 16");
    }
    for (uint32_t i = 0; i < call->regions; ++i) {
        if (!is_aligned(call->base[i])) {
            return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_CALL,
                                    "the base of region %u is not a multiple of 16: %x", i,
                                    (uint64_t)(uintptr_t)call->base[i]);
        }
    }
    return true;
}

/* What the NPU is: words 1 and 2 of the action. */
static bool configure(ethos_u_t *npu, uint32_t word)
{
    const htvm_ethos_u_call_t *const call = npu->call;
    const uint32_t macs = word & 15u, kilobytes = word >> 8 & 0xffu, product = word >> 28;
    const uint32_t expected = macs == 5 || macs == 6 ? 16 : macs == 7 ? 24 : 48;
    if (macs < 5 || macs > 8 || kilobytes != expected || product > 1 ||
        (product == 1 && macs != 8)) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_PAYLOAD,
                                "the configuration %x is no Ethos-U55 and no Ethos-U65 with one "
                                "core",
                                (uint64_t)word);
    }
    npu->macs = 1u << macs;
    npu->shram = kilobytes * 1024u;
    npu->product = product == 1 ? 65 : 55;
    if ((call->macs != 0 && call->macs != npu->macs) ||
        (call->product != 0 && call->product != npu->product)) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_PAYLOAD,
                                "the payload is for an Ethos-U%u-%u, the NPU is an Ethos-U%u-%u",
                                npu->product, npu->macs,
                                call->product != 0 ? call->product : npu->product,
                                call->macs != 0 ? call->macs : npu->macs);
    }
    return true;
}

static bool run_stream(ethos_u_t *npu, const uint8_t *words, uint32_t left, uint32_t action,
                       uint32_t *count)
{
    *count = action >> 16 | (action & 0xff00u) << 8;
    if (*count > left) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_PAYLOAD,
                                "a command stream of %u words, of which the payload has %u", *count,
                                left);
    }
    if (npu->macs == 0) {
        return complain(npu, HTVM_ETHOS_U_BAD_PAYLOAD,
                        "no configuration before the command stream");
    }
    if (!is_aligned(words)) {
        return complain(npu, HTVM_ETHOS_U_BAD_PAYLOAD,
                        "the command stream's address is not a multiple of 16");
    }
    const bool done = ethos_u_execute(npu, words, *count);
    npu->operation = NULL;
    return done;
}

static bool run_actions(ethos_u_t *npu)
{
    const uint8_t *const payload = npu->call->payload;
    const size_t words = npu->call->payload_bytes / 4u;
    if (npu->call->payload_bytes % 4u != 0 || words == 0 || words > UINT32_MAX ||
        ethos_u_read_word(payload) != MAGIC) {
        return complain(npu, HTVM_ETHOS_U_BAD_PAYLOAD, "the payload does not begin with COP1");
    }
    bool any = false;
    for (uint32_t at = 1; at < words;) {
        const uint32_t action = ethos_u_read_word(payload + (size_t)at * 4u);
        const uint32_t left = (uint32_t)words - at;
        if ((action & 0xffu) == ACTION_CONFIGURATION && left >= CONFIGURATION_WORDS) {
            if (!configure(npu, ethos_u_read_word(payload + ((size_t)at + 1u) * 4u))) {
                return false;
            }
            at += CONFIGURATION_WORDS;
        } else if ((action & 0xffu) == ACTION_STREAM) {
            uint32_t count = 0;
            if (!run_stream(npu, payload + ((size_t)at + 1u) * 4u, left - 1u, action, &count)) {
                return false;
            }
            any = true;
            at += 1u + count;
        } else if ((action & 0xffu) == ACTION_NOP) {
            ++at;
        } else {
            return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_PAYLOAD,
                                    "word %u, %x, is no driver action", at, (uint64_t)action);
        }
    }
    return any || complain(npu, HTVM_ETHOS_U_BAD_PAYLOAD, "the payload has no command stream");
}

htvm_ethos_u_status_t htvm_ethos_u_run(const htvm_ethos_u_call_t *call,
                                       htvm_ethos_u_result_t *result)
{
    *result = (htvm_ethos_u_result_t){.commands = 0};
    ethos_u_t *const npu = call->workspace;
    if (npu == NULL || !is_aligned(npu) || call->workspace_bytes < HTVM_ETHOS_U_WORKSPACE_LEAST) {
        ethos_u_t none = {.result = result};
        complain(&none, HTVM_ETHOS_U_BAD_CALL, "the workspace is unaligned or too small");
        return none.status;
    }
    *npu = (ethos_u_t){.call = call, .result = result};
    const size_t state = (sizeof *npu + 15u) / 16u * 16u;
    npu->scratch = (uint8_t *)call->workspace + state;
    npu->scratch_bytes = call->workspace_bytes - state;
    if (check_call(npu) && ethos_u_written_begin(npu)) {
        run_actions(npu);
    }
    return npu->status;
}
