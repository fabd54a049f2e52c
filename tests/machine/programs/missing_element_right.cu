// Structs with padding of every kind are written field by field, and the host copies them whole.
#include "require.cuh"

struct Sum {
  double total;
  int count;  // four bytes of padding behind it
};
struct Mark {
  short place;
  char kind;  // one byte of padding
};

struct alignas(16) Point {
  float x, y, z;  // as wide as the hole behind them
};

__global__ void fill(Sum* sums, Mark* marks, Point* points) {
  int i = threadIdx.x;
  sums[i].total = i, sums[i].count = 1;
  points[i] = Point{1, 2, float(i)};
  marks[i].place = short(i), marks[i].kind = 2;
}

int main() {
  Sum *sums, sum[32];
  Mark *marks, mark[32];
  Point *points, point[32];
  REQUIRE(cudaMalloc(&sums, sizeof sum));
  REQUIRE(cudaMalloc(&marks, sizeof mark));
  REQUIRE(cudaMalloc(&points, sizeof point));
  fill<<<1, 32>>>(sums, marks, points);
  REQUIRE(cudaMemcpy(sum, sums, sizeof sum, cudaMemcpyDeviceToHost));
  REQUIRE(cudaMemcpy(mark, marks, sizeof mark, cudaMemcpyDeviceToHost));
  REQUIRE(cudaMemcpy(point, points, sizeof point, cudaMemcpyDeviceToHost));
  if (point[31].z != 31.0f) return 4;
  return sum[31].total == 31.0 && sum[31].count == 1 && mark[31].place == 31 && mark[31].kind == 2 ? 0 : 4;
}
