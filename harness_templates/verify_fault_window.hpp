// The switch of the launch-fault interposer (launch_fault_interposer.cpp), when it is preloaded: between open
// and close it counts the entry's runtime calls and fails the n-th. Looked up by name, since a harness runs
// without it as well.
#pragma once

#include <dlfcn.h>

namespace verify {

struct FaultWindow {
    using Open = void (*)(long fail_call);
    using Close = long (*)();
    using Failed = const char* (*)();

    Open open = reinterpret_cast<Open>(dlsym(RTLD_DEFAULT, "verify_fault_window_open"));
    Close close = reinterpret_cast<Close>(dlsym(RTLD_DEFAULT, "verify_fault_window_close"));
    Failed failed = reinterpret_cast<Failed>(dlsym(RTLD_DEFAULT, "verify_fault_window_failed"));

    bool present() const { return open != nullptr && close != nullptr && failed != nullptr; }
};

}  // namespace verify
