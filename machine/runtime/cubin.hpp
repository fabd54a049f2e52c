// The one thing that a PTX machine learns from machine code: how many registers ptxas gave each kernel.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace machine::runtime {

// Kernel name (mangled) to registers a thread, from the register-count records of the ELF section .nv.info.
// Empty when the bytes are no such file: a cubin is a help here, never needed.
std::map<std::string, unsigned> registers_in_cubin(std::string_view elf);

}  // namespace machine::runtime
