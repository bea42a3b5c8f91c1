// What the kernels need of the machine, for a GPU (NVRTC, no CUDA headers) and for the host (HOST_EMU, any C++17 compiler).
//
// On the host a kernel is an ordinary function that is called once for every thread of a grid, one after the other: what
// is tested there is the arithmetic, the indexing and the handling of tails, not the memory model of a GPU.
#ifdef HOST_EMU
#include <cstring>
struct uint4 { unsigned x, y, z, w; };
struct Extent3 { unsigned x, y, z; };
static thread_local Extent3 threadIdx, blockIdx, blockDim, gridDim;
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#endif

typedef unsigned char u8_t;
typedef unsigned short u16_t;
typedef unsigned int u32_t;
typedef unsigned long long u64_t;

// So many addresses, handed over by value: 64 take 512 B of a kernel's 4 KiB of parameters.
template <int N> struct Table { u64_t at[N]; };

__device__ __forceinline__ u64_t first_index() { return (u64_t)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ u64_t index_step() { return (u64_t)gridDim.x * blockDim.x; }

// -- 16 bytes at a time ------------------------------------------------------------------------------------------------
// Operands are read once: they are kept out of the first-level cache, and results are the first to be evicted. Memory that
// the same kernel writes (in place) must not be read through the non-coherent path.

template <bool IN_PLACE> __device__ __forceinline__ uint4 load16(u64_t address) {
#ifdef HOST_EMU
  uint4 found;
  memcpy(&found, (const void*)address, 16);
  return found;
#else
  uint4 found;
  if (IN_PLACE)
    asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(found.x), "=r"(found.y), "=r"(found.z), "=r"(found.w) : "l"(address) : "memory");
  else
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(found.x), "=r"(found.y), "=r"(found.z), "=r"(found.w) : "l"(address));
  return found;
#endif
}

__device__ __forceinline__ void store16(u64_t address, uint4 value) {
#ifdef HOST_EMU
  memcpy((void*)address, &value, 16);
#else
  asm volatile("st.global.cs.v4.u32 [%0], {%1,%2,%3,%4};"
               :: "l"(address), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w) : "memory");
#endif
}

// -- floats of 16 bits ---------------------------------------------------------------------------------------------------

__device__ __forceinline__ float bits_to_float(u32_t bits) {
#ifdef HOST_EMU
  float value;
  memcpy(&value, &bits, 4);
  return value;
#else
  return __uint_as_float(bits);
#endif
}

__device__ __forceinline__ float widen_half(u16_t bits) {
#ifdef HOST_EMU
  _Float16 value;
  memcpy(&value, &bits, 2);
  return (float)value;
#else
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
#endif
}

// Nearest, ties to even.
__device__ __forceinline__ u16_t narrow_half(float value) {
#ifdef HOST_EMU
  _Float16 narrow = (_Float16)value;
  u16_t bits;
  memcpy(&bits, &narrow, 2);
  return bits;
#else
  u16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#endif
}

__device__ __forceinline__ u16_t narrow_bfloat(float value) {
#ifdef HOST_EMU
  u32_t bits;
  memcpy(&bits, &value, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return (u16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#else
  u16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#endif
}
