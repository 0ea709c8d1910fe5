// SPDX-License-Identifier: Apache-2.0
// Systems of dnf's packages: the real dnf, rpm and createrepo_c, and an archive of packages that
// the test makes and signs itself. A distribution's own archive is another matter: this one proves
// what muster asks of dnf, not what a kernel package does.
#include "provision/images/dnf_system.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "inventory/model/images.h"
#include "provision/images/image_diff.h"
#include "provision/images/image_entry.h"
#include "provision/images/image_store_parts.h"
#include "provision/images/pack_reader.h"
#include "provision/images/packed_image.h"
#include "provision/images/recipes.h"
#include "provision/images/system_builder.h"
#include "tests/paths.h"
#include "tests/provision/images/fetch/fetch_unit_here.h"
#include "tests/run_async.h"
#include "tests/selinux_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::provision {
namespace {

using testing::HasSubstr;
constexpr const char* kKernel = "5.14.0-1.x86_64";

class DnfSystemTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "building images needs root";
    makeKey("site");
    makePackages();
    sign("site");
    ASSERT_TRUE(writeRecipes(folder_ / "recipes"));
  }
  void TearDown() override { tool("gpgconf", {"--kill", "gpg-agent"}); }

  std::string tool(const std::string& program, std::vector<std::string> args) {
    io::Command command{.program = program, .args = std::move(args)};
    command.env = {{"GNUPGHOME", (folder_ / "gpg").string()}, {"HOME", folder_.path().string()}};
    const auto done = io::runChecked(command);
    EXPECT_TRUE(done) << done.error().str();
    return done.value_or("");
  }
  std::filesystem::path keyOf(const std::string& who) { return folder_ / (who + ".asc"); }
  void makeKey(const std::string& who) {
    ASSERT_TRUE(io::makeDirs(folder_ / "gpg", 0700));
    tool("gpg", {"--batch", "--quiet", "--passphrase", "", "--quick-gen-key", who + "@example.com",
                 "rsa2048", "sign", "never"});
    ASSERT_TRUE(io::writeFileAtomic(
        keyOf(who), tool("gpg", {"--batch", "--armor", "--export", who + "@example.com"})));
  }
  /// The base system's names, each a package with one file; the kernel has what a kernel has, and
  /// an init with its library is there.
  void makePackages() {
    tool("sh", {(test::sourceFolder() / "tests/provision/images/make_startable_tree.sh").string(),
                tree_.string()});
    std::string names, members;
    for (const auto& name : recipeLines("node-dnf/packages")) {
      if (name == "kernel") continue;
      names += name + " ";
      members += fmt::format(
          "%package -n {0}\nSummary: {0}\n%description -n {0}\nTest.\n%files -n "
          "{0}\n/usr/share/site/{0}\n",
          name);
      if (name == "systemd")
        members.insert(members.find("%description -n systemd"), "Requires: units\n");
    }
    const auto spec = fmt::format(
        "Name: site\nVersion: 1\nRelease: 1\nSummary: Test\nLicense: none\nBuildArch: "
        "noarch\nAutoReqProv: no\n%description\nTest.\n{0}"
        "%package -n units\nSummary: Test\nAutoReqProv: no\n%description -n units\nTest.\n%files "
        "-n "
        "units\n/usr/lib/systemd/system/multi-user.target\n/usr/lib/systemd/systemd\n/sbin/init\n"
        "/lib64/libc.so.6\n"
        "/lib64/ld-linux-x86-64.so.2\n"
        "%package -n kernel\nVersion: 5.14.0\nSummary: Test\n%description -n kernel\nTest.\n%files "
        "-n kernel\n/lib/modules/{1}/vmlinuz\n/boot/initramfs-{1}.img\n"
        "%install\nmkdir -p %{{buildroot}}/usr/share/site %{{buildroot}}/lib/modules/{1} "
        "%{{buildroot}}/boot %{{buildroot}}/usr/lib/systemd/system %{{buildroot}}/sbin "
        "%{{buildroot}}/lib64\n"
        "cp {3}/usr/lib/systemd/systemd %{{buildroot}}/usr/lib/systemd/systemd\n"
        "ln -s ../usr/lib/systemd/systemd %{{buildroot}}/sbin/init\n"
        "cp -L {3}/usr/lib/x86_64-linux-gnu/libc.so.6 {3}/usr/lib64/ld-linux-x86-64.so.2 "
        "%{{buildroot}}/lib64\n"
        "echo '[Unit]' >%{{buildroot}}/usr/lib/systemd/system/multi-user.target\n"
        "for name in {2}; do echo $name >%{{buildroot}}/usr/share/site/$name; done\n"
        "cp {3}/boot/vmlinuz-6.1 %{{buildroot}}/lib/modules/{1}/vmlinuz\n"
        "cp {3}/boot/initrd.img-6.1 %{{buildroot}}/boot/initramfs-{1}.img\n"
        // Packages are older than the image that they go into, their links too: what is not is
        // given the image's time, and then two images of one second differ.
        "find %{{buildroot}} ! -type d -exec touch -h --date=2024-05-06 {{}} +\n",
        members, kKernel, names, tree_.string());
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "site.spec", spec));
    tool("rpmbuild",
         {"--quiet", "-bb", "--define", "_topdir " + (folder_ / "build").string(), "--define",
          "_binaries_in_noarch_packages_terminate_build 0", "--define", "__os_install_post %{nil}",
          "--define", "_rpmdir " + (folder_ / "archive").string(),
          (folder_ / "site.spec").string()});
  }
  void sign(const std::string& who) {
    std::vector<std::string> args = {"--define", "__gpg /usr/bin/gpg", "--define",
                                     "_gpg_name " + who + "@example.com", "--resign"};
    for (const auto& file : std::filesystem::directory_iterator(folder_ / "archive/noarch"))
      args.push_back(file.path());
    tool("rpmsign", args);
    tool("createrepo_c", {"--quiet", (folder_ / "archive").string()});
  }

  /// Package `tool` in two versions, each of a stream of module `tool`; none is the default.
  void makeModule() {
    std::string streams;
    for (const auto* version : {"1", "2"}) {
      const auto spec = folder_ / fmt::format("tool-{}.spec", version);
      ASSERT_TRUE(io::writeFileAtomic(
          spec, fmt::format("Name: tool\nVersion: {0}\nRelease: 1\nSummary: Test\nLicense: "
                            "none\nBuildArch: noarch\nAutoReqProv: no\n%description\nTest.\n"
                            "%install\nmkdir -p %{{buildroot}}/usr/share/site\necho {0} "
                            ">%{{buildroot}}/usr/share/site/tool\n%files\n/usr/share/site/tool\n",
                            version)));
      tool("rpmbuild", {"--quiet", "-bb", "--define", "_topdir " + (folder_ / "build").string(),
                        "--define", "_rpmdir " + (folder_ / "archive").string(), spec.string()});
      streams += fmt::format(
          "---\ndocument: modulemd\nversion: 2\ndata:\n  name: tool\n  stream: \"{0}\"\n  "
          "version: 1\n  context: c{0}\n  arch: x86_64\n  summary: Test\n  description: Test\n  "
          "license:\n    module: [none]\n  artifacts:\n    rpms: [\"tool-0:{0}-1.noarch\"]\n...\n",
          version);
    }
    sign("site");
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "modules.yaml", streams));
    tool("modifyrepo_c", {"--mdtype=modules", (folder_ / "modules.yaml").string(),
                          (folder_ / "archive/repodata").string()});
  }

  /// The two packages of node-dnf/packages-selinux: a policy with its configuration, which
  /// enforces as that of the distributions does, and the real setfiles.
  void makeSelinux() {
    const auto tree = folder_ / "selinux";
    test::putSelinux(tree, "enforcing");
    const auto spec = folder_ / "selinux.spec";
    ASSERT_TRUE(io::writeFileAtomic(
        spec, fmt::format("Name: selinux-policy-targeted\nVersion: 1\nRelease: 1\nSummary: "
                          "Test\nLicense: none\nBuildArch: noarch\nAutoReqProv: no\n"
                          "%description\nTest.\n%package -n policycoreutils\nSummary: Test\n"
                          "AutoReqProv: no\n%description -n policycoreutils\nTest.\n"
                          "%install\ncp -a {0}/. %{{buildroot}}\nrm -r %{{buildroot}}/lib64\n"
                          "find %{{buildroot}} ! -type d -exec touch --date=2024-05-06 {{}} +\n"
                          "%files\n/etc/selinux\n"
                          "%files -n policycoreutils\n/usr/sbin/setfiles\n/lib/x86_64-linux-gnu\n",
                          tree.string())));
    tool("rpmbuild",
         {"--quiet", "-bb", "--define", "_topdir " + (folder_ / "build").string(), "--define",
          "_binaries_in_noarch_packages_terminate_build 0", "--define", "__os_install_post %{nil}",
          "--define", "_rpmdir " + (folder_ / "archive").string(), spec.string()});
    sign("site");
  }
  std::string labelAt(const std::string& name) { return test::labelOf(folder_ / "root" / name); }

  inventory::ImageBuild build(std::vector<std::string> packages = {}) {
    inventory::ImageBuild build;
    build.release = "9";
    build.packages = std::move(packages);
    build.archives = {{"site", "file://" + (folder_ / "archive").string(), "", {}, keyOf("site")}};
    return build;
  }
  Result<void> install(const inventory::ImageBuild& build) {
    return installDnfSystem({build, dnfPackagesOf(build, false), folder_ / "root",
                             folder_ / "recipes", folder_.path()});
  }
  std::string at(const std::string& name) {
    return io::readFile(folder_ / "root" / name).value_or("(not there)");
  }

  test::TempFolder folder_;
  const std::filesystem::path tree_ = folder_ / "tree";  ///< what starts, to be packed
};

