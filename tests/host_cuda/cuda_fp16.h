// Half precision on the host, as far as kernels use it.
#pragma once
using __half = _Float16;
struct alignas(4) __half2 { __half x, y; };
