// Run the library libnet on two threads, which share the constants: inputs of floats from stdin, results to stdout.
//   g++ -std=c++17 main.cpp -L. -lnet -Wl,-rpath,. -pthread -o main
#include <cstdio>
#include <thread>
#include <vector>

#include "net.hpp"

using Array = std::vector<float>;

int main() try {
  const net_library::Program program;
  std::vector<Array> inputs, outputs;
  Array x(NET_INPUT_0_BYTES / sizeof(float));
  while (std::fread(x.data(), NET_INPUT_0_BYTES, 1, stdin)) inputs.push_back(x);
  outputs.assign(inputs.size(), Array(NET_OUTPUT_0_BYTES / sizeof(float)));

  const auto work = [&](std::size_t first) {
    net_library::Workspace workspace;  // one for each thread
    for (std::size_t i = first; i < inputs.size(); i += 2) {
      const void *arguments[] = {inputs[i].data()};
      void *results[] = {outputs[i].data()};
      program.run(arguments, results, workspace);
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  for (const Array &y : outputs) std::fwrite(y.data(), NET_OUTPUT_0_BYTES, 1, stdout);
  return 0;
} catch (const std::exception &error) {
  std::fprintf(stderr, "net: %s\n", error.what());
  return 1;
}
