  // By the file of weights that was written with the library.
  explicit Program(const char *path) : constants_(@name@_constants_bytes()) {
    if (!constants_.size()) throw Error(@PREFIX@_PROCESSOR);
    check(@name@_prepare_file(path, constants_.data(), constants_.size()));
  }