TEST_F(DnfSystemTest, makesATreeThatStartsAndIsFreeOfThisMachine) {
  const auto done = install(build());
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(at("vmlinuz"), *io::readFile(tree_ / "boot/vmlinuz-6.1"))
      << "the kernel lay beside its modules only";
  EXPECT_EQ(at("initrd.img"), *io::readFile(tree_ / "boot/initrd.img-6.1"));
  EXPECT_EQ(at("usr/share/site/NetworkManager"), "NetworkManager\n");
  EXPECT_EQ(at("etc/machine-id"), "");
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "root/etc/systemd/system/dnf-makecache.timer"))
      << "nodes would update themselves";
  EXPECT_TRUE(std::filesystem::exists(folder_ / "root/var/lib/rpm/rpmdb.sqlite"))
      << "the system would not know its own packages";
  for (const char* left : {"var/cache/dnf", "var/log/dnf.log", "proc/self", "dev/null"})
    EXPECT_FALSE(std::filesystem::exists(folder_ / "root" / left)) << left;
}

TEST_F(DnfSystemTest, aPackageIsOfTheStreamThatIsEnabled) {
  makeModule();
  auto wanted = build({"tool"});
  wanted.modules = {"tool:1"};
  const auto done = install(wanted);
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(at("usr/share/site/tool"), "1\n") << "the archive has 2 as well";
  EXPECT_THAT(at("etc/dnf/modules.d/tool.module"), HasSubstr("stream=1"));
  EXPECT_THAT(at("etc/dnf/modules.d/tool.module"), HasSubstr("state=enabled"));
}

