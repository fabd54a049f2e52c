// mbarriers in the words of PTX.
#pragma once

#include <cstdint>

__device__ inline uint32_t shared_address(const void* place) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(place));
}
__device__ inline void init(uint64_t* barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
}
__device__ inline void invalidate(uint64_t* barrier) {
  asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}
__device__ inline uint64_t arrive(uint64_t* barrier) {
  uint64_t state;
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(shared_address(barrier)) : "memory");
  return state;
}
__device__ inline bool test(uint64_t* barrier, uint64_t state) {
  int done;
  asm volatile(
      "{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.s32 %0, 1, 0, p; }"
      : "=r"(done)
      : "r"(shared_address(barrier)), "l"(state)
      : "memory");
  return done;
}
