// SPDX-License-Identifier: Apache-2.0
// Leaks on purpose: the address sanitizer's run is worth something only if it says so.
#include <memory>

namespace {

constexpr std::size_t kLeakBytes = 77;
char* volatile only_owner = nullptr;

}  // namespace

int main() {
  only_owner = std::make_unique<char[]>(kLeakBytes).release();
  only_owner = nullptr;
}
