// Times designs of the NVFP4 matvec for one vector side by side, with the kernel of cuda/ and a read-only stream.
//
//   nvcc -std=c++17 -O3 -arch=native -o fp4_variants bench/variants/fp4_variants.cu && ./fp4_variants [N K]
//
// Microseconds a call: the median over replays of a CUDA graph of calls on different copies of the weights, together
// larger than the L2. Every design is first compared with FP64 on random data, in 600 rows. `--once` runs each design
// once and times nothing, for a profiler or the CPU device.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "../../cuda/fp4_matvec.cu"
#include "../stream.cu"
#include "fp4_lanes.cuh"
#include "fp4_registers.cuh"

namespace {

using variants::Args;

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

struct Design {
  std::string name;
  std::function<cudaError_t(const Args&, cudaStream_t)> launch;
};

cudaError_t start(void (*kernel)(Args), int blocks, int threads, int bytes, const Args& args, cudaStream_t stream) {
  const cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) {
    cudaGetLastError();
    return status;
  }
  kernel<<<blocks, threads, bytes, stream>>>(args);
  return cudaGetLastError();
}

Design production() {
  return {"cuda/fp4_matvec.cu", [](const Args& a, cudaStream_t stream) {
            fp4_matvec_args args = {};
            args.weights = a.weights, args.scales = a.scales, args.tensor_scale = a.tensor_scale;
            args.x = a.x, args.y = a.y, args.n = a.n, args.k = a.k, args.b = 1, args.group = 16;
            args.weight_pitch = a.k / 2, args.scale_pitch = a.k / 16, args.x_pitch = a.k, args.y_pitch = a.n;
            args.scale_format = FP4_SCALE_E4M3, args.output_type = FP4_OUTPUT_BF16;
            return fp4_matvec_launch(&args, stream);
          }};
}

template <int TILES, int SLABS, int WARPS, int BLOCKS>
Design registers(int sm_count) {
  const auto name = "registers, " + std::to_string(16 * TILES) + " rows, " + std::to_string(SLABS * 128) +
                    " weights, " + std::to_string(WARPS) + " warps, " + std::to_string(BLOCKS) + " blocks";
  return {name, [sm_count](const Args& a, cudaStream_t stream) {
            const int slabs = a.k / 128;
            const int bytes = slabs * (variants::kSlabX + variants::kSlabUndo) + variants::kZeros +
                              2 * WARPS * 16 * TILES * 4;
            return start(variants::registers<TILES, SLABS, WARPS, BLOCKS>, sm_count * BLOCKS, WARPS * 32, bytes, a,
                         stream);
          }};
}

template <int TILES, int SLABS, bool HALF, int DEPTH, int WARPS, int BLOCKS>
Design lanes(int sm_count) {
  const auto name = std::string("lanes, ") + (HALF ? "fp16, " : "bf16, ") + std::to_string(16 * TILES) + " rows, " +
                    std::to_string(SLABS * 128) + " weights, " + std::to_string(DEPTH) + " stages, " +
                    std::to_string(WARPS) + " warps, " + std::to_string(BLOCKS) + " blocks";
  return {name, [sm_count](const Args& a, cudaStream_t stream) {
            const int slabs = a.k / 128;
            const int bytes = WARPS * (DEPTH * variants::kLanesStage<TILES, SLABS> +
                                       variants::kTilesHeld * 16 * TILES * 4) +
                              variants::kZeros +
                              (HALF ? slabs * (variants::kSlabX + variants::kSlabUndo) : 0);
            return start(variants::lanes<TILES, SLABS, HALF, DEPTH, WARPS * 32, BLOCKS>, sm_count * BLOCKS,
                         WARPS * 32, bytes, a, stream);
          }};
}

double e2m1(int code) {
  constexpr double kMagnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return code & 8 ? -kMagnitudes[code & 7] : kMagnitudes[code & 7];
}