TEST_F(DnfSystemTest, aStreamThatTheArchiveHasNotIsNamed) {
  makeModule();
  auto wanted = build();
  wanted.modules = {"tool:9"};
  const auto done = install(wanted);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), HasSubstr("tool:9"));
}

TEST_F(DnfSystemTest, oneThatEnforcesSelinuxIsLabelledWhole) {
  if (const auto why = test::noLabelsHere(); !why.empty()) GTEST_SKIP() << why;
  makeSelinux();
  auto wanted = build();
  wanted.selinux = inventory::SelinuxMode::Enforcing;
  const auto done = install(wanted);
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_THAT(at("etc/selinux/config"), HasSubstr("\nSELINUX=enforcing\n"));
  EXPECT_EQ(labelAt("usr/lib/systemd/systemd"), "lib_t");
  EXPECT_EQ(labelAt("etc/machine-id"), "etc_t") << "what muster's recipe wrote";
  EXPECT_EQ(labelAt("etc/systemd/system/dnf-makecache.timer"), "systemd_unit_file_t");
  EXPECT_EQ(labelAt("vmlinuz"), "default_t") << "what was linked at the end";
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder_ / "root"))
    if (file.path() != folder_ / "root/proc") {
      EXPECT_NE(test::labelOf(file.path()), "(none)") << file.path();
    }
}

TEST_F(DnfSystemTest, labelsOfSelinuxAreInTheImage) {
  if (const auto why = test::noLabelsHere(); !why.empty()) GTEST_SKIP() << why;
  makeSelinux();
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "agent", "#!/bin/sh\n", 0755));
  const auto key = *io::SigningKey::generate();
  inventory::Image image{"node", build(), {}};
  std::get<inventory::ImageBuild>(image.source).selinux = inventory::SelinuxMode::Enforcing;
  const auto built =
      openImageStore({folder_ / "cache", folder_ / "agent", key})->build(image, [](auto) {});
  ASSERT_TRUE(built) << built.error().str();
  const auto index = contentOf(folder_ / "cache/images" / imageKey(image));
  ASSERT_TRUE(index) << index.error().str();
  ASSERT_TRUE(unpack(*index, built->pack, folder_ / "raw"));
  const auto label = [this](const std::string& file) {
    return tool("debugfs",
                {"-R", "ea_get " + file + " security.selinux", (folder_ / "raw").string()});
  };
  EXPECT_THAT(label("/"), HasSubstr(":root_t:"));
  EXPECT_THAT(label("/etc/machine-id"), HasSubstr(":etc_t:"));
  EXPECT_THAT(label("/usr/sbin/setfiles"), HasSubstr(":bin_t:"));
  EXPECT_THAT(label("/sbin/init"), HasSubstr(":default_t:")) << "a link has one, too";
}

