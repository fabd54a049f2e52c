// Objects with virtual functions on the stack and in shared memory, of several classes in one warp, called through their
// base, with a call of the base's function inside, a second base, and values of all widths: as the host computes.
#include "require.cuh"

#include <new>

struct Shape {
  __device__ virtual double area(float x, short s) const = 0;
  __device__ virtual char tag() const { return 's'; }
};
struct Counted {
  int count;
  __device__ explicit Counted(int c) : count(c) {}
  __device__ virtual long long counted() { return ++count; }
};
struct Square : Shape {
  int side;
  __device__ explicit Square(int n) : side(n) {}
  __device__ double area(float x, short s) const override { return x * s + side; }
};
struct Round : Shape {
  __device__ double area(float x, short s) const override { return x - s; }
  __device__ char tag() const override { return 'r'; }
};
struct Thick : Round, Counted {
  double rim;
  __device__ explicit Thick(double r) : Counted(7), rim(r) {}
  __device__ double area(float x, short s) const override { return Round::area(x, s) + rim; }
  __device__ long long counted() override { return Counted::counted() * 10; }
};

__global__ void areas(double* out) {
  const int t = threadIdx.x;
  Square square(t);
  Round round;
  Thick thick(t * 0.25);
  const Shape* all[3] = {&square, &round, &thick};
  const Shape* mine = all[t % 3];
  Counted* counted = &thick;
  out[t] = mine->area(t, 3) * 1000 + mine->tag() + counted->counted();
}

__global__ void shared_object(double* out) {
  __shared__ alignas(16) char room[sizeof(Thick)];
  if (threadIdx.x == 0) new (room) Thick(2.5);
  __syncthreads();
  const Shape* shape = reinterpret_cast<Thick*>(room);
  out[threadIdx.x] = shape->area(threadIdx.x, 1);
}

int main() {
  constexpr int n = 64;
  double *out, got[n];
  REQUIRE(cudaMalloc(&out, sizeof got));
  areas<<<1, n>>>(out);
  REQUIRE(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
  for (int t = 0; t < n; ++t) {
    const double area = t % 3 == 0 ? 3 * t + t : t % 3 == 1 ? t - 3 : t - 3 + t * 0.25;
    if (got[t] != area * 1000 + (t % 3 == 0 ? 's' : 'r') + 80) return 9;
  }
  shared_object<<<1, n>>>(out);
  REQUIRE(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
  for (int t = 0; t < n; ++t)
    if (got[t] != t - 1 + 2.5) return 9;
  return 0;
}
