/* Ethos-U: where the elements of a feature map lie. */
#include "ethos_u_model.h"

/* Bytes from a pixel to the next of its row. */
static int64_t pixel_stride(const ethos_u_map_t *map)
{
    return map->bricks ? (int64_t)ETHOS_U_BRICK * map->element : map->stride_x;
}

/* Bytes from a pixel's first element to a channel. */
static int64_t channel_offset(const ethos_u_map_t *map, uint32_t c)
{
    if (map->bricks) {
        return (int64_t)(c / ETHOS_U_BRICK) * map->stride_c +
               (int64_t)(c % ETHOS_U_BRICK) * map->element;
    }
    return (int64_t)c * map->element;
}

/* First byte of a pixel. */
static int64_t pixel_offset(const ethos_u_map_t *map, uint32_t y, uint32_t x)
{
    const bool right = x >= map->width0;
    const uint32_t height = right ? map->height1 : map->height0;
    const bool low = y >= height;
    const int64_t row = low ? y - height : y, column = right ? x - map->width0 : x;
    return (int64_t)map->base[(low ? 2 : 0) + (right ? 1 : 0)] + row * map->stride_y +
           column * pixel_stride(map);
}

uint64_t ethos_u_offset(const ethos_u_map_t *map, uint32_t y, uint32_t x, uint32_t c)
{
    return (uint64_t)(pixel_offset(map, y, x) + channel_offset(map, c));
}

/* ---- reading registers ---- */

static bool read_precision(ethos_u_t *npu, uint32_t kind, ethos_u_map_t *map)
{
    const bool ofm = kind == ETHOS_U_OFM;
    const uint32_t value = ethos_u_get(npu, ofm                   ? ETHOS_U_OFM_PRECISION
                                            : kind == ETHOS_U_IFM ? ETHOS_U_IFM_PRECISION
                                                                  : ETHOS_U_IFM2_PRECISION);
    const uint32_t size = value >> (ofm ? 1 : 2) & 3u, format = value >> 6 & 3u;
    map->is_signed = (value & 1u) != 0;
    map->element = 1u << size;
    map->bricks = format == 1;
    if (size > 2 || format > 1) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "%s_PRECISION = %x: no such %s", map->name, (uint64_t)value,
                                size > 2 ? "element size" : "format");
    }
    return !ethos_u_failed(npu);
}

static uint32_t read_zero_point(ethos_u_t *npu, uint32_t kind)
{
    return ethos_u_get(npu, kind == ETHOS_U_OFM ? (uint32_t)ETHOS_U_OFM_ZERO_POINT
                                                : kind + ETHOS_U_ZERO_POINT);
}

static bool check_alignment(ethos_u_t *npu, const ethos_u_map_t *map)
{
    const uint32_t unit = map->bricks ? ETHOS_U_BRICK : map->element;
    for (uint32_t i = 0; i < 4; ++i) {
        if (map->base[i] % unit != 0) {
            return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                    "%s_BASE%u = %x is not a multiple of %u", map->name, i,
                                    map->base[i], unit);
        }
    }
    const int64_t other = map->bricks ? map->stride_c : map->stride_x;
    if (map->stride_y % (int64_t)unit != 0 || other % (int64_t)unit != 0) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "%s_STRIDE_Y = %x and _%s = %x are not multiples of %u", map->name,
                                (uint64_t)map->stride_y, map->bricks ? "C" : "X", (uint64_t)other,
                                unit);
    }
    return true;
}

/* Widens a range by a step in either direction. */
static void reach(int64_t step, int64_t *first, int64_t *last)
{
    if (step < 0) {
        *first += step;
    } else {
        *last += step;
    }
}

/* Whether so many rows and columns of a tile lie in the region of `bytes` bytes.  The last brick
 * counts with the bytes of a full one only if there is one. */
