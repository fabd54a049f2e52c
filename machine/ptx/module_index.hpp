#pragma once

#include "exec/module.hpp"

namespace machine {

// Fills in all of `module` that follows from its text. Throws PtxError.
void index_module(ModuleText& module);

}  // namespace machine
