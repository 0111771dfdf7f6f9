// As much of CUDA's runtime as launchers call: a launch runs at once on the host, and is counted.
#pragma once
#include <unordered_map>

using cudaStream_t = void*;
enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorInvalidConfiguration = 9 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

static std::unordered_map<const void*, int> allowed_bytes;  // of dynamic shared memory, by kernel
extern "C" {  // each library has its own, which inline variables would share
int device_bytes = 100 << 10;  // of shared memory that a block can have
int launched = 0;
cudaStream_t used_stream;
}

template <class... P> cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute, int bytes) {
  if (bytes > device_bytes) return cudaErrorInvalidValue;
  allowed_bytes[(const void*)kernel] = bytes;
  return cudaSuccess;
}

template <class... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments, std::size_t shared, cudaStream_t stream) {
  const int allowed = std::max(allowed_bytes[(const void*)kernel], 48 << 10);
  if (shared > (std::size_t)allowed) return cudaErrorInvalidValue;
  void* values[sizeof...(P) + 1];
  for (std::size_t n = 0; n < sizeof...(P); ++n) std::memcpy(&values[n], arguments[n], sizeof(void*));
  ++launched, used_stream = stream;
  launch(kernel, grid, block, values);
  return cudaSuccess;
}
