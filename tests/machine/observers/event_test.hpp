// Tests that register themselves: EVENT_TEST(the_fault_that_it_would_catch) { ... EXPECT(condition); ... }
#pragma once

#include <cstdio>
#include <utility>
#include <vector>

namespace stage {

#define EXPECT(condition)                                                  \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::printf("%s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
      stage::failures += 1;                                                \
    }                                                                      \
  } while (false)

#define EVENT_TEST(name)                                                   \
  void name();                                                             \
  [[maybe_unused]] const bool registered_##name = stage::add(#name, name); \
  void name()

inline int failures = 0;

using EventTest = std::pair<const char*, void (*)()>;

inline std::vector<EventTest>& event_tests() {
  static std::vector<EventTest> tests;
  return tests;
}

inline bool add(const char* name, void (*test)()) {
  event_tests().emplace_back(name, test);
  return true;
}

// Runs every test of the program in the order of its file. Returns 0 when there are some and all pass.
inline int run_event_tests() {
  for (const auto& [name, test] : event_tests()) {
    const int before = failures;
    test();
    std::printf("%s %s\n", failures == before ? "ok  " : "FAIL", name);
  }
  return failures == 0 && !event_tests().empty() ? 0 : 1;
}

}  // namespace stage
