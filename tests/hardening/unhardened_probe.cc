// SPDX-License-Identifier: Apache-2.0
// Built without any hardening, for tools/check-hardening to refuse.
#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  char copy[64];
  std::strcpy(copy, argc > 1 ? argv[1] : "nothing");  // NOLINT: what _FORTIFY_SOURCE would watch
  std::printf("%s\n", copy);
  return static_cast<int>(std::strlen(copy) & 1);
}
