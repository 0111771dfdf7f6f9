
/* Fill the constants by the file of weights that was written with the library. */
int @name@_prepare_file(const char *path, void *constants, size_t constants_bytes);