TEST_F(DnfSystemTest, whatIsNotDeclaredToEnforceIsPermissiveAndHasNoLabels) {
  if (const auto why = test::noLabelsHere(); !why.empty()) GTEST_SKIP() << why;
  makeSelinux();
  auto wanted = build({"selinux-policy-targeted", "policycoreutils"});
  ASSERT_TRUE(install(wanted));
  EXPECT_THAT(at("etc/selinux/config"), HasSubstr("\nSELINUX=permissive\n"));
  EXPECT_EQ(labelAt("etc/machine-id"), "(none)");
  std::filesystem::remove_all(folder_ / "root");
  wanted.selinux = inventory::SelinuxMode::Disabled;
  ASSERT_TRUE(install(wanted));
  EXPECT_THAT(at("etc/selinux/config"), HasSubstr("\nSELINUX=disabled\n"));
  EXPECT_EQ(labelAt("etc/machine-id"), "(none)");
}

TEST_F(DnfSystemTest, anArchiveWithoutSelinuxsPackagesIsNamed) {
  auto wanted = build();
  wanted.selinux = inventory::SelinuxMode::Enforcing;
  const auto done = install(wanted);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), HasSubstr("selinux-policy-targeted"));
}

TEST_F(DnfSystemTest, theSystemStillKnowsItsPackages) {
  ASSERT_TRUE(install(build()));
  const std::string root = (folder_ / "root").string();
  EXPECT_EQ(tool("rpm", {"--root", root, "--dbpath", "/var/lib/rpm", "-q", "--qf",
                         "%{version} %{installtid}", "kernel"}),
            "5.14.0 1735689600");
  EXPECT_THAT(
      tool("rpm", {"--root", root, "--dbpath", "/var/lib/rpm", "-qf", "/usr/share/site/dracut"}),
      HasSubstr("dracut-1-1.noarch"));
  EXPECT_EQ(tool("rpm", {"--root", root, "--dbpath", "/var/lib/rpm", "-Va"}), "");
  tool("rpm", {"--root", root, "--dbpath", "/var/lib/rpm", "-e", "--nodeps",
               "kmod"});  // the records can be written
  EXPECT_EQ(at("usr/share/site/kmod"), "(not there)");
}

TEST_F(DnfSystemTest, theSamePackagesAreTheSameImage) {
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "agent", "#!/bin/sh\n", 0755));
  const auto key = *io::SigningKey::generate();
  const inventory::Image image{"node", build(), {}};
  for (const char* cache : {"first", "second"}) {  // seconds apart: rpm and dnf write down when
    const auto built = openImageStore({folder_ / cache, folder_ / "agent", key})
                           ->build(image, [](std::string_view) {});
    ASSERT_TRUE(built) << built.error().str();
  }
  ASSERT_TRUE(io::makeDirs(folder_ / "work"));
  const auto diff = diffImages(folder_ / "first/images" / imageKey(image),
                               folder_ / "second/images" / imageKey(image), folder_ / "work");
  ASSERT_TRUE(diff) << diff.error().str();
  EXPECT_THAT(diff->changed, testing::IsEmpty());
  EXPECT_EQ(diff->changed_chunks, 0u);
}

TEST_F(DnfSystemTest, modesAreTheSystemsUnderAnyUmask) {
  const auto before = ::umask(0077);  // of the build unit
  ASSERT_TRUE(writeRecipes(folder_ / "recipes"));
  const inventory::Image image{"node", build(), {}};
  ASSERT_TRUE(io::makeDirs(folder_ / "work"));
  const auto done = makePackageBuilder()->buildRootFs(image, folder_ / "work", folder_ / "raw",
                                                      [](std::string_view) {});
  const auto after = ::umask(before);
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(after, 0077u);
  for (const char* made : {"/", "/etc", "/etc/systemd", "/boot"})  // by whoever came first
    EXPECT_THAT(tool("debugfs", {"-R", std::string("stat ") + made, (folder_ / "raw").string()}),
                HasSubstr("Mode:  0755"))
        << made;
  EXPECT_THAT(tool("debugfs", {"-R", "stat /etc/machine-id", (folder_ / "raw").string()}),
              HasSubstr("Mode:  0644"));
}

