// The copying and setting calls.
#include "runtime/api.hpp"
#include "runtime/capture.hpp"
#include "runtime/transfer.hpp"

using namespace machine::runtime;

namespace {

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

cudaError_t copy(const char* call, Plane destination, Plane source, Extent extent, cudaMemcpyKind kind,
                 cudaStream_t stream, Default meaning, Host host) {
  return entry(call, [&](Lock& lock) {
    if (host == Host::waits) require_no_global_capture(call);
    return submit_copy(stream_of(stream, meaning), checked_copy(call, destination, source, extent, kind), host, lock);
  });
}

cudaError_t copy_linear(const char* call, void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                        cudaStream_t stream, Default meaning, Host host) {
  return copy(call, {address_of(to), bytes, bytes}, {address_of(from), bytes, bytes}, {bytes, 1, 1}, kind, stream,
              meaning, host);
}

cudaError_t copy_plane(const char* call, void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                       size_t height, cudaMemcpyKind kind, cudaStream_t stream, Default meaning, Host host) {
  return copy(call, {address_of(to), to_pitch, to_pitch * height}, {address_of(from), from_pitch, from_pitch * height},
              {width, height, 1}, kind, stream, meaning, host);
}

Plane plane_of(const cudaPitchedPtr& pointer, const cudaPos& position) {
  const std::size_t slice = pointer.pitch * pointer.ysize;
  return {address_of(pointer.ptr) + position.z * slice + position.y * pointer.pitch + position.x, pointer.pitch, slice};
}

cudaError_t copy_volume(const char* call, const cudaMemcpy3DParms* p, cudaStream_t stream, Default meaning, Host host) {
  return entry(call, [&](Lock& lock) {
    require(p, cudaErrorInvalidValue, "the parameters are null");
    require(!p->srcArray && !p->dstArray, cudaErrorNotSupported, "CUDA arrays are not provided by the CPU device");
    if (host == Host::waits) require_no_global_capture(call);
    auto work = checked_copy(call, plane_of(p->dstPtr, p->dstPos), plane_of(p->srcPtr, p->srcPos),
                             {p->extent.width, p->extent.height, p->extent.depth}, p->kind);
    return submit_copy(stream_of(stream, meaning), std::move(work), host, lock);
  });
}

// A symbol is device memory; the part that the call names must lie in it.
std::uint64_t part_of_symbol(const void* symbol, size_t offset, size_t bytes) {
  const machine::Object& object = symbol_object(symbol);
  require(offset <= object.size && bytes <= object.size - offset, cudaErrorInvalidValue, "the range leaves the symbol");
  return object.base + offset;
}

cudaError_t to_symbol(const char* call, const void* symbol, const void* from, size_t bytes, size_t offset,
                      cudaMemcpyKind kind, cudaStream_t stream, Default meaning, Host host) {
  return entry(call, [&](Lock& lock) {
    require(kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyHostToHost, cudaErrorInvalidMemcpyDirection,
            "a symbol is device memory");
    Plane destination{part_of_symbol(symbol, offset, bytes), bytes, bytes};
    auto work = checked_copy(call, destination, {address_of(from), bytes, bytes}, {bytes, 1, 1}, kind);
    return submit_copy(stream_of(stream, meaning), std::move(work), host, lock);
  });
}

cudaError_t from_symbol(const char* call, void* to, const void* symbol, size_t bytes, size_t offset,
                        cudaMemcpyKind kind, cudaStream_t stream, Default meaning, Host host) {
  return entry(call, [&](Lock& lock) {
    require(kind != cudaMemcpyHostToDevice && kind != cudaMemcpyHostToHost, cudaErrorInvalidMemcpyDirection,
            "a symbol is device memory");
    Plane source{part_of_symbol(symbol, offset, bytes), bytes, bytes};
    auto work = checked_copy(call, {address_of(to), bytes, bytes}, source, {bytes, 1, 1}, kind);
    return submit_copy(stream_of(stream, meaning), std::move(work), host, lock);
  });
}

cudaError_t set(const char* call, Plane destination, Extent extent, int value, cudaStream_t stream, Default meaning) {
  return entry(call, [&](Lock& lock) {
    return submit_set(stream_of(stream, meaning),
                      checked_set(call, destination, extent, static_cast<std::uint32_t>(value), 1), lock);
  });
}

cudaError_t set_linear(const char* call, void* to, int value, size_t bytes, cudaStream_t stream, Default meaning) {
  return set(call, {address_of(to), bytes, bytes}, {bytes, 1, 1}, value, stream, meaning);
}

cudaError_t set_plane(const char* call, void* to, size_t pitch, int value, size_t width, size_t height,
                      cudaStream_t stream, Default meaning) {
  return set(call, {address_of(to), pitch, pitch * height}, {width, height, 1}, value, stream, meaning);
}

cudaError_t set_volume(const char* call, const cudaPitchedPtr& to, int value, const cudaExtent& extent,
                       cudaStream_t stream, Default meaning) {
  return set(call, {address_of(to.ptr), to.pitch, to.pitch * to.ysize}, {extent.width, extent.height, extent.depth},
             value, stream, meaning);
}

constexpr auto kLegacy = Default::legacy;
constexpr auto kThread = Default::per_thread;

}  // namespace

