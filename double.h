/* double: the program "double", compiled by Strata for znver4; floating-point policy: contract.
 *
 * Arrays are contiguous in row-major order; strides and sizes are in bytes:
 *   inputs[0]    A: float32[4], strides (4,), 16 bytes, aligned to 4
 *   outputs[0]   B: float32[4], strides (4,), 16 bytes, aligned to 4
 *
 * Use:
 *   void *constants = aligned_alloc(64, double_constants_bytes());
 *   double_prepare(weights, constants, double_constants_bytes());           once
 *   void *workspace = aligned_alloc(64, double_workspace_bytes(threads));   one for each concurrent call
 *   double_run(constants, inputs, outputs, workspace, double_workspace_bytes(threads), threads);
 *
 * Constants and workspaces are aligned to 64 bytes. After prepare, constants are only read: all threads may share them.
 * The library has no state and allocates memory in prepare alone, where it frees it again. Threads:
 * it has no parallel loops, and `threads` has no effect.
 * Outputs, workspace and constants overlap no other memory. 16-bit floats are uint16_t, truth values are uint8_t.
 */
#ifndef STRATA_LIBRARY_DOUBLE_H
#define STRATA_LIBRARY_DOUBLE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOUBLE_INPUTS 1
#define DOUBLE_OUTPUTS 1
#define DOUBLE_WEIGHTS 0
#define DOUBLE_INPUT_0_BYTES 16
#define DOUBLE_OUTPUT_0_BYTES 16

enum double_status {
  DOUBLE_OK = 0 /* done */,
  DOUBLE_NULL = 1 /* a pointer is null */,
  DOUBLE_MISALIGNED = 2 /* an address is not aligned as the header states */,
  DOUBLE_TOO_SMALL = 3 /* the memory for the constants or the workspace is too small */,
  DOUBLE_OVERLAP = 4 /* an output, the workspace or the constants overlap other memory */,
  DOUBLE_UNPREPARED = 5 /* the constants were not filled by prepare of this library and version */,
  DOUBLE_THREADS = 6 /* the thread count is not positive, or too large */,
  DOUBLE_MEMORY = 7 /* the system has no memory for the preparations */,
  DOUBLE_PROCESSOR = 8 /* no version of the library runs on this processor */,
  DOUBLE_FILE = 9 /* the file of the weights cannot be read */,
  DOUBLE_DAMAGED = 10 /* the file of the weights is not the one that was written with the library */
};

/* The processor of the version that this processor runs, by LLVM's name; "" if there is none. The environment variable
 * DOUBLE_CPU picks a version by that name. */
const char *double_version(void);

/* The interface as JSON. */
const char *double_interface(void);

/* The sizes of the caller's memory in bytes. Both are 0 if no version runs on this processor; the workspace is also 0
 * for a program that needs none, and for a wrong thread count. */
size_t double_constants_bytes(void);
size_t double_workspace_bytes(int threads);

/* Fill the constants: by the weights, in order; by those that the library holds if `weights` is null. */
int double_prepare(const void *const weights[], void *constants, size_t constants_bytes);

/* Run the program. Concurrent calls are safe if each has its own outputs and workspace. */
int double_run(const void *constants, const void *const inputs[], void *const outputs[], void *workspace,
    size_t workspace_bytes, int threads);

/* The meaning of a status. */
const char *double_message(int status);

/* The native function of the version, which `strata.load` calls: its arguments are those of the interface, then the
 * workspace, then the thread count if it takes one. It checks nothing. */
void (*double_function(void))(void);

#ifdef __cplusplus
}
#endif

#endif
