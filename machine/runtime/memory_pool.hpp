// Memory pools: what stream-ordered allocation draws from. Only their bookkeeping exists here; every allocation is an
// object of its own, so that a use after a free is seen whatever the pool would have reused.
#pragma once

#include <cstddef>

namespace machine::runtime {

void pool_took(std::size_t bytes);
void pool_gave_back(std::size_t bytes);

}  // namespace machine::runtime