extern "C" {

cudaError_t cudaMemcpy(void* to, const void* from, size_t n, cudaMemcpyKind kind) {
  return copy_linear("cudaMemcpy", to, from, n, kind, nullptr, kLegacy, Host::waits);
}
cudaError_t cudaMemcpy_ptds(void* to, const void* from, size_t n, cudaMemcpyKind kind) {
  return copy_linear("cudaMemcpy", to, from, n, kind, nullptr, kThread, Host::waits);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, cudaMemcpyKind kind, cudaStream_t s) {
  return copy_linear("cudaMemcpyAsync", to, from, n, kind, s, kLegacy, Host::goes_on);
}
cudaError_t cudaMemcpyAsync_ptsz(void* to, const void* from, size_t n, cudaMemcpyKind kind, cudaStream_t s) {
  return copy_linear("cudaMemcpyAsync", to, from, n, kind, s, kThread, Host::goes_on);
}
cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t n) {
  return copy_linear("cudaMemcpyPeer", to, from, n, cudaMemcpyDeviceToDevice, nullptr, kLegacy, Host::waits);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t n, cudaStream_t s) {
  return copy_linear("cudaMemcpyPeerAsync", to, from, n, cudaMemcpyDeviceToDevice, s, kLegacy, Host::goes_on);
}