static bool tile_inside(ethos_u_t *npu, const ethos_u_map_t *map, uint32_t tile, uint32_t rows,
                        uint32_t columns, uint64_t bytes)
{
    if (rows == 0 || columns == 0) {
        return true;
    }
    int64_t first = (int64_t)map->base[tile], last = first;
    reach((int64_t)(rows - 1u) * map->stride_y, &first, &last);
    reach((int64_t)(columns - 1u) * pixel_stride(map), &first, &last);
    if (map->bricks) {
        reach((int64_t)((map->depth - 1u) / ETHOS_U_BRICK) * map->stride_c, &first, &last);
        last += (int64_t)ethos_u_min(map->depth, ETHOS_U_BRICK) * map->element;
    } else {
        last += (int64_t)map->depth * map->element;
    }
    if (first < 0 || (uint64_t)last > bytes) {
        return ethos_u_complain(
            npu, HTVM_ETHOS_U_BAD_STREAM,
            "the %s of %ux%ux%u leaves region %u of %l B: bytes %x to %x (%s_BASE%u)", map->name,
            map->height, map->width, map->depth, map->region, bytes, (uint64_t)first,
            (uint64_t)last, map->name, tile);
    }
    return true;
}

static bool inside(ethos_u_t *npu, const ethos_u_map_t *map, uint64_t bytes)
{
    const uint32_t left = ethos_u_min(map->width, map->width0), right = map->width - left;
    const uint32_t above = ethos_u_min(map->height, map->height0),
                   above_right = ethos_u_min(map->height, map->height1);
    return tile_inside(npu, map, 0, above, left, bytes) &&
           tile_inside(npu, map, 1, above_right, right, bytes) &&
           tile_inside(npu, map, 2, map->height - above, left, bytes) &&
           tile_inside(npu, map, 3, map->height - above_right, right, bytes);
}

bool ethos_u_map(ethos_u_t *npu, uint32_t kind, uint32_t height, uint32_t width, uint32_t depth,
                 ethos_u_map_t *map)
{
    const uint32_t base = kind == ETHOS_U_IFM   ? (uint32_t)ETHOS_U_IFM_BASE0
                          : kind == ETHOS_U_OFM ? (uint32_t)ETHOS_U_OFM_BASE0
                                                : (uint32_t)ETHOS_U_IFM2_BASE0;
    *map = (ethos_u_map_t){
        .name = kind == ETHOS_U_IFM ? "IFM" : kind == ETHOS_U_OFM ? "OFM" : "IFM2",
        .region = ethos_u_get(npu, kind + ETHOS_U_REGION),
        .width0 = ethos_u_get_size(npu, kind + ETHOS_U_WIDTH0_M1),
        .height0 = ethos_u_get_size(npu, kind + ETHOS_U_HEIGHT0_M1),
        .height1 = ethos_u_get_size(npu, kind + ETHOS_U_HEIGHT1_M1),
        .stride_x = ethos_u_get_stride(npu, base + ETHOS_U_STRIDE_X),
        .stride_y = ethos_u_get_stride(npu, base + ETHOS_U_STRIDE_Y),
        .stride_c = ethos_u_get_stride(npu, base + ETHOS_U_STRIDE_C),
        .height = height,
        .width = width,
        .depth = depth,
    };
    for (uint32_t i = 0; i < 4; ++i) {
        map->base[i] = ethos_u_get_address(npu, base + i);
    }
    if (!read_precision(npu, kind, map)) {
        return false;
    }
    const uint32_t zero = read_zero_point(npu, kind);
    map->zero_point = map->is_signed || map->element == 4 ? (int16_t)zero : (int32_t)zero;
    if (ethos_u_failed(npu) || (npu->call->checked && !check_alignment(npu, map))) {
        return false;
    }
    map->memory = ethos_u_memory(npu, map->name, map->region, 0, 1);
    return map->memory != NULL && inside(npu, map, npu->call->bytes[map->region]);
}

uint8_t *ethos_u_memory(ethos_u_t *npu, const char *what, uint32_t region, uint64_t first,
                        uint64_t bytes)
{
    if (region >= npu->call->regions || npu->call->base[region] == NULL) {
        ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM, "the %s is in region %u, which has no base",
                         what, region);
        return NULL;
    }
    const uint64_t size = npu->call->bytes[region];
    if (bytes > size || first > size - bytes) {
        ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                         "the %s leaves region %u of %l B: %l B from %x on", what, region, size,
                         bytes, first);
        return NULL;
    }
    return npu->call->base[region] + first;
}

