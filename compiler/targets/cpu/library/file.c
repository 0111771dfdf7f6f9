
/* A sum of the words of a file, each mixed with its number. The last one is filled with zeros. */
static uint64_t checksum_of(const unsigned char *bytes, size_t count) {
  uint64_t sum = 0;
  for (size_t i = 0; i < (count + 7) / 8; ++i) {
    uint64_t word = 0;
    memcpy(&word, bytes + 8 * i, count - 8 * i < 8 ? count - 8 * i : 8);
    word += i * UINT64_C(0x9E3779B97F4A7C15);
    sum += (word ^ word >> 32) * UINT64_C(0xFF51AFD7ED558CCD);
  }
  return sum;
}

int @name@_prepare_file(const char *path, void *constants, size_t constants_bytes) {
  const struct version *v = chosen();
  if (!v) return @PREFIX@_PROCESSOR;
  if (!path) return @PREFIX@_NULL;
  int status = check_memory(constants, constants_bytes, HEADER_BYTES + v->constant_bytes);
  if (status != @PREFIX@_OK) return status;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return @PREFIX@_FILE;
  struct stat facts;
  void *bytes = MAP_FAILED;
  if (fstat(file, &facts)) {
    status = @PREFIX@_FILE;
  } else if ((uint64_t)facts.st_size != UINT64_C(@file_bytes@)) {
    status = @PREFIX@_DAMAGED;
  } else {
    bytes = mmap(0, @file_bytes@, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED) status = @PREFIX@_FILE;
  }
  close(file);
  if (status != @PREFIX@_OK) return status;
  if (checksum_of(bytes, @file_bytes@) != @checksum@)
    status = @PREFIX@_DAMAGED;
  else
    status = prepare_from(v, bytes, constants);
  munmap(bytes, @file_bytes@);
  return status;
}
