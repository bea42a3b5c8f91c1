// Runs a kernel on the host: its arguments as an array of pointers, as cuLaunchKernel takes them, and every thread of the
// grid in turn. Compiled behind the kernels, with HOST_EMU.
#include <cstddef>
#include <utility>

template <class... Args, std::size_t... At>
static void run_grid(void (*kernel)(Args...), const unsigned* grid, unsigned block, void** arguments,
                     std::index_sequence<At...>) {
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {block, 1, 1};
  for (unsigned z = 0; z < grid[2]; z++)
    for (unsigned y = 0; y < grid[1]; y++)
      for (unsigned x = 0; x < grid[0]; x++)
        for (unsigned thread = 0; thread < block; thread++) {
          blockIdx = {x, y, z};
          threadIdx = {thread, 0, 0};
          kernel(*(Args*)arguments[At]...);
        }
}

template <class... Args>
static void run_kernel(void (*kernel)(Args...), const unsigned* grid, unsigned block, void** arguments) {
  run_grid(kernel, grid, block, arguments, std::index_sequence_for<Args...>{});
}
