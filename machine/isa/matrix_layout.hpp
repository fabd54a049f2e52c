// Where the elements of a warp's matrices lie: in which lane, register and part of it.
#pragma once

#include <cstdint>

#include "exec/types.hpp"

namespace machine {

enum class Role : std::uint8_t { a, b, c };  // c: the accumulator D as well

// The registers of one matrix of D = A * B + C.
struct MatrixFragment {
  Role role = Role::a;
  bool quad_pairs = false;  // of mma.m8n8k4 on halves: four matrices, each in four lanes of either half of the warp
  bool turned = false;      // there: A by columns, or B by rows
  bool mirrored = false;    // lies as the other operand of the transposed product would, with row and column exchanged
  std::uint8_t bits = 16;   // of an element
  std::uint8_t registers = 4;
  std::uint16_t rows = 16, columns = 16;

  unsigned per() const { return bits >= 32 ? 1 : 32 / bits; }  // elements in a register
  unsigned matrices() const { return quad_pairs ? 4 : 1; }
};

struct Element {
  unsigned row, column, matrix;
};

// What part `part` of register `reg` of lane `lane` holds. Matrices larger than 16 x 8 (A: 16 rows, B: 8 columns) lie
// tile behind tile; registers beyond the last element repeat the first ones.
Element element_of(const MatrixFragment& f, unsigned lane, unsigned reg, unsigned part);

unsigned bits_of_type(Type t);  // of an element of a matrix

}  // namespace machine
