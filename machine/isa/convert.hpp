// What the two files of the cvt family share.
#pragma once

#include "ptx/decoder.hpp"

namespace machine {

// Decodes the packed forms (x2, x4, pack); false when the instruction is none of them (nothing is consumed then).
bool decode_convert_packed(Decoder& d);
void decode_convert(Decoder& d);

}  // namespace machine
