// CSR rows as the kernels read them.
#pragma once
#include "simd.h"

namespace tiles {

struct CSRRows {
    const void *values;   // float64, or float32 if `single`
    const void *columns;  // the column of each value: int32, or int64 if `wide`
    const void *starts;   // (n + 1,) where each row begins, and the end; like `columns`
    isize n;
    bool single, wide;
};

}  // namespace tiles
