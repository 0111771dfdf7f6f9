/* Run the library libnet: an input of floats from stdin, its result to stdout.
 *   gcc main.c -L. -lnet -Wl,-rpath,. -o main        with libnet.so
 *   gcc main.c libnet.a -lm -o main                  with libnet.a, or net.o */
#include <stdio.h>
#include <stdlib.h>

#include "net.h"

static void check(int status) {
  if (status == NET_OK) return;
  fprintf(stderr, "net: %s\n", net_message(status));
  exit(1);
}

int main(void) {
  enum { threads = 1 };
  static float x[NET_INPUT_0_BYTES / sizeof(float)], y[NET_OUTPUT_0_BYTES / sizeof(float)];
  size_t constants_bytes = net_constants_bytes(), workspace_bytes = net_workspace_bytes(threads);
  void *constants = aligned_alloc(64, constants_bytes), *workspace = aligned_alloc(64, workspace_bytes);
  check(net_prepare(NULL, constants, constants_bytes)); /* once; NULL: the library has the weights */
  while (fread(x, sizeof x, 1, stdin)) {
    const void *inputs[] = {x};
    void *outputs[] = {y};
    check(net_run(constants, inputs, outputs, workspace, workspace_bytes, threads));
    fwrite(y, sizeof y, 1, stdout);
  }
  free(workspace);
  free(constants);
  return 0;
}
