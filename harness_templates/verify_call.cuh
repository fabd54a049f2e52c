// One call of the entry: a case's buffers on the device, the arguments, the counted launches.
#pragma once

#include <algorithm>

#include "verify_buffers.cuh"
#include "verify_entry.hpp"
#include "verify_fault_window.hpp"
#include "verify_launch_count.cuh"

namespace verify {

class Call {
  public:
    Call(const CaseFile& file, const RunLine& run) : file_(file), run_(run) {
        if (file.values.size() != verify_value_count)
            throw BadInput(run.case_path + ": was written for another contract than this harness");
        std::size_t nulls = run.null.size();
        for (const BufferFile& buffer : file.buffers) {
            buffers_.push_back(std::make_unique<DeviceBuffer>(buffer, run, file.sparse));
            std::uint64_t address = reinterpret_cast<std::uint64_t>(buffers_.back()->data());
            std::uint64_t size = buffer.bytes;
            if (const auto found = run.misalign.find(buffer.name); found != run.misalign.end())
                address += found->second;
            if (const auto found = run.shrink.find(buffer.name); found != run.shrink.end())
                size -= std::min(size, found->second);
            const std::size_t null = run.null.count(buffer.name);
            nulls -= null;
            if (null != 0) address = 0;
            arguments_.pointers.push_back(reinterpret_cast<void*>(address));
            arguments_.sizes.push_back(size);
        }
        arguments_.values = file.values;
        arguments_.null_struct = nulls != 0;  // what is no buffer's name is the struct's
    }

    // Device bytes of a case, as this run allocates them.
    static std::uint64_t bytes_needed(const CaseFile& file, const RunLine& run) {
        std::uint64_t bytes = 0;
        for (const BufferFile& buffer : file.buffers)
            bytes += run.mode == "refuse" ? std::min(buffer.bytes, refused_allocation) : buffer.bytes;
        return bytes;
    }

    void upload() {
        for (const auto& buffer : buffers_) buffer->upload();
    }
    void upload_outputs() {
        for (const auto& buffer : buffers_)
            if (buffer->file().role != Role::in) buffer->upload();
    }
    void upload_inputs() {
        for (const auto& buffer : buffers_)
            if (buffer->file().role == Role::in || buffer->file().role == Role::inout) buffer->upload();
    }
    // Another case's data in the buffers of this one.
    void upload_from(const CaseFile& other) {
        if (other.buffers.size() != buffers_.size()) throw BadInput("the captured case has other buffers");
        for (std::size_t i = 0; i < other.buffers.size(); ++i) {
            const BufferFile& file = other.buffers[i];
            const DeviceBuffer& buffer = *buffers_[i];
            if (file.bytes != buffer.bytes()) throw BadInput("the captured case gives " + file.name + " another size");
            Image image = filled_image(file, run_.dead, other.sparse, file.bytes);
            image.scatter(file.live, file.data);
            write_segments(buffer.data(), image.segments, image.bytes.data());
        }
    }
    // Whether some buffer is input and output at once.
    bool in_place() const {
        return std::any_of(buffers_.begin(), buffers_.end(),
                           [](const auto& buffer) { return buffer->file().role == Role::inout; });
    }
    void upload_in_place() {
        for (const auto& buffer : buffers_)
            if (buffer->file().role == Role::inout) buffer->upload();
    }
    void restrict_to_live() {
        for (const auto& buffer : buffers_) buffer->restrict_to_live();
    }
    void lift_restriction() {
        for (const auto& buffer : buffers_) buffer->lift_restriction();
    }

    // The entry's own answer. Launches are counted; errors that only the runtime knows of are left there.
    cudaError_t enter(cudaStream_t stream) {
        launches.open = true;
        const cudaError_t status = verify_call_entry(arguments_, stream);
        launches.open = false;
        return status;
    }

    // A call that must succeed.
    void run(cudaStream_t stream) {
        const LaunchCount before = launches;
        const cudaError_t status = enter(stream);
        if (status != cudaSuccess) throw CudaFailure("the entry returned " + describe(status));
        if (launches.rejected != before.rejected)
            throw CudaFailure("a kernel launch failed with " + describe(launches.first_error) +
                              ", but the entry returned cudaSuccess");
    }

    void collect(Output& output, bool second = false) const {
        for (const auto& buffer : buffers_) buffer->collect(output, second);
    }

    // Promised bytes of every output, in order.
    std::vector<OutputData> results() const {
        std::vector<OutputData> found;
        for (const auto& buffer : buffers_)
            if (buffer->file().role == Role::out || buffer->file().role == Role::inout)
                found.push_back({buffer->file().name, "promised", buffer->promised()});
        return found;
    }

    const std::vector<std::unique_ptr<DeviceBuffer>>& buffers() const { return buffers_; }
    const CaseFile& file() const { return file_; }
    const RunLine& line() const { return run_; }

  private:
    const CaseFile& file_;
    const RunLine& run_;
    std::vector<std::unique_ptr<DeviceBuffer>> buffers_;
    Arguments arguments_;
};

}  // namespace verify
