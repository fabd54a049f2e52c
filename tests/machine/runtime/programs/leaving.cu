// Ways to leave: the argument says which. The work that nobody waited for is checked all the same.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "expect.cuh"

__global__ void write(int* p) { *p = 1; }

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "return";
  int* p;
  OK(cudaMalloc(&p, 4));
  write<<<1, 1>>>(p);
  OK(cudaDeviceSynchronize());
  write<<<1, 1>>>(p);  // nobody waits for this one
  if (std::strcmp(how, "exit") == 0) std::exit(5);
  if (std::strcmp(how, "abort") == 0) std::abort();
  if (std::strcmp(how, "crash") == 0) *reinterpret_cast<volatile int*>(8) = 1;
  if (std::strcmp(how, "_exit") == 0) _exit(0);
  if (std::strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
  if (std::strcmp(how, "fork") == 0) {
    pid_t child = fork();
    if (child == 0) std::exit(cudaMalloc(&p, 4) == cudaErrorInitializationError ? 0 : 9);
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return finish();
  }
  return 0;
}
