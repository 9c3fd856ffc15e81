/* Ethos-U: how a kernel slides over the IFM; padding, dilation, upscaling. */
#include "ethos_u_model.h"

/* Rows that so many results need, less those of padding. */
static int64_t needed_size(uint32_t results, uint32_t stride, uint32_t kernel, uint32_t dilation,
                           uint32_t before, uint32_t behind)
{
    return (int64_t)(results - 1u) * stride + (int64_t)(kernel - 1u) * dilation + 1 - before -
           behind;
}

bool ethos_u_window(ethos_u_t *npu, uint32_t largest, ethos_u_window_t *window)
{
    const uint32_t stride = ethos_u_get(npu, ETHOS_U_KERNEL_STRIDE);
    const uint32_t dilation_x = (stride >> 3 & 1u) + 1u, dilation_y = (stride >> 4 & 1u) + 1u;
    const uint32_t height = ethos_u_get_size(npu, ETHOS_U_OFM_HEIGHT_M1);
    const uint32_t width = ethos_u_get_size(npu, ETHOS_U_OFM_WIDTH_M1);
    /* The kernel's registers hold its size after dilation. */
    *window = (ethos_u_window_t){
        .kernel_h = ethos_u_get(npu, ETHOS_U_KERNEL_HEIGHT_M1) / dilation_y + 1u,
        .kernel_w = ethos_u_get(npu, ETHOS_U_KERNEL_WIDTH_M1) / dilation_x + 1u,
        .stride_x = ((stride & 1u) | (stride >> 5 & 0xeu)) + 1u,
        .stride_y = ((stride >> 1 & 1u) | (stride >> 8 & 0xeu)) + 1u,
        .dilation_y = dilation_y,
        .dilation_x = dilation_x,
        .top = ethos_u_get(npu, ETHOS_U_IFM_PAD_TOP) & 0x7fu,
        .left = ethos_u_get(npu, ETHOS_U_IFM_PAD_LEFT) & 0x7fu,
        .upscale = ethos_u_get(npu, ETHOS_U_IFM_UPSCALE),
    };
    const uint32_t bottom = ethos_u_get(npu, ETHOS_U_IFM_PAD_BOTTOM) & 0xffu;
    const uint32_t right = ethos_u_get(npu, ETHOS_U_IFM_PAD_RIGHT) & 0xffu;
    if (ethos_u_failed(npu)) {
        return false;
    }
    if ((stride & ETHOS_U_KERNEL_SMALL) != 0 || window->upscale > 2) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "KERNEL_STRIDE = %x, IFM_UPSCALE = %u: the model does not know it",
                                (uint64_t)stride, window->upscale);
    }
    const uint32_t area = largest * largest;
    if (window->kernel_h > largest || window->kernel_w > area ||
        window->kernel_h * window->kernel_w > area) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM, "the kernel of %ux%u is too large",
                                window->kernel_h, window->kernel_w);
    }
    const int64_t rows = needed_size(height, window->stride_y, window->kernel_h, dilation_y,
                                     window->top, bottom);
    const int64_t columns =
        needed_size(width, window->stride_x, window->kernel_w, dilation_x, window->left, right);
    if (rows < 1 || columns < 1) {
        return ethos_u_complain(npu, HTVM_ETHOS_U_BAD_STREAM,
                                "the padding (IFM_PAD_...) leaves no row or column of the IFM");
    }
    window->height = (uint32_t)rows;
    window->width = (uint32_t)columns;
    window->padded = (window->top | window->left | bottom | right) != 0;
    return true;
}

bool ethos_u_place(const ethos_u_window_t *window, uint32_t y, uint32_t x, uint32_t kernel_y,
                   uint32_t kernel_x, uint32_t *ifm_y, uint32_t *ifm_x, bool *outside)
{
    const uint32_t row = y * window->stride_y + kernel_y * window->dilation_y;
    const uint32_t column = x * window->stride_x + kernel_x * window->dilation_x;
    *outside = row < window->top || column < window->left ||
               row - window->top >= window->height || column - window->left >= window->width;
    if (*outside) {
        return false;
    }
    *ifm_y = row - window->top;
    *ifm_x = column - window->left;
    if (window->upscale != 0) {
        if (window->upscale == 2 && ((*ifm_y | *ifm_x) & 1u) != 0) {
            return false;
        }
        *ifm_y /= 2u;
        *ifm_x /= 2u;
    }
    return true;
}

/* From the first row that results from `first` on need to behind the last one before `end`. */
static void needed(uint32_t first, uint32_t end, uint32_t stride, uint32_t reach, uint32_t before,
                   uint32_t size, uint32_t upscale, uint32_t *from, uint32_t *to)
{
    const uint32_t start = first * stride, stop = (end - 1u) * stride + reach;
    const uint32_t shift = upscale != 0 ? 1 : 0;
    *from = ethos_u_min(start > before ? start - before : 0, size) >> shift;
    *to = (ethos_u_min(stop > before ? stop - before : 0, size) + shift) >> shift;
}

ethos_u_box_t ethos_u_needed(const ethos_u_window_t *window, const ethos_u_map_t *ifm,
                             const ethos_u_box_t *box)
{
    ethos_u_box_t part = {0, 0, 0, 0, 0, ifm->depth};
    needed(box->y0, box->y1, window->stride_y,
           (window->kernel_h - 1u) * window->dilation_y + 1u, window->top, window->height,
           window->upscale, &part.y0, &part.y1);
    needed(box->x0, box->x1, window->stride_x,
           (window->kernel_w - 1u) * window->dilation_x + 1u, window->left, window->width,
           window->upscale, &part.x0, &part.x1);
    return part;
}
