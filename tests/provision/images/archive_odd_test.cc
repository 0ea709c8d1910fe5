// SPDX-License-Identifier: Apache-2.0
// Archives that are odd in one place (odd_archives.py): taken whole, or refused with a word that
// says what is wrong.
#include "import_folder.h"

namespace muster::provision {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class OddArchives : public ImportFolder {
 protected:
  void SetUp() override {
    ImportFolder::SetUp();
    if (IsSkipped()) return;
    sh("\"$2\" tree; tar -C tree --numeric-owner -cf tree.tar .");
  }
  Result<void> importOf(const std::string& name) {
    const auto script = test::sourceFolder() / "tests/provision/images/odd_archives.py";
    sh("'" + script.string() + "' " + name + " tree.tar odd");
    return import("odd");
  }
  std::string shownBy(const std::string& command) {
    return io::runChecked(
               {.program = "debugfs", .args = {"-R", command, (folder_ / "fs").string()}})
        .value_or("");
  }
};

TEST_F(OddArchives, whatMayBeIsTakenAsItIs) {
  for (const char* name : {"path-of-1900-bytes", "hard-link-given-twice", "name-no-utf8", "gzip",
                           "gzip-of-two-members", "oci", "oci-windows-first", "oci-one-image-twice",
                           "oci-layer-without-end"}) {
    const auto done = importOf(name);
    ASSERT_TRUE(done) << name << ": " << done.error().str();
    EXPECT_EQ(shownBy("cat /etc/hostname"), "node\n") << name;
    if (name == std::string("hard-link-given-twice")) EXPECT_EQ(shownBy("cat /etc/odd"), "x");
    if (name != std::string("name-no-utf8")) continue;
    EXPECT_EQ(shownBy("cat /etc/caf\xe9"), "x") << "bytes are a name, whatever they mean";
    EXPECT_EQ(shownBy("cat /etc/\xff\xfe"), "x");
  }
}

struct Refusal {
  const char* name;
  ErrorCode code;
  const char* words;
};

class OddRefused : public OddArchives, public testing::WithParamInterface<Refusal> {};

TEST_P(OddRefused, saysWhatIsWrong) {
  const auto& [name, code, words] = GetParam();
  const auto done = importOf(name);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), code) << done.error().str();
  EXPECT_THAT(done.error().str(), AllOf(HasSubstr(words), HasSubstr("/odd"),
                                        Not(HasSubstr((folder_ / "work").string()))));
  EXPECT_LT(done.error().str().size(), 1000u);
}

constexpr auto kInvalid = ErrorCode::InvalidInput, kCorrupt = ErrorCode::Corrupt;
INSTANTIATE_TEST_SUITE_P(
    All, OddRefused,
    testing::Values(
        Refusal{"path-of-2040-bytes", kInvalid, "longer than the 2000 bytes"},
        Refusal{"path-of-9000-bytes", kInvalid, "(9035 bytes)\" is longer than the 2000 bytes"},
        Refusal{"folders-128-deep", kInvalid, "nests more than 127 folders"},
        Refusal{"link-to-5000-bytes", kInvalid, "\"etc/odd\" is a link to a path of 5000 bytes"},
        Refusal{"hard-link-to-5000-bytes", kInvalid, "\"etc/odd\" is a link to a path of 5000"},
        Refusal{"hard-link-to-itself", kInvalid, "which the archive does not bring before it"},
        Refusal{"hard-link-to-folder", kInvalid, "is a hard link to the folder \"usr\""},
        Refusal{"nul-in-path", kInvalid, "has a NUL in it (\"etc/a\\u0000b\")"},
        Refusal{"nul-in-link", kInvalid, "has a NUL in it (\"host\\u0000name\")"},
        Refusal{"record-damaged", kCorrupt, "a record of PAX"},
        Refusal{"sparse-map-damaged", kCorrupt, "cannot be read"},
        Refusal{"header-damaged", kCorrupt, "Damaged tar archive"},
        Refusal{"volume-continued", kInvalid, "several volumes"},
        Refusal{"without-end", kCorrupt, "has no end"},
        Refusal{"two-archives", kInvalid, "something behind the archive's end"},
        Refusal{"access-list-too-long", kInvalid, "its access list cannot be kept"},
        Refusal{"gzip-with-another-bit", kCorrupt, "incorrect data check"},
        Refusal{"gzip-cut-behind-the-end", kCorrupt, "truncated gzip input"},
        Refusal{"gzip-and-more", kCorrupt, "gzip: incorrect header check"},
        Refusal{"oci-windows", kInvalid, "no image for amd64, only for windows/amd64"},
        Refusal{"oci-two-images", kInvalid, "several images for amd64 (v1 and v2)"},
        Refusal{"oci-other-size", kCorrupt, "what names it says 1"},
        Refusal{"oci-encrypted", kInvalid, "a layer is encrypted"},
        Refusal{"oci-type-of-kilobytes", kInvalid, "a layer of type \"tttt"}),
    [](const auto& each) {
      std::string name = each.param.name;
      std::ranges::replace(name, '-', '_');
      return name;
    });

/// A folder of mktemp is 0700, and tar keeps that for "/".
TEST_F(OddArchives, aRootThatOnlyRootMayEnterIsRefused) {
  sh("chmod 0700 tree; tar -C tree -cf odd .");
  const auto done = import("odd");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::InvalidInput);
  EXPECT_THAT(done.error().str(), HasSubstr("its / has the mode 0700"));
}

/// mke2fs -d would write behind its buffer; squashfs brings such a path past the tar's reader.
TEST_F(OddArchives, aSquashfsWithAPathOfKilobytesIsRefused) {
  sh("cd tree; for i in $(seq 40); do d=$(printf 'd%.0s' $(seq 50)); mkdir $d; cd $d; done; cd "
     "\"$1\"; "
     "mksquashfs tree odd -quiet -no-progress >/dev/null");
  const auto done = import("odd");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::InvalidInput) << done.error().str();
  EXPECT_THAT(done.error().str(), HasSubstr("longer than the 2000 bytes"));
}

}  // namespace
}  // namespace muster::provision
