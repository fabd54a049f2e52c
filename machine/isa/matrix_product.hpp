// D = A * B + C of any shape and type, element by element: what the faster paths of ops_matrix.cpp leave over.
#pragma once

#include "exec/inst.hpp"
#include "isa/matrix_layout.hpp"

namespace machine {

class Decoder;
struct Operand;

struct Product {
  unsigned m = 16, n = 8, k = 16;
  Type d = Type::f32, a = Type::f16, b = Type::f16, c = Type::f32;
  bool saturate = false;
  char rounding = 'n';  // of f64
  enum Bits : std::uint8_t { multiplied, and_popc, xor_popc } bits = multiplied;
  MatrixFragment fragment[4];  // of d, a, b, c
  unsigned starts[4] = {};     // where their registers begin in the slot list
  // Tiles of 16 x 8 x 16 for multiply_halves and multiply_bfloats, downwards and across; 0: none.
  unsigned tiles_down = 0, tiles_across = 0;
};

// An element as a number.
double real_value(Type t, std::uint64_t raw);
std::int64_t whole_value(Type t, std::uint64_t raw);

// Emits the product of the operands 0 to 3, d a b c, each with the registers that its fragment has.
void emit_product(Decoder& d, Product p);

}  // namespace machine
