// Prints what the harness's host headers make of a case file: the image of each buffer, or why it is refused.
#include <cstdio>

#include "verify_image.hpp"

int main(int count, char** words) {
  try {
    const verify::CaseFile file = verify::load_case(words[1]);
    for (const verify::Value& value : file.values) std::printf("value %s\n", value.text().c_str());
    for (const verify::BufferFile& buffer : file.buffers) {
      const verify::Image filled = verify::filled_image(buffer, words[2], file.sparse, buffer.bytes);
      verify::Image image = filled;
      image.scatter(buffer.live, buffer.data);
      for (std::size_t i = 0, at = 0; i < image.segments.size(); at += image.segments[i++].length) {
        const verify::ByteRun& segment = image.segments[i];
        std::printf("segment %s %llu ", buffer.name.c_str(), static_cast<unsigned long long>(segment.offset));
        for (std::size_t b = 0; b < segment.length; ++b) std::printf("%02x", image.bytes[at + b]);
        std::printf("\n");
      }
    }
  } catch (const verify::BadInput& problem) {
    std::printf("%s\n", problem.what());
    return 2;
  }
  return count == 3 ? 0 : 1;
}
