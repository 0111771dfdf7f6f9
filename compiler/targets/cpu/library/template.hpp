// The library @name@ for C++17: the class owns the constants, a workspace of its own each thread that calls it.
#ifndef STRATA_LIBRARY_@PREFIX@_HPP
#define STRATA_LIBRARY_@PREFIX@_HPP

#include "@name@.h"

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

namespace @name@_library {

struct Error : std::runtime_error {
  int status;
  explicit Error(int status) : std::runtime_error(@name@_message(status)), status(status) {}
};

inline void check(int status) {
  if (status != @PREFIX@_OK) throw Error(status);
}

// Memory of a number of bytes, aligned to 64.
class Memory {
 public:
  explicit Memory(std::size_t bytes)
      : bytes_(bytes), data_(bytes ? std::aligned_alloc(64, (bytes + 63) / 64 * 64) : nullptr, std::free) {
    if (bytes && !data_) throw std::bad_alloc();
  }
  void *data() const { return data_.get(); }
  std::size_t size() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::unique_ptr<void, void (*)(void *)> data_;
};

// A workspace for calls on one thread at a time.
class Workspace {
 public:
  explicit Workspace(int threads = 1) : threads_(threads), memory_(@name@_workspace_bytes(threads)) {}
  const Memory &memory() const { return memory_; }
  int threads() const { return threads_; }

 private:
  int threads_;
  Memory memory_;
};

// The program with its constants; any number of threads may run it, each with a workspace.
class Program {
 public:
  // By weights in order; by those that the library holds if `weights` is null.
  explicit Program(const void *const *weights = nullptr) : constants_(@name@_constants_bytes()) {
    if (!constants_.size()) throw Error(@PREFIX@_PROCESSOR);
    check(@name@_prepare(weights, constants_.data(), constants_.size()));
  }
@prepare_file@  void run(const void *const *inputs, void *const *outputs, Workspace &workspace) const {
    const Memory &memory = workspace.memory();
    check(@name@_run(constants_.data(), inputs, outputs, memory.data(), memory.size(), workspace.threads()));
  }

 private:
  Memory constants_;
};

}  // namespace @name@_library

#endif
