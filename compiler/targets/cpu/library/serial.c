
/* The functions of OpenMP that parallel loops call, on the calling thread alone. */
void GOMP_parallel(void (*function)(void *), void *data, unsigned threads, unsigned flags) {
  (void)threads, (void)flags;
  function(data);
}
int omp_get_thread_num(void) { return 0; }
int omp_get_num_threads(void) { return 1; }
