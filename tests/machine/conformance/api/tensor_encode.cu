// Which tensor maps the driver makes, and which it refuses.
#include "tensor.cuh"

static CUtensorMap map;
static char* memory;

static void ask(const char* what, const Case& c, std::uint64_t shift = 0, cuuint64_t stride = 0) {
  std::vector<cuuint64_t> strides(5);
  cuuint64_t next = static_cast<cuuint64_t>(bytes_of(c.type));
  for (std::size_t d = 0; d + 1 < c.sizes.size(); ++d) strides[d] = next = (next * c.sizes[d] + 15) / 16 * 16;
  if (stride != 0) strides[0] = stride;
  std::vector<cuuint32_t> steps = c.steps;
  steps.resize(5, 1);
  const auto rank = static_cast<cuuint32_t>(c.sizes.size());
  CUresult made;
  if (c.pixels != 0 || c.channels != 0)
    made = reinterpret_cast<decltype(&cuTensorMapEncodeIm2col)>(driver_function("cuTensorMapEncodeIm2col"))(
        &map, c.type, rank, memory + shift, c.sizes.data(), strides.data(), c.lower.data(), c.upper.data(), c.channels, c.pixels, steps.data(), c.interleave,
        c.swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, c.fill);
  else
    made = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(driver_function("cuTensorMapEncodeTiled"))(
        &map, c.type, rank, memory + shift, c.sizes.data(), strides.data(), c.box.data(), steps.data(), c.interleave, c.swizzle,
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, c.fill);
  std::printf("%s: %d\n", what, static_cast<int>(made));
}

template <class F>
static Case with(Case c, F&& f) {
  f(c);
  return c;
}

int main() {
  cudaMalloc(&memory, 1 << 20);
  Case tile;
  tile.sizes = {64, 32}, tile.box = {32, 8};
  ask("tile", tile);
  ask("address + 8", tile, 8);
  ask("address + 16", tile, 16);
  ask("stride of 136", tile, 0, 136);
  ask("stride of 64", tile, 0, 64);
  ask("stride of 2^40", tile, 0, 1ull << 40);
  ask("stride below 2^40", tile, 0, (1ull << 40) - 16);
  ask("no size", with(tile, [](Case& c) { c.sizes[1] = 0; }));
  ask("size of 2^31", with(tile, [](Case& c) { c.sizes[1] = 1ull << 31; }));
  ask("size of 2^32", with(tile, [](Case& c) { c.sizes[1] = 1ull << 32; }));
  ask("size of 2^32 + 1", with(tile, [](Case& c) { c.sizes[1] = (1ull << 32) + 1; }));
  ask("box of 0", with(tile, [](Case& c) { c.box[1] = 0; }));
  ask("box of 256", with(tile, [](Case& c) { c.box[1] = 256; }));
  ask("box of 257", with(tile, [](Case& c) { c.box[1] = 257; }));
  ask("box above the size", with(tile, [](Case& c) { c.box[1] = 40; }));
  ask("row of 20 bytes", with(tile, [](Case& c) { c.box[0] = 10; }));
  ask("step of 0", with(tile, [](Case& c) { c.steps = {1, 0}; }));
  ask("step of 8", with(tile, [](Case& c) { c.steps = {1, 8}; }));
  ask("step of 9", with(tile, [](Case& c) { c.steps = {1, 9}; }));
  ask("innermost step of 9", with(tile, [](Case& c) { c.steps = {9, 1}; }));
  ask("innermost step of 0", with(tile, [](Case& c) { c.steps = {0, 1}; }));
  for (int s = 1; s <= 6; ++s)
    for (const cuuint32_t elements : {16u, 32u, 64u, 128u}) {
      char name[48];
      std::snprintf(name, sizeof name, "swizzle %d, row of %u bytes", s, 2 * elements);
      ask(name, with(tile, [&](Case& c) { c.swizzle = static_cast<CUtensorMapSwizzle>(s), c.box[0] = elements, c.sizes[0] = 256; }));
    }
  ask("NaN for integers", with(tile, [](Case& c) { c.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA; }));
  for (int t = 0; t <= 16; ++t) {
    char name[32];
    std::snprintf(name, sizeof name, "data type %d", t);
    ask(name, with(tile, [&](Case& c) { c.type = static_cast<CUtensorMapDataType>(t), c.sizes[0] = 128, c.box[0] = 128; }));
  }
  for (const std::size_t rank : {1, 3, 5}) ask("rank", with(tile, [&](Case& c) { c.sizes.assign(rank, 16), c.box.assign(rank, 16); }));
  ask("interleave of 16 bytes, rank 2", with(tile, [](Case& c) { c.interleave = CU_TENSOR_MAP_INTERLEAVE_16B; }));
  const Case volume = with(tile, [](Case& c) { c.sizes = {64, 32, 8}, c.box = {32, 8, 2}; });
  ask("interleave of 16 bytes", with(volume, [](Case& c) { c.interleave = CU_TENSOR_MAP_INTERLEAVE_16B; }));
  ask("interleave of 32 bytes", with(volume, [](Case& c) { c.interleave = CU_TENSOR_MAP_INTERLEAVE_32B; }));
  ask("interleave of 32 bytes, swizzled", with(volume, [](Case& c) { c.interleave = CU_TENSOR_MAP_INTERLEAVE_32B, c.swizzle = CU_TENSOR_MAP_SWIZZLE_32B; }));
  ask("the same, address + 16", with(volume, [](Case& c) { c.interleave = CU_TENSOR_MAP_INTERLEAVE_32B, c.swizzle = CU_TENSOR_MAP_SWIZZLE_32B; }), 16);
  const Case image = with(tile, [](Case& c) { c.sizes = {64, 9, 9, 4}, c.box = {}, c.lower = {-1, -1}, c.upper = {-1, -1}, c.channels = 32, c.pixels = 16; });
  ask("im2col", image);
  ask("im2col, rank 2", with(image, [](Case& c) { c.sizes = {64, 9}; }));
  ask("im2col, 0 channels", with(image, [](Case& c) { c.channels = 0; }));
  ask("im2col, 256 channels", with(image, [](Case& c) { c.channels = 256; }));
  ask("im2col, 264 channels", with(image, [](Case& c) { c.channels = 264; }));
  ask("im2col, 10 channels", with(image, [](Case& c) { c.channels = 10; }));
  ask("im2col, 0 pixels", with(image, [](Case& c) { c.pixels = 0; }));
  ask("im2col, 1024 pixels", with(image, [](Case& c) { c.pixels = 1024; }));
  ask("im2col, 1025 pixels", with(image, [](Case& c) { c.pixels = 1025; }));
  ask("im2col, corner of -129", with(image, [](Case& c) { c.lower[0] = -129; }));
  ask("im2col, corner of 127", with(image, [](Case& c) { c.upper[0] = 127; }));
  ask("im2col, corner of 128", with(image, [](Case& c) { c.upper[0] = 128; }));
  ask("im2col, empty box", with(image, [](Case& c) { c.upper[0] = -10; }));
  ask("im2col, swizzled", with(image, [](Case& c) { c.swizzle = CU_TENSOR_MAP_SWIZZLE_64B; }));
  ask("im2col, swizzle too narrow", with(image, [](Case& c) { c.swizzle = CU_TENSOR_MAP_SWIZZLE_32B; }));
  return 0;
}