double e4m3(int code) {
  const int exponent = code >> 3 & 15, fraction = code & 7;
  const double value = exponent ? std::ldexp(8 + fraction, exponent - 10) : std::ldexp(fraction, -9);
  return code & 128 ? -value : value;
}

double from_bf16(uint16_t bits) {
  const uint32_t word = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

// Copies of one matrix and its scales, and what they should give.
class Data {
 public:
  Data(int n, int k, bool once) : n_(n), k_(k), size_(size_t(n) * k / 2 + size_t(n) * k / 16) {
    copies_ = once ? 2 : int(std::max<size_t>(2, std::min<size_t>(256, 400'000'000 / size_ + 1)));
    std::vector<uint8_t> host(size_);
    std::mt19937_64 random(1);
    for (size_t i = 0; i < size_; i += 8) {
      const uint64_t word = random();
      std::memcpy(&host[i], &word, std::min<size_t>(8, size_ - i));
    }
    uint8_t* const scales = host.data() + size_t(n) * k / 2;
    for (size_t i = 0; i < size_t(n) * k / 16; ++i) scales[i] -= (scales[i] & 127) == 127;  // no NaN
    std::vector<uint16_t> x(k);
    std::normal_distribution<float> normal;
    for (auto& bits : x) {
      const float value = normal(random);
      uint32_t word;
      std::memcpy(&word, &value, sizeof word);
      bits = word >> 16;
    }
    for (int i = 0; i < 600; ++i) rows_.push_back(i < 150 ? i % n : i < 300 ? n - 1 - i % n : int(random() % n));
    for (const int row : rows_) {
      double sum = 0, magnitude = 0;
      for (int j = 0; j < k; ++j) {
        const int byte = host[size_t(row) * k / 2 + j / 2];
        const double term = e2m1(j % 2 ? byte >> 4 : byte & 15) * e4m3(scales[size_t(row) * k / 16 + j / 16]) *
                            from_bf16(x[j]) * kTensorScale;
        sum += term, magnitude += std::fabs(term);
      }
      expected_.push_back(sum), magnitudes_.push_back(magnitude);
    }
    check(cudaMalloc(&matrices_, size_ * copies_), "weights");
    for (int i = 0; i < copies_; ++i) {
      check(cudaMemcpy(matrices_ + i * size_, host.data(), size_, cudaMemcpyHostToDevice), "weights");
    }
    check(cudaMalloc(&x_, k * 2), "x");
    check(cudaMemcpy(x_, x.data(), k * 2, cudaMemcpyHostToDevice), "x");
    check(cudaMalloc(&y_, n * 2), "y");
    check(cudaMalloc(&tensor_scale_, 4), "tensor scale");
    check(cudaMemcpy(tensor_scale_, &kTensorScale, 4, cudaMemcpyHostToDevice), "tensor scale");
  }
  ~Data() {
    cudaFree(matrices_), cudaFree(x_), cudaFree(y_), cudaFree(tensor_scale_);
  }

  Args args(int copy) const {
    const uint8_t* const matrix = matrices_ + copy % copies_ * size_;
    return {matrix, matrix + size_t(n_) * k_ / 2, tensor_scale_, x_, y_, n_, k_};
  }
  const uint8_t* matrix(int copy) const { return matrices_ + copy % copies_ * size_; }
  size_t size() const { return size_; }
  int copies() const { return copies_; }
  void* scratch() const { return y_; }

  // Rows that are too far from FP64, after one run.
  int wrong(const Design& design, cudaStream_t stream) const {
    check(cudaMemset(y_, 0xff, n_ * 2), "y");
    const cudaError_t status = design.launch(args(1), stream);
    if (status != cudaSuccess) return -1;
    check(cudaStreamSynchronize(stream), design.name.c_str());
    std::vector<uint16_t> y(n_);
    check(cudaMemcpy(y.data(), y_, n_ * 2, cudaMemcpyDeviceToHost), "y");
    int count = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const double bound = std::fabs(expected_[i]) / 256 + magnitudes_[i] * 1e-5;
      count += !(std::fabs(from_bf16(y[rows_[i]]) - expected_[i]) <= bound);
    }
    return count;
  }

 private:
  static constexpr float kTensorScale = 0.375f;
  int n_, k_, copies_;
  size_t size_;
  std::vector<int> rows_;
  std::vector<double> expected_, magnitudes_;
  uint8_t* matrices_ = nullptr;
  uint16_t *x_ = nullptr, *y_ = nullptr;
  float* tensor_scale_ = nullptr;
};