/* ---- elements ---- */

static int32_t element(const uint8_t *at, uint32_t bytes, bool is_signed)
{
    if (bytes == 1) {
        return is_signed ? (int8_t)at[0] : (int32_t)at[0];
    }
    if (bytes == 2) {
        const uint16_t value = (uint16_t)(at[0] | (uint32_t)at[1] << 8);
        return is_signed ? (int16_t)value : (int32_t)value;
    }
    return (int32_t)ethos_u_read_word(at);
}

/* So many channels from c on lie beside each other: to the end of a brick. */
static uint32_t together(const ethos_u_map_t *map, uint32_t c, uint32_t count)
{
    return map->bricks ? ethos_u_min(count, ETHOS_U_BRICK - c % ETHOS_U_BRICK) : count;
}

void ethos_u_load(const ethos_u_map_t *map, uint32_t y, uint32_t x, uint32_t c, uint32_t count,
                  int32_t *out)
{
    const uint8_t *const pixel = map->memory + pixel_offset(map, y, x);
    while (count != 0) {
        const uint32_t run = together(map, c, count);
        const uint8_t *at = pixel + channel_offset(map, c);
        for (uint32_t i = 0; i < run; ++i, at += map->element) {
            /* A zero point has 16 bits; of 32-bit elements the difference wraps. */
            out[i] = (int32_t)((uint32_t)element(at, map->element, map->is_signed) -
                               (uint32_t)map->zero_point);
        }
        out += run;
        c += run;
        count -= run;
    }
}

void ethos_u_load_narrow(const ethos_u_map_t *map, uint32_t y, uint32_t x, uint32_t c,
                         uint32_t count, int16_t *out)
{
    const uint8_t *const pixel = map->memory + pixel_offset(map, y, x);
    const int32_t zero = map->zero_point;
    while (count != 0) {
        const uint32_t run = together(map, c, count);
        const uint8_t *const at = pixel + channel_offset(map, c);
        if (map->is_signed) {
            for (uint32_t i = 0; i < run; ++i) {
                out[i] = (int16_t)((int8_t)at[i] - zero);
            }
        } else {
            for (uint32_t i = 0; i < run; ++i) {
                out[i] = (int16_t)(at[i] - zero);
            }
        }
        out += run;
        c += run;
        count -= run;
    }
}

/* ---- runs of bytes ---- */

/* Columns x0 to x1 of a row, all in one tile. */
static bool row_runs(const ethos_u_map_t *map, uint32_t y, uint32_t x0, uint32_t x1,
                     const ethos_u_box_t *box, ethos_u_visit_t visit, void *context)
{
    if (x0 >= x1) {
        return true;
    }
    const int64_t row = pixel_offset(map, y, x0), step = pixel_stride(map);
    for (uint32_t c = box->c0; c < box->c1;) {
        const uint32_t run = together(map, c, box->c1 - c);
        const int64_t first = row + channel_offset(map, c), bytes = (int64_t)run * map->element;
        if (bytes == step) {
            if (!visit(context, (uint64_t)first, (uint64_t)((x1 - x0) * bytes))) {
                return false;
            }
        } else {
            for (uint32_t x = 0; x < x1 - x0; ++x) {
                if (!visit(context, (uint64_t)(first + x * step), (uint64_t)bytes)) {
                    return false;
                }
            }
        }
        c += run;
    }
    return true;
}

bool ethos_u_runs(const ethos_u_map_t *map, const ethos_u_box_t *box, ethos_u_visit_t visit,
                  void *context)
{
    const uint32_t left = ethos_u_min(box->x1, map->width0);
    const uint32_t right = box->x0 > map->width0 ? box->x0 : map->width0;
    for (uint32_t y = box->y0; y < box->y1; ++y) {
        if (!row_runs(map, y, box->x0, left, box, visit, context) ||
            !row_runs(map, y, right, box->x1, box, visit, context)) {
            return false;
        }
    }
    return true;
}
