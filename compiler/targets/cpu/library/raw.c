/* Fill the constants by weights at the offsets STORED of bytes. */
static int prepare_from(const struct version *v, const char *bytes, void *constants) {
  const void *weights[WEIGHTS_COUNT + 1];
  for (size_t i = 0; i != WEIGHTS_COUNT; ++i) weights[i] = bytes + STORED[i];
  return fill(v, weights, constants);
}
