// Device buffers of one call: exact-size allocations, their images, what was changed in them.
#pragma once

#include <memory>

#include "verify_check.cuh"
#include "verify_manifest.hpp"
#include "verify_output_file.hpp"
#include "verify_regions.cuh"
#include "verify_segments.cuh"

namespace verify {

constexpr std::uint64_t runtime_alignment = 256;       // what cudaMalloc guarantees
constexpr std::uint64_t refused_allocation = 1 << 20;  // most that is allocated for a call that must be refused

// How far past the allocation's start a placement puts the base pointer of a buffer: a multiple of what is promised,
// each in turn of those that a load of 16 bytes can tell apart.
inline std::uint64_t moved_by(std::uint64_t placement, std::uint64_t align) {
    constexpr std::uint64_t widest = 16;
    if (placement == 0 || align >= runtime_alignment) return 0;
    const std::uint64_t multiples = align < widest ? std::max<std::uint64_t>(widest / align, 2) - 1 : 1;
    return align * (1 + (placement - 1) % multiples);
}

// One buffer, one allocation. The bytes before the base pointer, where the placement moves it, hold the fill and are
// watched too.
class DeviceBuffer {
  public:
    DeviceBuffer(const BufferFile& file, const RunLine& run, bool sparse)
        : file_(file), refused_(run.mode == "refuse") {
        bytes_ = refused_ ? std::min(file.bytes, refused_allocation) : file.bytes;
        // What may be read although it is dead is written even then, or initcheck would report the reading.
        const bool readable = !file.strict && (file.role == Role::in || file.role == Role::inout);
        const bool live_only = run.mode == "live-only" && !readable;
        const std::string& fill = file.role == Role::out         ? run.output
                                  : file.role == Role::workspace ? run.workspace
                                                                 : run.dead;
        front_ = live_only ? 0 : moved_by(run.placement, file.align);
        filled_ = !live_only;
        if (live_only) {
            image_ = live_image(file);
        } else {
            image_ = filled_image(file, fill, sparse, bytes_);
            if (bytes_ == file.bytes) image_.scatter(file.live, file.data);
            front_image_.resize(front_);
            fill_bytes(front_image_.data(), 0, front_, file.fills.at(fill), file.element);
        }
        // Never empty: a buffer of no bytes still gets an address of its own.
        VERIFY_CHECK(cudaMalloc(&base_, std::max<std::uint64_t>(bytes_ + front_, 1)));
    }
    DeviceBuffer(const DeviceBuffer&) = delete;
    DeviceBuffer& operator=(const DeviceBuffer&) = delete;
    ~DeviceBuffer() { cudaFree(base_); }

    void* data() const { return static_cast<char*>(base_) + front_; }
    const BufferFile& file() const { return file_; }
    const Image& image() const { return image_; }
    std::uint64_t bytes() const { return bytes_; }

    void upload() const {
        if (front_ != 0) copy_to_device(base_, front_image_.data(), front_);
        write_segments(data(), image_.segments, image_.bytes.data());
    }

    // Only under the strict rule: workspaces and masked buffers stay open.
    void restrict_to_live() {
        if (!file_.strict || file_.role == Role::workspace || bytes_ == 0) return;
        std::vector<ByteRun> open = file_.live;
        open.insert(open.end(), file_.promised.begin(), file_.promised.end());
        std::sort(open.begin(), open.end(), [](ByteRun a, ByteRun b) { return a.offset < b.offset; });
        regions_ = std::make_unique<Regions>(base_, bytes_ + front_, data(), guarded(open, 0, bytes_));
    }

    void lift_restriction() {
        if (regions_) regions_->lift();
        regions_.reset();
    }

    // Promised bytes as they are now, concatenated.
    std::vector<std::uint8_t> promised() const { return read(file_.promised).bytes; }

    // Adds this buffer's results and intrusions. second: the results are the other stream's.
    void collect(Output& output, bool second) const {
        const bool written = !refused_ && (file_.role == Role::out || file_.role == Role::inout);
        if (written) {
            output.data.push_back({file_.name, second ? "second" : "promised", promised()});
            if (!second && filled_) output.data.push_back({file_.name, "prior", image_.gather(file_.promised)});
        }
        if (!second && !refused_ && filled_ && file_.read_back)
            output.data.push_back({file_.name, "all", read({{0, bytes_}}).bytes});

        if (front_ != 0) append(output.intrusions, front_changes());
        // A workspace is the kernel's own, unless the call was refused; without a fill, only inputs are known.
        const bool own = file_.role == Role::workspace && !refused_;
        const bool unknown = !filled_ && file_.role != Role::in && file_.role != Role::inout;
        if (own || unknown) return;
        const std::vector<ByteRun> none;
        append(output.intrusions, changes(file_.name, image_, read(image_.segments), written ? file_.promised : none));
    }

  private:
    static void append(std::vector<Change>& all, std::vector<Change> more) {
        all.insert(all.end(), more.begin(), more.end());
    }

    Image read(const std::vector<ByteRun>& runs) const {
        Image now;
        std::uint64_t size = 0;
        for (const ByteRun& run : runs) {
            if (run.length != 0) now.segments.push_back(run);
            size += run.length;
        }
        now.bytes.resize(size);
        read_segments(data(), now.segments, now.bytes.data());
        return now;
    }

    // Bytes before the buffer, at negative offsets.
    std::vector<Change> front_changes() const {
        const Image before{{{0, front_}}, front_image_};
        Image after = before;
        VERIFY_CHECK(cudaMemcpy(after.bytes.data(), base_, front_, cudaMemcpyDeviceToHost));
        std::vector<Change> found = changes(file_.name, before, after, {});
        for (Change& change : found) change.offset -= static_cast<std::int64_t>(front_);
        return found;
    }

    const BufferFile& file_;
    bool refused_;
    bool filled_ = true;  // false: nothing but the live bytes was written
    std::uint64_t bytes_ = 0;
    std::uint64_t front_ = 0;
    Image image_;
    std::vector<std::uint8_t> front_image_;
    void* base_ = nullptr;
    std::unique_ptr<Regions> regions_;
};

}  // namespace verify
