// SPDX-License-Identifier: Apache-2.0
#include "base/io/gzip.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/run_async.h"

namespace muster::io {
namespace {

/// gzip(1) reads what we wrote.
TEST(Gzip, isReadByGzip) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "node " + std::to_string(i * 7919) + "\n";
  test::TempFolder folder;
  for (const auto& each : {text, std::string(), std::string("x")}) {
    const auto packed = gzip(each);
    ASSERT_TRUE(packed);
    ASSERT_TRUE(writeFileAtomic(folder / "a.gz", *packed));
    const auto read = runBlocking({"gzip", {"-dc", (folder / "a.gz").string()}});
    ASSERT_TRUE(read) << read.error().str();
    EXPECT_EQ(read->out, each);
  }
  EXPECT_LT(gzip(text)->size(), text.size() / 3);
}

TEST(Gzip, isSentToWhoTakesItOnly) {
  for (const auto* yes : {"gzip", "GZIP", "deflate, gzip;q=0.5", "*", "br;q=1.0, x-gzip", " gzip "})
    EXPECT_TRUE(acceptsGzip(yes)) << yes;
  for (const auto* no :
       {"", "identity", "gzip;q=0", "gzip; q=0.000", "br, deflate", "gzippy", "*;q=0"})
    EXPECT_FALSE(acceptsGzip(no)) << no;
}

}  // namespace
}  // namespace muster::io
