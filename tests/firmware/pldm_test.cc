// SPDX-License-Identifier: Apache-2.0
#include "firmware/pldm.h"

#include "firmware/files.h"
#include "inventory/model/firmware.h"
#include "tests/firmware/pldm_package.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::firmware {
namespace {

using test::PldmBuilder;

class PldmFormats : public testing::TestWithParam<int> {};

TEST_P(PldmFormats, areRead) {
  const auto bytes =
      PldmBuilder{.revision = GetParam(), .components = {{"3.14", "fpga"}, {"0x14", "cpld"}}}
          .build();
  ASSERT_TRUE(looksLikePldm(bytes));
  const auto package = parsePldm(bytes, bytes.size());
  ASSERT_TRUE(package) << package.error().str();
  EXPECT_EQ(package->version, "HGX-24.1");
  ASSERT_EQ(package->components.size(), 2u);
  EXPECT_EQ(bytes.substr(package->components[1].offset_bytes, package->components[1].size_bytes),
            "cpld");
  EXPECT_TRUE(package->isFor("iana:5703"));
  EXPECT_FALSE(package->isFor("iana:1647"));
  EXPECT_TRUE(package->bears("3.14"));
  EXPECT_TRUE(package->bears("0x14"));
  EXPECT_FALSE(package->bears("3.15"));
  EXPECT_TRUE(checkPldmPayload(bytes));
}

TEST_P(PldmFormats, anyByteOfTheHeaderThatIsWrongIsNoticed) {
  const auto bytes = PldmBuilder{.revision = GetParam()}.build();
  const auto header = parsePldm(bytes, bytes.size())->header_bytes - (GetParam() == 4 ? 4 : 0);
  for (std::size_t i = 0; i < header; ++i) {
    auto damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_FALSE(parsePldm(damaged, damaged.size())) << "byte " << i;
  }
}

TEST_P(PldmFormats, everyTruncationIsNoticed) {
  const auto bytes = PldmBuilder{.revision = GetParam()}.build();
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(parsePldm(std::string_view(bytes).substr(0, size), size)) << size;
}
INSTANTIATE_TEST_SUITE_P(All, PldmFormats, testing::Range(1, 5));

/// A header whose checksum is right and whose content is not.
std::string withFixedChecksum(std::string bytes, std::size_t header) {
  const auto crc = PldmBuilder::number(PldmBuilder::crc(bytes.substr(0, header - 4)), 4);
  return bytes.replace(header - 4, 4, crc);
}

TEST(Pldm, lengthsThatLieAreNoticedBehindAGoodChecksum) {
  const auto bytes = PldmBuilder{}.build();
  const auto header = parsePldm(bytes, bytes.size())->header_bytes;
  for (std::size_t i = 19; i < header - 4; ++i)
    for (const char value : {'\x00', '\x7f', '\xff'}) {
      auto odd = bytes;
      odd[i] = value;
      odd = withFixedChecksum(odd, header);
      const auto package =
          parsePldm(odd, odd.size());  // whatever it says, it ends, and within the file
      for (const auto& component : package ? package->components : std::vector<PldmComponent>())
        EXPECT_LE(std::uintmax_t{component.offset_bytes} + component.size_bytes, odd.size());
    }
}

TEST(Pldm, damagedImagesAreNoticedWhereTheFormatCan) {
  auto bytes = PldmBuilder{.revision = 4}.build();
  bytes.back() = '?';
  EXPECT_TRUE(parsePldm(bytes, bytes.size()));
  ASSERT_FALSE(checkPldmPayload(bytes));
  EXPECT_THAT(checkPldmPayload(bytes).error().text(), testing::HasSubstr("CRC-32"));
}

TEST(FirmwareInspection, wantsTheVersionAndTheDeviceThatAreDeclared) {
  const auto bytes = PldmBuilder{}.build();
  inventory::FirmwareComponent fpga{"HGX_FW_FPGA_0", "3.14", "/f/fpga.fwpkg", ""};
  EXPECT_TRUE(inspectImage(fpga, {"3.14", "/f/fpga.fwpkg", ""}, bytes, bytes.size()));
  const auto other = inspectImage(fpga, {"3.15", "/f/fpga.fwpkg", ""}, bytes, bytes.size());
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().text(),
              testing::AllOf(testing::HasSubstr("3.14"), testing::HasSubstr("3.15")));
  fpga.device = "iana:1647";
  ASSERT_FALSE(inspectImage(fpga, {"3.14", "/f/fpga.fwpkg", ""}, bytes, bytes.size()));
  EXPECT_FALSE(inspectImage(fpga, {"3.14", "/f/fpga.fwpkg", ""}, "anything",
                            8));  // no package says whom it is for
  fpga.device.clear();
  EXPECT_TRUE(inspectImage(fpga, {"3.14", "/f/fpga.fwpkg", ""}, "anything", 8));
}

}  // namespace
}  // namespace muster::firmware
