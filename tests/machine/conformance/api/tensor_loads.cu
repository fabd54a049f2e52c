// What tensor copies put where in shared memory. Argument: swizzles, fills, element strides and ranks, im2col, interleaves.
#include <cstdlib>

#include "tensor.cuh"

void swizzles() {
  static const char* kNames[] = {"none", "32B", "64B", "128B"};
  for (int s = 0; s < 4; ++s) {
    Case c;
    c.swizzle = static_cast<CUtensorMapSwizzle>(s);
    c.sizes = {64, 20};
    const cuuint32_t inner = s == 0 ? 24 : 8u << s;
    c.box = {inner, 16};
    run(kNames[s], c, {{8, 2}, {}}, inner * 2 * 16);
    if (s < 2) continue;
    // Rows that are shorter than the swizzle.
    c.box = {inner / 2, 12};
    run("shorter", c, {{0, 0}, {}}, inner * 12);
  }
}

void fills() {
  for (int t = 0; t <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ; ++t)
    for (const auto fill : {CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA}) {
      Case c;
      c.type = static_cast<CUtensorMapDataType>(t);
      c.fill = fill;
      c.sizes = {static_cast<cuuint64_t>(t % 2 != 0 ? 19 : 21), 5};
      const auto inner = static_cast<cuuint32_t>(64 / bytes_of(c.type));
      c.box = {inner, 4};
      char name[32];
      std::snprintf(name, sizeof name, "type %d fill %d", t, static_cast<int>(fill));
      run(name, c, {{-3, -1}, {}}, 256);
      run("  beyond", c, {{bytes_of(c.type) == 8 ? 15 : 10, 3}, {}}, 256);
    }
  Case away;
  away.sizes = {16, 4}, away.box = {16, 2};
  run("all outside", away, {{100, -50}, {}}, 64);
}

void strides() {
  Case c;
  c.sizes = {40}, c.box = {24};
  run("1d", c, {{4}, {}}, 48);
  c.sizes = {32, 24}, c.box = {16, 12}, c.steps = {1, 3};
  run("2d, every third row", c, {{8, 1}, {}}, 32 * 4);
  c.box = {16, 11}, c.steps = {2, 4};
  run("2d, a step in the innermost", c, {{0, 2}, {}}, 32 * 3);
  c.sizes = {16, 9, 7}, c.box = {16, 6, 5}, c.steps = {1, 2, 3};
  run("3d", c, {{0, 5, 3}, {}}, 32 * 3 * 2);
  c.sizes = {8, 5, 4, 3}, c.box = {8, 3, 2, 2}, c.steps = {};
  run("4d", c, {{0, 1, 3, 1}, {}}, 16 * 12);
  c.sizes = {8, 4, 3, 3, 2}, c.box = {8, 2, 2, 2, 2};
  run("5d", c, {{0, 3, 1, -1, 0}, {}}, 16 * 16);
  c.steps = {1, 1, 2, 1, 2};
  run("5d with steps", c, {{0, 0, 0, 1, 0}, {}}, 16 * 4);
}

void im2col() {
  Case c;
  c.channels = 8, c.pixels = 20;
  c.sizes = {16, 9, 3}, c.lower = {-1}, c.upper = {-1};
  run("3d", c, {{0, -1, 0}, {2}}, 20 * 16);
  run("3d, next channels", c, {{8, 3, 1}, {0}}, 20 * 16);
  c.steps = {1, 2, 1};
  run("3d, steps", c, {{0, -1, 0}, {1}}, 20 * 16);
  c.sizes = {8, 6, 5, 2}, c.lower = {-1, -1}, c.upper = {-1, -1}, c.steps = {}, c.pixels = 24;
  run("4d", c, {{0, -1, -1, 0}, {0, 2}}, 24 * 16);
  run("4d, across images", c, {{0, 3, 2, 0}, {1, 1}}, 24 * 16);
  c.steps = {1, 2, 2, 1};
  run("4d, steps", c, {{0, -1, -1, 0}, {2, 1}}, 24 * 16);
  c.sizes = {8, 4, 3, 3, 2}, c.lower = {-1, 0, -1}, c.upper = {0, -1, -1}, c.steps = {}, c.pixels = 40;
  run("5d", c, {{0, -1, 0, -1, 0}, {1, 0, 1}}, 40 * 16);
  c.steps = {1, 2, 1, 2, 1};
  run("5d, steps", c, {{0, -1, 0, -1, 0}, {1, 1, 2}}, 40 * 16);
  c = {};
  c.sizes = {32, 9, 3}, c.lower = {0}, c.upper = {0}, c.channels = 32, c.pixels = 12, c.swizzle = CU_TENSOR_MAP_SWIZZLE_64B;
  run("swizzled", c, {{0, 4, 0}, {0}}, 12 * 64);
}

void interleaves() {
  for (const auto interleave : {CU_TENSOR_MAP_INTERLEAVE_16B, CU_TENSOR_MAP_INTERLEAVE_32B}) {
    Case c;
    c.interleave = interleave;
    if (interleave == CU_TENSOR_MAP_INTERLEAVE_32B) c.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
    c.sizes = {32, 6, 4}, c.box = {16, 2, 2};
    run("3d", c, {{0, 1, 1}, {}}, 128);
    c.sizes = {32, 6, 4, 3}, c.box = {32, 2, 2, 1};
    run("4d", c, {{8, 1, 1, 1}, {}}, 256);
    c.box = {1, 2, 2, 2};
    run("4d, one channel", c, {{1, 0, 2, 0}, {}}, 128);
  }
}

int main(int, char** arguments) {
  switch (std::atoi(arguments[1])) {
    case 0: swizzles(); break;
    case 1: fills(); break;
    case 2: strides(); break;
    case 3: im2col(); break;
    case 4: interleaves(); break;
  }
  return 0;
}
