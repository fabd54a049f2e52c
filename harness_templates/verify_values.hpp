// Arguments without types: the production code's own parameter types decide what a value becomes.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace verify {

// Input that cannot be used: one line that says where and why.
struct BadInput : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// A device address that converts to any object pointer type.
class Pointer {
  public:
    explicit Pointer(void* address) : address_(address) {}
    template <class T>
    operator T*() const {
        return static_cast<T*>(address_);
    }

  private:
    void* address_;
};

// A number that converts to any arithmetic or enumeration type which can hold it, and throws otherwise.
// Integers are kept in 128 bits, so that both int64_t and size_t parameters can be given their extremes.
class Value {
  public:
    static Value of_integer(__int128 integer) { return Value(false, integer, 0.0); }
    static Value of_real(double real) { return Value(true, 0, real); }

    template <class T, std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>, int> = 0>
    operator T() const {
        if constexpr (std::is_enum_v<T>) {
            return static_cast<T>(static_cast<std::underlying_type_t<T>>(*this));
        } else if constexpr (std::is_same_v<T, bool>) {
            return real_ ? number_ != 0.0 : integer_ != 0;
        } else if constexpr (std::is_floating_point_v<T>) {
            return real_ ? static_cast<T>(number_) : static_cast<T>(integer_);
        } else {
            const __int128 integer = whole();
            if (integer < static_cast<__int128>(std::numeric_limits<T>::min()) ||
                integer > static_cast<__int128>(std::numeric_limits<T>::max()))
                throw BadInput("an argument of value " + text() + " does not fit its " +
                               std::to_string(8 * sizeof(T)) + "-bit parameter");
            return static_cast<T>(integer);
        }
    }

    std::string text() const {
        if (real_) return std::to_string(number_);
        const bool negative = integer_ < 0;
        unsigned __int128 rest = negative ? -static_cast<unsigned __int128>(integer_) : integer_;
        std::string digits;
        do {
            digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
            rest /= 10;
        } while (rest != 0);
        return negative ? "-" + digits : digits;
    }

  private:
    Value(bool real, __int128 integer, double number) : real_(real), integer_(integer), number_(number) {}

    __int128 whole() const {
        if (!real_) return integer_;
        if (number_ != std::trunc(number_))
            throw BadInput("an argument of value " + text() + " is given to an integer parameter");
        return static_cast<__int128>(number_);
    }

    bool real_;
    __int128 integer_;
    double number_;
};

// The literal 0 of a contract: a number, or a null pointer where the parameter is one.
class Zero {
  public:
    template <class T, std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>, int> = 0>
    operator T() const {
        return static_cast<T>(0);
    }
    template <class T>
    operator T*() const {
        return nullptr;
    }
};

// What the generated glue draws from: one slot a buffer, one slot a scalar expression of the contract.
struct Arguments {
    std::vector<void*> pointers;
    std::vector<std::uint64_t> sizes;
    std::vector<Value> values;
    bool null_struct = false;  // the launcher gets a null pointer in place of its struct

    Pointer pointer(std::size_t buffer) const { return Pointer(pointers.at(buffer)); }
    Value bytes(std::size_t buffer) const { return Value::of_integer(sizes.at(buffer)); }
    Value value(std::size_t slot) const { return values.at(slot); }
    template <class Struct>
    Struct* structure(Struct& filled) const {
        return null_struct ? nullptr : &filled;
    }
};

// Fields of an argument struct are set through this, since a built-in assignment from Value is ambiguous.
template <class Field>
void assign(Field& field, const Pointer& pointer) {
    field = pointer;
}
template <class Field>
void assign(Field& field, const Value& value) {
    field = static_cast<Field>(value);
}
template <class Field>
void assign(Field& field, const Zero& zero) {
    field = static_cast<Field>(zero);
}

}  // namespace verify
