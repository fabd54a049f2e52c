// Arrays of structs with padding behind a member, before a wider one and at the end are copied to the host whole.
#include "require.cuh"

struct Tagged {
  char tag;
  int value;
};

struct Weighted {
  float weight;
  float4 place;
};

struct alignas(16) Point {
  float x, y, z;
};

struct Mean {
  double sum;
  float scale;
};

__global__ void fill(Tagged* tagged, Weighted* weighted, Point* points, Mean* means) {
  const int i = threadIdx.x;
  tagged[i].tag = 'a', tagged[i].value = i;
  weighted[i].weight = 1.0f, weighted[i].place = make_float4(1, 2, 3, 4);
  points[i].x = 1, points[i].y = 2, points[i].z = 3;
  means[i].sum = 1.0, means[i].scale = 2.0f;
}

template <class T>
T last_of(const T* device) {
  T host[32];
  REQUIRE(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
  return host[31];
}

int main() {
  Tagged* tagged;
  Weighted* weighted;
  Point* points;
  Mean* means;
  REQUIRE(cudaMalloc(&tagged, 32 * sizeof *tagged));
  REQUIRE(cudaMalloc(&weighted, 32 * sizeof *weighted));
  REQUIRE(cudaMalloc(&points, 32 * sizeof *points));
  REQUIRE(cudaMalloc(&means, 32 * sizeof *means));
  fill<<<1, 32>>>(tagged, weighted, points, means);
  const bool right = last_of(tagged).value == 31 && last_of(weighted).place.w == 4 && last_of(points).z == 3 &&
                     last_of(means).scale == 2;
  return right ? 0 : 4;
}
