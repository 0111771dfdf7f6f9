#define _DEFAULT_SOURCE /* declares syscall and O_CLOEXEC beside the functions of C11 */

#include "@name@.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
@includes@
#define HEADER_BYTES @header_bytes@
enum { most_threads = @most_threads@ };

/* Facts of an array: its bytes, and the alignment of its address. */
struct array {
  size_t bytes, alignment;
};

/* The first bytes of constants that prepare has filled. */
struct header {
  uint64_t magic;
  uint32_t version;
};

/* The code for one processor. The last argument of run and prepare is the thread count. */
struct version {
  uint64_t magic;
  size_t constant_bytes, shared_bytes, private_bytes;
  const char *text;
  int (*is_supported)(void);
  int (*prepare)(const void *const *weights, char *constants);
  void (*run)(const char *constants, const void *const *inputs, void *const *outputs, void *workspace, int threads);
  void (*function)(void);
};

@arrays@
static const char INTERFACE[] = @interface@;

@features@
@versions@
/* Fill the constants by a function, and mark them as filled. */
static int fill(const struct version *v, const void *const *weights, void *constants) {
  struct header header = {v->magic, (uint32_t)(v - VERSIONS)};
  memset(constants, 0, HEADER_BYTES);
  int status = v->prepare(weights, (char *)constants + HEADER_BYTES);
  if (status == @PREFIX@_OK) memcpy(constants, &header, sizeof header);
  return status;
}

@stored@
/* The version for this processor, or the one that @PREFIX@_CPU names; null if there is none. */
static const struct version *chosen(void) {
  const char *pinned = getenv("@PREFIX@_CPU");
  for (size_t i = 0; i < sizeof VERSIONS / sizeof VERSIONS[0]; ++i)
    if ((!pinned || !*pinned || !strcmp(pinned, VERSIONS[i].text)) && VERSIONS[i].is_supported()) return &VERSIONS[i];
  return 0;
}

/* Each array is there and aligned. */
static int check(const void *const *arrays, const struct array *facts, size_t count) {
  if (count && !arrays) return @PREFIX@_NULL;
  for (size_t i = 0; i < count; ++i) {
    if (!arrays[i]) return @PREFIX@_NULL;
    if ((uintptr_t)arrays[i] % facts[i].alignment) return @PREFIX@_MISALIGNED;
  }
  return @PREFIX@_OK;
}

static int overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
  return a_bytes && b_bytes && (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

static int check_memory(const void *memory, size_t bytes, size_t needed) {
  if (needed && !memory) return @PREFIX@_NULL;
  if (needed && (uintptr_t)memory % 64) return @PREFIX@_MISALIGNED;
  return bytes < needed ? @PREFIX@_TOO_SMALL : @PREFIX@_OK;
}

static size_t workspace_of(const struct version *v, int threads) {
  return v->shared_bytes + (size_t)threads * v->private_bytes;
}

const char *@name@_version(void) {
  const struct version *v = chosen();
  return v ? v->text : "";
}

const char *@name@_interface(void) { return INTERFACE; }

const char *@name@_certificate(void) { return "@certificate@"; }

size_t @name@_constants_bytes(void) {
  const struct version *v = chosen();
  return v ? HEADER_BYTES + v->constant_bytes : 0;
}

size_t @name@_workspace_bytes(int threads) {
  const struct version *v = chosen();
  return v && threads > 0 && threads <= most_threads ? workspace_of(v, threads) : 0;
}

int @name@_prepare(const void *const weights[], void *constants, size_t constants_bytes) {
  const struct version *v = chosen();
  if (!v) return @PREFIX@_PROCESSOR;
  int status = check_memory(constants, constants_bytes, HEADER_BYTES + v->constant_bytes);
  if (status != @PREFIX@_OK) return status;
  if (!weights && WEIGHTS_COUNT) return prepare_stored(v, constants);
  status = check(weights, WEIGHTS, WEIGHTS_COUNT);
  if (status != @PREFIX@_OK) return status;
  for (size_t i = 0; i != WEIGHTS_COUNT; ++i)
    if (overlap(weights[i], WEIGHTS[i].bytes, constants, HEADER_BYTES + v->constant_bytes)) return @PREFIX@_OVERLAP;
  return fill(v, weights, constants);
}
@prepare_file@
int @name@_run(const void *constants, const void *const inputs[], void *const outputs[], void *workspace,
    size_t workspace_bytes, int threads) {
  struct header header;
  if (!constants) return @PREFIX@_NULL;
  if ((uintptr_t)constants % 64) return @PREFIX@_MISALIGNED;
  memcpy(&header, constants, sizeof header);
  if (header.version >= sizeof VERSIONS / sizeof VERSIONS[0]) return @PREFIX@_UNPREPARED;
  const struct version *v = &VERSIONS[header.version];
  if (header.magic != v->magic) return @PREFIX@_UNPREPARED;
  if (threads < 1 || threads > most_threads) return @PREFIX@_THREADS;
  size_t needed = workspace_of(v, threads);
  int status = check_memory(workspace, workspace_bytes, needed);
  if (status == @PREFIX@_OK) status = check(inputs, INPUTS, INPUTS_COUNT);
  if (status == @PREFIX@_OK) status = check((const void *const *)outputs, OUTPUTS, OUTPUTS_COUNT);
  if (status != @PREFIX@_OK) return status;
  for (size_t i = 0; i != OUTPUTS_COUNT; ++i) {
    size_t bytes = OUTPUTS[i].bytes;
    if (overlap(outputs[i], bytes, constants, HEADER_BYTES + v->constant_bytes)) return @PREFIX@_OVERLAP;
    if (overlap(outputs[i], bytes, workspace, needed)) return @PREFIX@_OVERLAP;
    for (size_t j = 0; j != INPUTS_COUNT; ++j)
      if (overlap(outputs[i], bytes, inputs[j], INPUTS[j].bytes)) return @PREFIX@_OVERLAP;
    for (size_t j = 0; j < i; ++j)
      if (overlap(outputs[i], bytes, outputs[j], OUTPUTS[j].bytes)) return @PREFIX@_OVERLAP;
  }
  if (overlap(workspace, needed, constants, HEADER_BYTES + v->constant_bytes)) return @PREFIX@_OVERLAP;
  for (size_t j = 0; j != INPUTS_COUNT; ++j)
    if (overlap(workspace, needed, inputs[j], INPUTS[j].bytes)) return @PREFIX@_OVERLAP;
  v->run((const char *)constants + HEADER_BYTES, inputs, outputs, workspace, threads);
  return @PREFIX@_OK;
}

void (*@name@_function(void))(void) {
  const struct version *v = chosen();
  return v ? v->function : 0;
}

const char *@name@_message(int status) {
  switch (status) {
@messages@
  }
  return "unknown status";
}
