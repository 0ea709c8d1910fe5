// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/firmware_file.h"

#include "base/io/crypto.h"
#include "lab/vbmc/multipart.h"

#include <gtest/gtest.h>

namespace muster::lab::vbmc {
namespace {

TEST(FirmwareFile, hasTheSameBytesEachTime) {
  auto image = makeFirmware("BMC", "2.1.0");
  EXPECT_EQ(image, makeFirmware("BMC", "2.1.0"));
  EXPECT_NE(io::sha256Hex(image), io::sha256Hex(makeFirmware("BMC", "2.1.1")));
  auto header = readFirmwareHeader(image);
  ASSERT_TRUE(header) << header.error().str();
  EXPECT_EQ(header->component, "BMC");
  EXPECT_EQ(header->version, "2.1.0");
  EXPECT_TRUE(verifyFirmware(image));
}

TEST(FirmwareFile, oneFlippedByteIsCorrupt) {
  auto image = makeFirmware("BIOS", "1.4.2");
  image[image.size() / 2] ^= 1;
  auto verdict = verifyFirmware(image);
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().code(), ErrorCode::Corrupt);
}

TEST(FirmwareFile, refusesWhatIsNoFirmware) {
  for (auto bad : {"", "MZ", "muster-fw/1 {}", "muster-fw/1 {}\n", "muster-fw/1 []\nx",
                   "muster-fw/1 {\"component\":7}\nx"}) {
    auto header = readFirmwareHeader(bad);
    ASSERT_FALSE(header) << bad;
    EXPECT_EQ(header.error().code(), ErrorCode::Corrupt);
  }
}

TEST(Multipart, splitsPartsThatHoldAnyBytes) {
  std::string content("a\r\n--b\0c\r\n", 11);
  std::string body =
      "--xyz\r\nContent-Disposition: form-data; name=\"UpdateParameters\"\r\n\r\n{}\r\n--xyz\r\n"
      "Content-Disposition: form-data; filename=\"f\"; name=\"UpdateFile\"\r\nContent-Type: "
      "application/octet-stream\r\n\r\n" +
      content + "\r\n--xyz--\r\n";
  auto parts = splitMultipart("multipart/form-data; boundary=xyz", body);
  ASSERT_TRUE(parts) << parts.error().str();
  EXPECT_EQ(parts->at("UpdateParameters"), "{}");
  EXPECT_EQ(parts->at("UpdateFile"), content);
}

TEST(Multipart, refusesBrokenBodies) {
  EXPECT_FALSE(splitMultipart("application/json", "{}"));
  EXPECT_FALSE(splitMultipart("multipart/form-data", "--x--"));
  EXPECT_FALSE(splitMultipart("multipart/form-data; boundary=x", ""));
  EXPECT_FALSE(splitMultipart("multipart/form-data; boundary=x", "--x\r\nno end of header"));
  EXPECT_FALSE(
      splitMultipart("multipart/form-data; boundary=x", "--x\r\nA: b\r\n\r\ncontent without end"));
}

}  // namespace
}  // namespace muster::lab::vbmc