double microseconds(const Data& data, cudaStream_t stream, const std::function<cudaError_t(int)>& call) {
  cudaGraph_t graph;
  cudaGraphExec_t replay;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  for (int i = 0; i < data.copies(); ++i) check(call(i), "call");
  check(cudaStreamEndCapture(stream, &graph), "capture");
  check(cudaGraphInstantiate(&replay, graph, 0), "graph");
  cudaEvent_t before, after;
  check(cudaEventCreate(&before), "event"), check(cudaEventCreate(&after), "event");
  std::vector<float> times;
  for (int i = 0; i < 18; ++i) {
    check(cudaEventRecord(before, stream), "event");
    check(cudaGraphLaunch(replay, stream), "replay");
    check(cudaEventRecord(after, stream), "event");
    check(cudaEventSynchronize(after), "replay");
    float milliseconds;
    check(cudaEventElapsedTime(&milliseconds, before, after), "event");
    if (i >= 3) times.push_back(milliseconds * 1e3f / data.copies());
  }
  std::sort(times.begin(), times.end());
  cudaEventDestroy(before), cudaEventDestroy(after), cudaGraphExecDestroy(replay), cudaGraphDestroy(graph);
  return times[times.size() / 2];
}

}  // namespace

int main(int count, char** arguments) {
  const bool once = count > 1 && !std::strcmp(arguments[count - 1], "--once");
  if (once) --count;
  std::vector<std::pair<int, int>> shapes = {
      {3840, 3840}, {15360, 3840}, {3840, 15360}, {30720, 3840}, {262144, 3840}};
  if (count > 2) shapes = {{std::atoi(arguments[1]), std::atoi(arguments[2])}};
  int device = 0, sms = 0;
  check(cudaGetDevice(&device), "device");
  check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device), "device");
  const std::vector<Design> designs = {
      production(),
      registers<2, 2, 5, 3>(sms),
      registers<2, 1, 10, 2>(sms),
      registers<1, 1, 15, 2>(sms),
      lanes<2, 2, true, 2, 15, 1>(sms),
      lanes<2, 2, false, 3, 15, 1>(sms),
      lanes<2, 2, true, 2, 8, 2>(sms),
      lanes<2, 2, true, 2, 5, 3>(sms),
      lanes<2, 1, true, 3, 15, 1>(sms),
      lanes<1, 2, true, 3, 15, 1>(sms),
  };
  cudaStream_t stream;
  check(cudaStreamCreate(&stream), "stream");
  bool right = true;
  for (const auto& [n, k] : shapes) {
    const Data data(n, k, once);
    std::printf("%d x %d, %.2f MB\n", n, k, data.size() / 1e6);
    if (!once) {
      const double time = microseconds(data, stream, [&](int i) {
        return stream_launch(data.matrix(i), int64_t(data.size()), data.scratch(), stream);
      });
      std::printf("%9.2f us  read-only stream\n", time);
    }
    for (const Design& design : designs) {
      const int wrong = data.wrong(design, stream);
      if (wrong != 0) {
        right = right && wrong < 0;
        std::printf("%9s     %s\n", wrong < 0 ? "no room" : "WRONG", design.name.c_str());
        continue;
      }
      double time = 0;
      if (!once) time = microseconds(data, stream, [&](int i) { return design.launch(data.args(i), stream); });
      std::printf("%9.2f us  %s\n", time, design.name.c_str());
    }
  }
  return right ? 0 : 1;
}
