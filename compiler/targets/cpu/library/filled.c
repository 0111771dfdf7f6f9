/* Copy the filled constants of a version from bytes that hold those of all versions. */
static int prepare_from(const struct version *v, const char *bytes, void *constants) {
  const struct header header = {v->magic, (uint32_t)(v - VERSIONS)};
  memset(constants, 0, HEADER_BYTES);
  memcpy((char *)constants + HEADER_BYTES, bytes + STORED[v - VERSIONS], v->constant_bytes);
  memcpy(constants, &header, sizeof header);
  return @PREFIX@_OK;
}
