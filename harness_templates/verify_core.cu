// The fixed part of every harness. It knows no kernel, so it is compiled once for all of them.
#include "verify_main.cuh"

int main(int count, char** words) { return verify::main_command(count, words); }
