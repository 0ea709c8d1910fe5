// SPDX-License-Identifier: Apache-2.0
// One import, in a process of its own, for tests that must see a crash and an end that never comes.
//   import_image_tool FILE rootfs|disk|live WORK OUT
// Exit status: 0 taken, 3 refused (the code and the words on standard output), 2 wrong usage.
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "provision/images/image_import.h"
#include "wire/pack_index.h"

#include <filesystem>
#include <iostream>

int main(int argc, char** argv) {
  using namespace muster;
  if (argc != 5) {
    std::cerr << "usage: import_image_tool FILE rootfs|disk|live WORK OUT\n";
    return 2;
  }
  const std::string kind_name = argv[2];
  const auto kind = kind_name == "disk"   ? inventory::ImageKind::Disk
                    : kind_name == "live" ? inventory::ImageKind::Live
                                          : inventory::ImageKind::RootFs;
  if (!io::makeDirs(argv[3])) return 2;
  // What is larger than an image may be is refused before anybody computes its SHA-256.
  std::error_code error;
  const bool small = std::filesystem::is_regular_file(argv[1], error) &&
                     std::filesystem::file_size(argv[1], error) <= wire::kMaxImageBytes;
  const auto sha256 = small ? io::sha256File(argv[1]).value_or("") : std::string(64, '0');
  const auto done =
      provision::importImage({argv[1], sha256}, kind, argv[3], argv[4], [](std::string_view) {});
  if (done) return 0;
  std::cout << toString(done.error().code()) << ": " << done.error().str() << "\n";
  return 3;
}
