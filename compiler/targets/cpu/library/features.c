/* A bit of CPUID: leaf, subleaf, the register (0 to 3 for eax, ebx, ecx and edx), the bit's number. */
struct bit {
  unsigned leaf, subleaf, number_of_register, number;
};

/* Whether the processor has all features, which are in the order of leaves, and the system saves the registers of the
 * states. Each leaf is read once: a hypervisor takes microseconds for it. */
static int has_features(const struct bit *features, size_t count, uint64_t states) {
  unsigned words[4] = {0};
  for (size_t i = 0; i < count; ++i) {
    const struct bit *f = &features[i];
    int is_read = i && f->leaf == f[-1].leaf && f->subleaf == f[-1].subleaf;
    if (!is_read && !__get_cpuid_count(f->leaf, f->subleaf, &words[0], &words[1], &words[2], &words[3])) return 0;
    if (!(words[f->number_of_register] >> f->number & 1)) return 0;
  }
  if (!states) return 1;
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return ((((uint64_t)high << 32) | low) & states) == states;
}
