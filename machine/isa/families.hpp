// The families of instructions, and the mnemonics that several of them share (add is integer, float and half).
#pragma once

#include <span>

#include "ptx/decoder.hpp"

namespace machine {

std::span<const Opcode> integer_opcodes();
std::span<const Opcode> bits_opcodes();
std::span<const Opcode> float_opcodes();
std::span<const Opcode> special_opcodes();
std::span<const Opcode> convert_opcodes();
std::span<const Opcode> compare_opcodes();
std::span<const Opcode> move_opcodes();
std::span<const Opcode> memory_opcodes();
std::span<const Opcode> hint_opcodes();
std::span<const Opcode> atomic_opcodes();
std::span<const Opcode> async_opcodes();
std::span<const Opcode> mbarrier_opcodes();
std::span<const Opcode> tensor_map_opcodes();
std::span<const Opcode> matrix_opcodes();
std::span<const Opcode> matrix_move_opcodes();
std::span<const Opcode> collective_opcodes();
std::span<const Opcode> barrier_opcodes();
std::span<const Opcode> control_opcodes();
std::span<const Opcode> video_opcodes();
std::span<const Opcode> wmma_opcodes();
std::span<const Opcode> call_opcodes();
std::span<const Opcode> stack_opcodes();
std::span<const Opcode> shared_mnemonics();  // add sub mul mad fma div abs neg min max: dispatched by type

// The integer members of shared mnemonics.
void decode_integer_add(Decoder& d);
void decode_integer_sub(Decoder& d);
void decode_integer_mul(Decoder& d);
void decode_integer_mad(Decoder& d);
void decode_integer_div(Decoder& d);
void decode_integer_abs_neg(Decoder& d, bool abs);
void decode_integer_min_max(Decoder& d, bool min);

void decode_syncwarp(Decoder& d);          // bar.warp.sync
void decode_async_arrive(Decoder& d);      // cp.async.mbarrier.arrive
void decode_bulk(Decoder& d);              // behind cp.async.bulk
void decode_bulk_reduce(Decoder& d);       // behind cp.reduce.async.bulk
void decode_tensor_copy(Decoder& d);       // behind cp.async.bulk.tensor, and cp.async.bulk.prefetch.tensor
void decode_tensor_reduce(Decoder& d);     // behind cp.reduce.async.bulk.tensor
void decode_tensor_map_fence(Decoder& d);  // behind fence.proxy.tensormap::generic
void decode_store_async(Decoder& d);       // st.async
void decode_reduce_async(Decoder& d);      // red.async

// Functions that the system defines, and a call of which is an instruction: printf, assert. False: `name` is none.
bool decode_system_call(Decoder& d, std::string_view name, const std::vector<Operand>& arguments,
                        const std::vector<Operand>& results);
// The same of the device's heap: malloc, free.
bool decode_heap_call(Decoder& d, std::string_view name, const std::vector<Operand>& arguments,
                      const std::vector<Operand>& results);
// The area of a call's argument or result, of at least so many bytes.
Slot area_of(Decoder& d, const Operand& o, unsigned bytes);

// f32 and f64 members.
void decode_float_arithmetic(Decoder& d, std::string_view what);  // add sub mul fma
void decode_float_div(Decoder& d);
void decode_float_abs_neg(Decoder& d, bool abs);
void decode_float_min_max(Decoder& d, bool min);

// f16, bf16 and their pairs.
void decode_half_arithmetic(Decoder& d, std::string_view what);  // add sub mul fma
void decode_half_abs_neg(Decoder& d, bool abs);
void decode_half_min_max(Decoder& d, bool min);
void decode_half_set(Decoder& d, bool predicate);             // set / setp on halves
void decode_half_special(Decoder& d, std::string_view what);  // ex2 tanh

}  // namespace machine
