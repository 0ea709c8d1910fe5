// SPDX-License-Identifier: Apache-2.0
#include "provision/images/fetch/apt_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::provision {
namespace {

using testing::HasSubstr;

const std::string kAcquire = "600 URI Acquire\nURI: http://a/b:c\nFilename: /x/y\n\n";

TEST(AptMessage, comesInPartsAndSeveralAtOnce) {
  AptMessageReader reader;
  for (const char c : kAcquire) {
    const auto none = reader.next();
    ASSERT_TRUE(none);
    EXPECT_FALSE(*none);
    reader.add({&c, 1});
  }
  reader.add("\n\n" + kAcquire);  // more empty lines than one, as apt itself takes them
  for (int i = 0; i < 2; ++i) {
    const auto message = reader.next();
    ASSERT_TRUE(message && *message);
    EXPECT_EQ((*message)->number, 600);
    EXPECT_EQ((*message)->words, "URI Acquire");
    EXPECT_EQ((*message)->field("uri"), "http://a/b:c");
    EXPECT_EQ((*message)->field("Size"), std::nullopt);
    EXPECT_EQ(toText(**message), kAcquire);
  }
  EXPECT_FALSE(reader.hasPart());
  EXPECT_FALSE(*reader.next());
}

TEST(AptMessage, aValueMayGoOnInTheNextLine) {
  AptMessageReader reader;
  reader.add("201 URI Done\nGPGVOutput: GOODSIG 1\n GOODSIG 2\nURI: gpgv:/x\n\n");
  const auto message = reader.next();
  ASSERT_TRUE(message && *message);
  EXPECT_EQ((*message)->field("GPGVOutput"), "GOODSIG 1 GOODSIG 2");
  EXPECT_EQ((*message)->fields.size(), 2u);
}

TEST(AptMessage, nothingInAValueMakesALineOfItsOwn) {
  const AptMessage message{400, "URI Failure", {{"Message", "a\n201 URI Done\r\nb"}, {"URI", "u"}}};
  EXPECT_EQ(toText(message), "400 URI Failure\nMessage: a 201 URI Done  b\nURI: u\n\n");
}

TEST(AptMessage, whatIsNoneIsRefused) {
  for (const auto* text :
       {"hello\n\n", "20 URI\n\n", "2010 URI\n\n", "-10 URI\n\n", "201 URI Done\nno field\n\n",
        "201 URI Done\n: value\n\n", "201\n x\n\n"}) {
    AptMessageReader reader;
    reader.add(text);
    const auto message = reader.next();
    ASSERT_FALSE(message) << text;
    EXPECT_EQ(message.error().code(), ErrorCode::Corrupt);
  }
}

TEST(AptMessage, oneWithoutAnEndIsRefused) {
  AptMessageReader reader;
  reader.add("600 URI Acquire\nURI: ");
  reader.add(std::string(apt::kMaxMessageBytes, 'x'));
  const auto message = reader.next();
  ASSERT_FALSE(message);
  EXPECT_THAT(message.error().str(), HasSubstr("has more than"));
}

}  // namespace
}  // namespace muster::provision