TEST_F(DnfSystemTest, aPackageSignedByAnotherKeyIsRefused) {
  makeKey("unknown");
  sign("unknown");
  const auto refused = install(build());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), HasSubstr("GPG check FAILED"));
  EXPECT_EQ(at("boot/vmlinuz-" + std::string(kKernel)), "(not there)");
}

/// Without a network: the archive is on a web server that the fetch unit alone is to reach, and a
/// fetch unit's dnf is told nothing else than this one (docs/adr/0437).
class FetchedDnfSystemTest : public DnfSystemTest {
 protected:
  void SetUp() override {
    DnfSystemTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_TRUE(io::makeDirs(folder_ / "fetched"));
    server_.emplace(folder_ / "archive");
    unit_.emplace(folder_ / "socket", FetchUnit{.folder = folder_ / "fetched"});
  }
  inventory::ImageBuild fetched(std::vector<std::string> packages = {}) {
    auto wanted = build(std::move(packages));
    wanted.archives[0].url = server_->url();
    return wanted;
  }
  Result<void> installFetched(const inventory::ImageBuild& build) {
    return installDnfSystem({build, dnfPackagesOf(build, false), folder_ / "root",
                             folder_ / "recipes", folder_.path(), folder_ / "socket"});
  }
  std::string asked() { return io::readFile(folder_ / "archive/asked").value_or(""); }
  std::string treeOf(const std::string& root) {
    return tool("sh", {"-c", "cd " + (folder_ / root).string() +
                                 " && find . ! -path './var/lib/dnf*' ! -path './var/lib/rpm*' "
                                 "-printf '%p %M %U %G %s %l\\n' | sort"});
  }

  std::optional<test::ArchiveServer> server_;
  std::optional<test::FetchUnitHere> unit_;
};

TEST_F(FetchedDnfSystemTest, isTheOneThatDnfMakesByItself) {
  makeModule();
  auto wanted = fetched({"tool"});
  wanted.modules = {"tool:1"};
  auto done = installFetched(wanted);
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(at("usr/share/site/tool"), "1\n");
  const auto tree = treeOf("root");
  const auto after_fetching = asked();
  EXPECT_THAT(after_fetching, HasSubstr("tool-1-1.noarch.rpm"));
  EXPECT_THAT(after_fetching, testing::Not(HasSubstr("tool-2-1.noarch.rpm")));
  unit_.reset();
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "fetched"));
  std::filesystem::remove_all(folder_ / "root");
  done = install(wanted);
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(treeOf("root"), tree);
}

TEST_F(FetchedDnfSystemTest, nothingIsAskedForWhileItIsInstalled) {
  const auto done = installFetched(fetched());
  ASSERT_TRUE(done) << done.error().str();
  const auto once = asked();
  // Each file once: by the fetch unit.
  const auto first = once.find("kernel-5.14.0-1.noarch.rpm");
  ASSERT_NE(first, std::string::npos) << once;
  EXPECT_EQ(once.find("kernel-5.14.0-1.noarch.rpm", first + 1), std::string::npos) << once;
  const auto metadata = once.find("repomd.xml");
  EXPECT_EQ(once.find("repomd.xml", metadata + 1), std::string::npos) << once;
}

TEST_F(FetchedDnfSystemTest, aPackageSignedByAnotherKeyIsRefused) {
  makeKey("unknown");
  sign("unknown");
  const auto refused = installFetched(fetched());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), HasSubstr("GPG check FAILED"));
  EXPECT_EQ(at("boot/vmlinuz-" + std::string(kKernel)), "(not there)");
}

TEST_F(FetchedDnfSystemTest, whatFailsThereIsSaidHere) {
  const auto unknown = installFetched(fetched({"slurm-slurmd=23.11"}));
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().str(),
              testing::AllOf(HasSubstr("slurm-slurmd-23.11"), HasSubstr("muster-fetch@.service")));
  auto away = fetched();
  away.archives[0].url = "http://127.0.0.1:1/";
  const auto refused = installFetched(away);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), HasSubstr("repomd.xml"));
  unit_.reset();
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "fetched"));
}

TEST_F(DnfSystemTest, saysWhichPackageOrKeyIsNotThere) {
  const auto unknown = install(build({"slurm-slurmd=23.11"}));
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().str(), HasSubstr("slurm-slurmd-23.11"));
  auto keyless = build();
  keyless.archives[0].key = folder_ / "lost.asc";
  const auto lost = install(keyless);
  ASSERT_FALSE(lost);
  EXPECT_THAT(lost.error().str(), testing::AllOf(HasSubstr("lost.asc"), HasSubstr("archive site")));
}

}  // namespace
}  // namespace muster::provision
