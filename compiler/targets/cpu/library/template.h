/* @name@: the program "@program@", compiled by Strata for @cpus@; floating-point policy: @policy@.
 *
 * Arrays are contiguous in row-major order; strides and sizes are in bytes:
@arrays@
 *
 * Use:
 *   size_t constants_bytes = @name@_constants_bytes(), workspace_bytes = @name@_workspace_bytes(threads);
 *   void *constants = aligned_alloc(64, constants_bytes);
 *   @name@_prepare(weights, constants, constants_bytes);   once
 *   void *workspace = aligned_alloc(64, workspace_bytes);   one for each concurrent call
 *   @name@_run(constants, inputs, outputs, workspace, workspace_bytes, threads);
 *
 * Constants and workspaces are aligned to 64 bytes. After prepare, constants are only read: all threads may share them.
 * The library has no state and allocates memory in prepare alone, where it frees it again. Threads:
 * @threads@
 * Outputs, workspace and constants overlap no other memory. 16-bit floats are uint16_t, truth values are uint8_t.
 */
#ifndef STRATA_LIBRARY_@PREFIX@_H
#define STRATA_LIBRARY_@PREFIX@_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

@constants@

enum @name@_status {
@statuses@
};

/* The processor of the version that this processor runs, by LLVM's name; "" if there is none. The environment variable
 * @PREFIX@_CPU picks a version by that name. */
const char *@name@_version(void);

/* The interface as JSON. */
const char *@name@_interface(void);

/* The SHA-256 of the certificate that was written with the library, "" without one: see `strata verify`. */
const char *@name@_certificate(void);

/* The sizes of the caller's memory in bytes. Both are 0 if no version runs on this processor; the workspace is also 0
 * for a program that needs none, and for a wrong thread count. They ask the processor for its features, which takes some
 * 0.1 ms under a hypervisor: call them once. */
size_t @name@_constants_bytes(void);
size_t @name@_workspace_bytes(int threads);

/* Fill the constants: by the weights, in order; by those that the library holds if `weights` is null. */
int @name@_prepare(const void *const weights[], void *constants, size_t constants_bytes);
@prepare_file@
/* Run the program. Concurrent calls are safe if each has its own outputs and workspace. */
int @name@_run(const void *constants, const void *const inputs[], void *const outputs[], void *workspace,
    size_t workspace_bytes, int threads);

/* The meaning of a status. */
const char *@name@_message(int status);

/* The native function of the version, which `strata.load` calls: its arguments are those of the interface, then the
 * workspace, then the thread count if it takes one. It checks nothing. */
void (*@name@_function(void))(void);

#ifdef __cplusplus
}
#endif

#endif