cudaError_t cudaMemcpy2D(void* to, size_t tp, const void* from, size_t fp, size_t w, size_t h, cudaMemcpyKind kind) {
  return copy_plane("cudaMemcpy2D", to, tp, from, fp, w, h, kind, nullptr, kLegacy, Host::waits);
}
cudaError_t cudaMemcpy2D_ptds(void* to, size_t tp, const void* from, size_t fp, size_t w, size_t h,
                              cudaMemcpyKind kind) {
  return copy_plane("cudaMemcpy2D", to, tp, from, fp, w, h, kind, nullptr, kThread, Host::waits);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t tp, const void* from, size_t fp, size_t w, size_t h, cudaMemcpyKind kind,
                              cudaStream_t s) {
  return copy_plane("cudaMemcpy2DAsync", to, tp, from, fp, w, h, kind, s, kLegacy, Host::goes_on);
}
cudaError_t cudaMemcpy2DAsync_ptsz(void* to, size_t tp, const void* from, size_t fp, size_t w, size_t h,
                                   cudaMemcpyKind kind, cudaStream_t s) {
  return copy_plane("cudaMemcpy2DAsync", to, tp, from, fp, w, h, kind, s, kThread, Host::goes_on);
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
  return copy_volume("cudaMemcpy3D", p, nullptr, kLegacy, Host::waits);
}
cudaError_t cudaMemcpy3D_ptds(const cudaMemcpy3DParms* p) {
  return copy_volume("cudaMemcpy3D", p, nullptr, kThread, Host::waits);
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t s) {
  return copy_volume("cudaMemcpy3DAsync", p, s, kLegacy, Host::goes_on);
}
cudaError_t cudaMemcpy3DAsync_ptsz(const cudaMemcpy3DParms* p, cudaStream_t s) {
  return copy_volume("cudaMemcpy3DAsync", p, s, kThread, Host::goes_on);
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t n, size_t offset, cudaMemcpyKind kind) {
  return to_symbol("cudaMemcpyToSymbol", symbol, from, n, offset, kind, nullptr, kLegacy, Host::waits);
}
cudaError_t cudaMemcpyToSymbol_ptds(const void* symbol, const void* from, size_t n, size_t offset,
                                    cudaMemcpyKind kind) {
  return to_symbol("cudaMemcpyToSymbol", symbol, from, n, offset, kind, nullptr, kThread, Host::waits);
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t n, size_t offset, cudaMemcpyKind kind,
                                    cudaStream_t s) {
  return to_symbol("cudaMemcpyToSymbolAsync", symbol, from, n, offset, kind, s, kLegacy, Host::goes_on);
}
cudaError_t cudaMemcpyToSymbolAsync_ptsz(const void* symbol, const void* from, size_t n, size_t offset,
                                         cudaMemcpyKind kind, cudaStream_t s) {
  return to_symbol("cudaMemcpyToSymbolAsync", symbol, from, n, offset, kind, s, kThread, Host::goes_on);
}
cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t n, size_t offset, cudaMemcpyKind kind) {
  return from_symbol("cudaMemcpyFromSymbol", to, symbol, n, offset, kind, nullptr, kLegacy, Host::waits);
}
cudaError_t cudaMemcpyFromSymbol_ptds(void* to, const void* symbol, size_t n, size_t offset, cudaMemcpyKind kind) {
  return from_symbol("cudaMemcpyFromSymbol", to, symbol, n, offset, kind, nullptr, kThread, Host::waits);
}
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t n, size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t s) {
  return from_symbol("cudaMemcpyFromSymbolAsync", to, symbol, n, offset, kind, s, kLegacy, Host::goes_on);
}
cudaError_t cudaMemcpyFromSymbolAsync_ptsz(void* to, const void* symbol, size_t n, size_t offset, cudaMemcpyKind kind,
                                           cudaStream_t s) {
  return from_symbol("cudaMemcpyFromSymbolAsync", to, symbol, n, offset, kind, s, kThread, Host::goes_on);
}

cudaError_t cudaMemset(void* to, int value, size_t n) {
  return set_linear("cudaMemset", to, value, n, nullptr, kLegacy);
}
cudaError_t cudaMemset_ptds(void* to, int value, size_t n) {
  return set_linear("cudaMemset", to, value, n, nullptr, kThread);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t n, cudaStream_t s) {
  return set_linear("cudaMemsetAsync", to, value, n, s, kLegacy);
}
cudaError_t cudaMemsetAsync_ptsz(void* to, int value, size_t n, cudaStream_t s) {
  return set_linear("cudaMemsetAsync", to, value, n, s, kThread);
}
cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t w, size_t h) {
  return set_plane("cudaMemset2D", to, pitch, value, w, h, nullptr, kLegacy);
}
cudaError_t cudaMemset2D_ptds(void* to, size_t pitch, int value, size_t w, size_t h) {
  return set_plane("cudaMemset2D", to, pitch, value, w, h, nullptr, kThread);
}
cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t w, size_t h, cudaStream_t s) {
  return set_plane("cudaMemset2DAsync", to, pitch, value, w, h, s, kLegacy);
}
cudaError_t cudaMemset2DAsync_ptsz(void* to, size_t pitch, int value, size_t w, size_t h, cudaStream_t s) {
  return set_plane("cudaMemset2DAsync", to, pitch, value, w, h, s, kThread);
}
cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent e) {
  return set_volume("cudaMemset3D", to, value, e, nullptr, kLegacy);
}
cudaError_t cudaMemset3D_ptds(cudaPitchedPtr to, int value, cudaExtent e) {
  return set_volume("cudaMemset3D", to, value, e, nullptr, kThread);
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent e, cudaStream_t s) {
  return set_volume("cudaMemset3DAsync", to, value, e, s, kLegacy);
}
cudaError_t cudaMemset3DAsync_ptsz(cudaPitchedPtr to, int value, cudaExtent e, cudaStream_t s) {
  return set_volume("cudaMemset3DAsync", to, value, e, s, kThread);
}
}
