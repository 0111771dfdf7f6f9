
/* Request the tile registers from Linux; see Documentation/arch/x86/xstate. */
static int permit_tiles(void) { return !syscall(SYS_arch_prctl, 0x1023, 18); }
