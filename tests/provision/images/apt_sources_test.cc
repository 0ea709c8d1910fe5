// SPDX-License-Identifier: Apache-2.0
#include "provision/images/apt_sources.h"
#include "base/io/files.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::provision {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(AptSources, takesDebianLinesOfTheSuite) {
  EXPECT_THAT(
      debianLines("# comment\n"
                  "deb [signed-by=/usr/share/keyrings/x.gpg arch=amd64] "
                  "http://mirror.example/debian bookworm main contrib non-free\n"
                  "deb http://security.debian.org/debian-security/ bookworm-security main\n"
                  "deb-src http://mirror.example/debian bookworm main\n"
                  "deb http://mirror.example/debian trixie main\n"
                  "deb http://mirror.example/debian bookworm contrib\n",
                  false, "bookworm"),
      ElementsAre("deb http://mirror.example/debian bookworm main",
                  "deb http://security.debian.org/debian-security/ bookworm-security main"));
}

TEST(AptSources, leavesOtherRepositoriesOut) {
  EXPECT_THAT(debianLines("deb https://packages.example.com/apt cloud-bookworm main\n"
                          "deb https://packages.example.com/apt bookworm main\n"
                          "deb file:/srv/debian bookworm main\n",
                          false, "bookworm"),
              IsEmpty());
}

TEST(AptSources, readsDeb822) {
  EXPECT_THAT(debianLines("Types: deb deb-src\n"
                          "# a comment\n"
                          "URIs: http://deb.debian.org/debian\n"
                          "Suites: bookworm\n"
                          " bookworm-updates\n"
                          "Components: main non-free\n"
                          "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
                          "\n"
                          "Types: deb\n"
                          "Enabled: no\n"
                          "URIs: http://other.example/debian\n"
                          "Suites: bookworm\n"
                          "Components: main\n",
                          true, "bookworm"),
              ElementsAre("deb http://deb.debian.org/debian bookworm main",
                          "deb http://deb.debian.org/debian bookworm-updates main"));
}

TEST(AptSources, joinsAllFilesWithoutRepetition) {
  test::TempFolder apt;
  ASSERT_TRUE(io::makeDirs(apt / "sources.list.d"));
  ASSERT_TRUE(io::writeFileAtomic(apt / "sources.list",
                                  "deb http://deb.debian.org/debian bookworm main\n"));
  ASSERT_TRUE(io::writeFileAtomic(
      apt / "sources.list.d/a.sources",
      "Types: deb\nURIs: http://deb.debian.org/debian\nSuites: bookworm\nComponents: main\n"));
  ASSERT_TRUE(io::writeFileAtomic(
      apt / "sources.list.d/b.list",
      "deb http://security.debian.org/debian-security bookworm-security main\n"));
  EXPECT_THAT(hostDebianLines(apt.path(), "bookworm"),
              ElementsAre("deb http://deb.debian.org/debian bookworm main",
                          "deb http://security.debian.org/debian-security bookworm-security main"));
  EXPECT_THAT(hostDebianLines(apt / "nothing-here", "bookworm"), IsEmpty());
}

}  // namespace
}  // namespace muster::provision
