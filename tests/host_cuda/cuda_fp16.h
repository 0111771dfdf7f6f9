// Half precision on the host, as far as kernels use it.
#pragma once
using __half = _Float16;
