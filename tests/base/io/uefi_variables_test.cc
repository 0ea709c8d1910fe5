// SPDX-License-Identifier: Apache-2.0
// Load options as they lie in the firmware's variables: a real one, and any cut of it. What a real
// efibootmgr writes is read by tests/agent/imaging/uefi_boot_test.cc.
#include "base/io/uefi_variables.h"

#include "base/io/files.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::io {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kGlobal = "-8be4df61-93ca-11d2-aa0d-00e098032b8c";

/// EFI_LOAD_OPTION of a NIC: MAC and IPv4 nodes (UEFI 2.10, 10.3.4.11 and 10.3.4.12).
std::string nicOption() {
  using namespace std::string_literals;
  std::string out = "\x01\x00\x00\x00"s;  // active
  std::string path = "\x03\x0b\x25\x00"s + std::string(33, '\x52');
  path += "\x03\x0c\x1b\x00"s + std::string(23, '\0') + "\x7f\xff\x04\x00"s;
  out += static_cast<char>(path.size());
  out += '\0';
  for (const char letter : "PXE"s) out += std::string{letter, '\0'};
  return out + "\0\0"s + path;
}

TEST(UefiLoadOption, anyCutOfARealOneIsRefusedOrReadWithoutGoingBeyondIt) {
  const auto whole = nicOption();
  ASSERT_TRUE(parseLoadOption(whole));
  EXPECT_EQ(parseLoadOption(whole)->kind, UefiOption::Kind::Network);
  EXPECT_EQ(parseLoadOption(whole)->name, "PXE");
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const std::string cut = whole.substr(0, bytes);
    EXPECT_FALSE(parseLoadOption(cut)) << bytes;
  }
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const char value : {'\0', '\1', '\x7f', '\xff'}) {
      auto bent = whole;
      bent[at] = value;
      (void)parseLoadOption(bent);  // AddressSanitizer and _GLIBCXX_ASSERTIONS look on
    }
}

class UefiVariables : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) {
    ASSERT_TRUE(writeFileAtomic(folder_ / (name + kGlobal), content));
  }
  test::TempFolder folder_;
};

TEST_F(UefiVariables, whatIsNoOptionIsAnOtherAndWhatIsNoNumberIsPassedOver) {
  EXPECT_FALSE(*readUefiBoot(folder_ / "none"));
  put("Boot0000", "\x07");
  put("BootZZZZ", nicOption());
  put("Boot000A", std::string("\7\0\0\0", 4) + nicOption());
  put("BootOrder", std::string("\7\0\0\0\x0a\0\0\0", 8));
  const auto boot = readUefiBoot(folder_.path());
  ASSERT_TRUE(boot) << boot.error().str();
  EXPECT_EQ((**boot).options.size(), 2u);
  EXPECT_EQ((**boot).options.at(0).kind, UefiOption::Kind::Other);
  EXPECT_EQ((**boot).options.at(10).kind, UefiOption::Kind::Network);
  EXPECT_THAT((**boot).order, ElementsAre(10, 0));
  put("BootOrder", std::string("\7\0\0\0\x0a", 5));
  EXPECT_THAT(readUefiBoot(folder_.path()).error().text(), HasSubstr("half a number"));
}

}  // namespace
}  // namespace muster::io
