// The library double for C++17: the class owns the constants, a workspace of its own each thread that calls it.
#ifndef STRATA_LIBRARY_DOUBLE_HPP
#define STRATA_LIBRARY_DOUBLE_HPP

#include "double.h"

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

namespace double_library {

struct Error : std::runtime_error {
  int status;
  explicit Error(int status) : std::runtime_error(double_message(status)), status(status) {}
};

inline void check(int status) {
  if (status != DOUBLE_OK) throw Error(status);
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
  explicit Workspace(int threads = 1) : threads_(threads), memory_(double_workspace_bytes(threads)) {}
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
  explicit Program(const void *const *weights = nullptr) : constants_(double_constants_bytes()) {
    if (!constants_.size()) throw Error(DOUBLE_PROCESSOR);
    check(double_prepare(weights, constants_.data(), constants_.size()));
  }
  void run(const void *const *inputs, void *const *outputs, Workspace &workspace) const {
    const Memory &memory = workspace.memory();
    check(double_run(constants_.data(), inputs, outputs, memory.data(), memory.size(), workspace.threads()));
  }

 private:
  Memory constants_;
};

}  // namespace double_library

#endif
