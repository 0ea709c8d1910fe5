// SPDX-License-Identifier: Apache-2.0
// Every mistake has its place, says what is wrong, and what to write instead.
#include "tests/inventory/inventory_fixture.h"

#include "inventory/without_secrets.h"

namespace muster::inventory {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class BadInput : public InventoryTest {};

/// One change to the small inventory, and the one message that it must give. `place` is the text
/// that the message points at.
struct Mistake {
  const char *name, *old_text, *new_text, *place, *what, *suggestion;
};

std::string textAt(const std::string& yaml, int line, int column) {
  std::istringstream in(yaml);
  std::string text;
  for (int i = 0; i < line; ++i) std::getline(in, text);
  return text.substr(
      std::min<std::size_t>(text.size(), static_cast<std::size_t>(std::max(column, 1) - 1)));
}

class Mistakes : public InventoryTest, public ::testing::WithParamInterface<Mistake> {};

TEST_P(Mistakes, isReportedOnceWithPlaceAndSuggestion) {
  const Mistake& mistake = GetParam();
  std::string yaml = with(mistake.old_text, mistake.new_text);
  auto loaded = loadYaml(yaml);
  EXPECT_FALSE(loaded.cluster);
  ASSERT_THAT(lines(loaded),
              ElementsAre(AllOf(StartsWith("cluster.yaml:"), HasSubstr(": error: "),
                                HasSubstr(mistake.what), HasSubstr(mistake.suggestion))));
  const SourceRef& where = loaded.diagnostics.all()[0].where;
  EXPECT_THAT(textAt(yaml, where.line, where.column), StartsWith(mistake.place)) << where.str();
}

const Mistake kMistakes[] = {
    {"switchFirmware", "rails: 2", "switch_firmware: latest", "latest",
     "a version of switch firmware, three numbers", "31.2012.1024"},
    {"checkName", "[host, gpu]", "[host], checks: {gemm: {n: 1}}", "gemm",
     "a check of the catalogue", "host.gemm"},
    {"routingWithoutFallback", "rails: 2", "routing: \"ftree,no_fallback\"",
     "\"ftree,no_fallback\"", "is not one OpenSM routing engine", "no_fallback is no engine"},
    {"routingWithAFile", "rails: 2", "routing: torus-2QoS", "torus-2QoS",
     "is not one OpenSM routing engine", "one of minhop, updn, dnup, ftree,"},
    // Keys and types
    {"unknownKey", "rails: 2", "rials: 2", "rials: 2", "fabric: unknown key \"rials\"",
     "did you mean \"rails\"?"},
    {"unknownTopKey", "pools:", "pool:", "pool:", "unknown key \"pool\"",
     "did you mean \"pools\"?"},
    {"unknownKeyFar", "rails: 2", "zzzzz: 2", "zzzzz: 2", "unknown key \"zzzzz\"",
     "known: purpose, shape, sus,"},
    {"duplicateKey", "cluster: {name: small}", "cluster: {name: small, name: other}",
     "name: other}", "duplicate key \"name\"", "cluster.yaml:1:11"},
    {"missingKey", "image: noble, ", "", "{expect: {gpus: 8}, dr", "the key \"image\" is missing",
     "add image: a name of `images`"},
    {"missingSection", "cluster: {name: small}\n", "",
     "networks:", "the key \"cluster\" is missing", "add cluster"},
    {"textForNumber", "rails: 2", "rails: two", "two",
     "expected a whole number from 1 to 254, found the text \"two\"", ""},
    {"quotedNumber", "rails: 2", "rails: \"2\"", "\"2\"", "found the text \"2\"",
     "remove the quotes"},
    {"fraction", "rails: 2", "rails: 2.5", "2.5", "found the number 2.5", ""},
    {"octalByAccident", "rails: 2", "rails: 010", "010", "found the number 010", "leading zeros"},
    {"outOfRange", "rails: 2", "rails: 0", "0", "0 is out of range", "from 1 to 254"},
    {"hugeNumber", "rails: 2", "rails: 99999999999999999999999", "9999999999999999999999",
     "is out of range", "from 1 to 254"},
    {"numberForText", "version: 1.4.2", "version: 1.10", "1.10}}, order: [BMC]}",
     "found the number 1.10", "put it in quotes: \"1.10\""},
    {"booleanForText", "version: 1.4.2", "version: true", "true}}, order: [BMC]}",
     "found the boolean true", "put it in quotes"},
    {"yesForTrue", "ipoib: true", "ipoib: yes", "yes, limited: [ALL], f",
     "expected true or false, found the text \"yes\"", "write true or false"},
    {"textForList", "drivers: [rdma]", "drivers: rdma", "rdma, firmware: base, ", "expected a list",
     "write [rdma]"},
    {"listForText", "image: noble", "image: [noble]", "[noble], drivers: [rdm", "found a list",
     "remove the brackets"},
    {"textForMap", "expect: {gpus: 8}", "expect: 8", "8, image: noble, drive",
     "expect: expected a mapping, found the number 8", "write {gpus"},
    {"emptyValue", "pool: batch}", "pool: }", "pool: }", "no value",
     "write a value, or remove the key"},
    {"emptyText", "pool: batch}", "pool: \"\"}", "\"\"}", "empty text", "remove the key"},
    {"wrongChoice", "level: quick", "level: quik", "quik, groups: [host, gpu]}",
     "expected one of quick, medium, long", "did you mean \"quick\"?"},
    {"noChecks", "groups: [host, gpu]", "groups: []", "[]}", "at least 1 item", ""},
    {"badEntryName", "  storage:", "  sto rage:", "sto rage:", "\"sto rage\" is not a name",
     "for example"},
    {"badClusterName", "name: small", "name: Small", "Small}", "\"Small\" is not a name",
     "for example hall-2"},
    // Secrets
    {"missingSecret", "secrets/bmc", "secrets/bmd", "secrets/bmd}}",
     "the secret's file secrets/bmd does not exist", "umask 077"},
    {"secretIsFolder", "secrets/bmc", "secrets", "secrets}}", "is not a regular file", ""},
    {"unsetEnv", "file: secrets/bmc", "env: MUSTER_TEST_UNSET", "MUSTER_TEST_UNSET}}",
     "environment variable MUSTER_TEST_UNSET is not set", "export"},
    {"twoSources", "file: secrets/bmc", "file: secrets/bmc, env: HOME", "env: HOME}}",
     "only one of file, env, command", "remove"},
    {"noSource", "{file: secrets/bmc}", "{}", "{}}", "one of file, env, command is missing", ""},
    // Images, drivers, firmware
    {"importNeedsDigest", "build: {suite: noble, packages: [linux-generic]}",
     "import: cluster.yaml", "import: cluster.yaml}", "\"import\" needs \"sha256\"", ""},
    {"buildOfNothing", "build: {suite: noble, packages: [linux-generic]}",
     "build: {packages: [linux-generic]}", "{packages: [linux-generic]}",
     "from apt's packages of a suite or from dnf's of a release: one of the two",
     "suite: bookworm"},
    {"releaseWithoutArchives", "build: {suite: noble, packages: [linux-generic]}",
     "build: {release: \"9\"}", "\"9\"}", "nothing says where packages of this release are",
     "archives"},
    {"mirrorBesideArchives", "build: {suite: noble, packages: [linux-generic]}",
     "build: {suite: noble, mirror: 'http://m/debian', archives: {a: {url: 'http://m/ubuntu', "
     "suite: noble, components: [main], key: racks.csv}}}",
     "'http://m/debian'", "goes with neither archives nor release", "with its key"},
    {"archiveWithoutKey", "build: {suite: noble, packages: [linux-generic]}",
     "build: {release: \"9\", archives: {a: {url: 'http://m/9'}}}", "{url: 'http://m/9'}",
     "\"key\"", ""},
    {"selinuxOfApt", "build: {suite: noble, packages: [linux-generic]}",
     "build: {suite: noble, packages: [linux-generic], selinux: enforcing}", "enforcing}",
     "only systems of a release (dnf) are built with SELinux", "remove selinux"},
    {"selinuxOfALiveImage", "build: {suite: noble, packages: [linux-generic]}",
     "kind: live, build: {release: \"9\", selinux: enforcing, archives: {a: {url: 'http://m/9', "
     "key: racks.csv}}}",
     "enforcing, arch", "files that are written into a live image have no labels", "kind: rootfs"},
    {"oddSelinux", "build: {suite: noble, packages: [linux-generic]}",
     "build: {release: \"9\", selinux: on, archives: {a: {url: 'http://m/9', key: racks.csv}}}",
     "on, arch", "", ""},
    {"buildAndImport", "noble: {build",
     "noble: {import: racks.csv, sha256: "
     "3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b, build",
     "import: racks.csv, sha", "only one of build, import", ""},
    {"optionAsPackage", "[rdma-core]", "[-oFoo=bar]", "-oFoo=bar], verify: {m",
     "\"-oFoo=bar\" is not a package of apt or dnf", "for example rdma-core"},
    {"unknownProbe", "module.rdma_rxe: loaded", "modul.rdma_rxe: loaded", "modul.rdma_rxe: loaded",
     "is not a probe", ""},
    {"shortDigest", "{version: 1.4.2}", "{version: 1.4.2, file: racks.csv, sha256: abc}",
     "abc}}, order: [BMC]}", "\"abc\" is not a SHA-256 digest", "it has 3 characters"},
    {"upperDigest", "{version: 1.4.2}",
     "{version: 1.4.2, file: racks.csv, sha256: "
     "3A7BD3E2360A3D29EEA436FCFB7E44C735D117C42D1C1835420B6B9942DD4F1B}",
     "3A7BD3E2360A3D29EEA436", "is not a SHA-256", "lower case"},
    {"fileWithoutDigest", "{version: 1.4.2}", "{version: 1.4.2, file: racks.csv}",
     "file: racks.csv}}, ord", "\"file\" needs \"sha256\"", ""},
    {"orderOfNothing", "order: [BMC]", "order: [BMC, BMD]", "BMD]}", "\"BMD\" is no component", ""},
    {"orderTwice", "order: [BMC]", "order: [BMC, BMC]", "BMC]}", "in the order twice", ""},
    // References
    {"danglingImage", "image: noble", "image: nobel", "nobel, drivers: [rdma]",
     "\"nobel\" is not declared under images", "did you mean \"noble\"?"},
    {"danglingDriver", "drivers: [rdma]", "drivers: [rdna]", "rdna], firmware: base,",
     "\"rdna\" is not declared under drivers", "did you mean \"rdma\"?"},
    {"danglingFirmware", "firmware: base", "firmware: bass", "bass, fabric: ib, gate",
     "\"bass\" is not declared under firmware", "did you mean \"base\"?"},
    {"danglingGate", "gates: [burn-in]", "gates: [burnin]", "burnin], pool: batch}",
     "\"burnin\" is not declared under gates", "did you mean \"burn-in\"?"},
    {"danglingPool", "pool: batch}", "pool: bath}", "bath}", "\"bath\" is not declared under pools",
     "did you mean \"batch\"?"},
    {"danglingFabric", "fabric: ib,", "fabric: bi,", "bi, gates",
     "\"bi\" is not declared under fabric", "did you mean \"ib\"?"},
    {"danglingCredential", "image: noble", "bmc_credential: bcm, image: noble",
     "bcm, image: noble, dri", "\"bcm\" is not declared under credentials",
     "did you mean \"bmc\"?"},
    {"danglingProfile", "login1, profile: gpu-node", "login1, profile: gpu-nodes",
     "gpu-nodes, mac: \"52:54", "\"gpu-nodes\" is not declared under profiles",
     "did you mean \"gpu-node\"?"},
    {"danglingManager", "[gpu001, controller]", "[gpu003, controller]", "gpu003, controller]",
     "the subnet manager \"gpu003\" is no node", "did you mean \"gpu001\"?"},
    {"danglingMember", "full: [\"gpu[001-002]\"]", "full: [\"gpu[001-009]\"]", "\"gpu[001-009]\"]}",
     "partition batch: \"gpu003\" is no node", "did you mean"},
    {"defaultCredential", "bmc: {username", "ipmi: {username", "{expect: {gpus: 8}, im",
     "need the credential \"bmc\"", "bmc_credential"},
    // Networks
    {"overlap", "10.30.0.0/16", "10.20.128.0/20", "10.20.128.0/20, dhcp: ",
     "the networks provisioning (10.20.0.0/16) and storage (10.20.128.0/20) overlap",
     "cluster.yaml:4:11"},
    {"hostBits", "10.30.0.0/16", "10.30.0.1/16", "10.30.0.1/16, dhcp: {m", "has host bits set",
     "10.30.0.0/16"},
    {"noProvisioning", "provisioning:", "provision:", "provision:", "\"provisioning\" is missing",
     "add provisioning"},
    {"rangeOutside", "10.20.247.254", "10.21.247.254", "10.20.240.1-10.21.247.",
     "end of the range 10.21.247.254 is outside 10.20.0.0/16", ""},
    {"rangeBackwards", "10.20.240.1-10.20.247.254", "10.20.247.254-10.20.240.1",
     "10.20.247.254-10.20.24", "runs backwards", "write 10.20.240.1-10.20.247.254"},
    {"rangeOne", "10.20.240.1-10.20.247.254", "10.20.240.1", "10.20.240.1}",
     "a range has two addresses", "FIRST-LAST"},
    {"rangeOverController", "10.20.240.1-", "10.20.0.1-", "10.20.0.1-10.20.247.25",
     "the DHCP range holds the controller's own address 10.20.0.1", ""},
    {"rangeInProxy", "mode: authoritative", "mode: proxy", "10.20.240.1-10.20.247.",
     "a range has no meaning", ""},
    {"controllerOutside", "cidr: 10.20.0.0/16", "cidr: 10.20.0.0/16\n    controller: 10.9.0.1",
     "10.9.0.1", "the controller 10.9.0.1 is outside 10.20.0.0/16", ""},
    {"controllerTwiceListed", "cidr: 10.20.0.0/16",
     "cidr: 10.20.0.0/16\n    controllers: [10.20.0.1, 10.20.0.2, 10.20.0.1]", "10.20.0.1]",
     "the controller 10.20.0.1 is listed twice", "once"},
    {"oneOfTheControllersOutside", "cidr: 10.20.0.0/16",
     "cidr: 10.20.0.0/16\n    controllers: [10.20.0.1, 10.9.0.1]", "10.9.0.1]",
     "the controller 10.9.0.1 is outside 10.20.0.0/16", ""},
    {"noControllers", "cidr: 10.20.0.0/16", "cidr: 10.20.0.0/16\n    controllers: []", "[]",
     "needs at least 1 item", ""},
    {"controllerNoAddress", "cidr: 10.20.0.0/16",
     "cidr: 10.20.0.0/16\n    controllers: [10.20.0.1, ctl2]", "ctl2]", "is not an IPv4 address",
     ""},
    {"controllerAndControllers", "cidr: 10.20.0.0/16",
     "cidr: 10.20.0.0/16\n    controller: 10.20.0.1\n    controllers: [10.20.0.1, 10.20.0.2]",
     "[10.20.0.1, 10.20.0.2]", "controller and controllers are both given", "keep controllers"},
    {"tooManyControllers", "cidr: 10.20.0.0/16",
     "cidr: 10.20.0.0/16\n    controllers: [10.20.0.1, 10.20.0.2, 10.20.0.3, 10.20.0.4, 10.20.0.5, "
     "10.20.0.6, 10.20.0.7, 10.20.0.8, 10.20.0.9]",
     "[10.20.0.1, 10.20.0.2", "9 controllers are too many", "at most 8"},
    {"rangeOverSecondController", "cidr: 10.20.0.0/16",
     "cidr: 10.20.0.0/16\n    controllers: [10.20.0.1, 10.20.240.2]", "10.20.240.1-10.20.247.25",
     "the DHCP range holds the controller's own address 10.20.240.2", ""},
    {"addressOfSecondController", "cidr: 10.20.0.0/16",
     "cidr: 10.20.0.0/16\n    controllers: [10.20.0.1, 10.20.2.1]", "10.20.2.1, bmc: \"libvi",
     "is the controller's own address", ""},
    {"badAddress", "address: 10.20.2.1", "address: 10.20.2.256", "10.20.2.256, bmc: \"lib",
     "is not an IPv4 address", "10.20.0.1"},
    {"addressOutside", "address: 10.20.2.1", "address: 10.21.2.1", "10.21.2.1, bmc: \"libvi",
     "outside the provisioning network 10.20.0.0/16", ""},
    {"addressInRange", "address: 10.20.2.1", "address: 10.20.241.7", "10.20.241.7, bmc: \"lib",
     "is inside the DHCP range", "another one"},
    {"addressOfController", "address: 10.20.2.1", "address: 10.20.0.1", "10.20.0.1, bmc: \"libvi",
     "is the controller's own address", ""},
    {"addressOfNetwork", "address: 10.20.2.1", "address: 10.20.255.255", "10.20.255.255, bmc: \"l",
     "broadcast", ""},
    {"bmcInRange", "libvirt:login1", "https://10.20.240.9", "\"https://10.20.240.9\",",
     "the BMC address 10.20.240.9 of login1 is inside the DHCP range", ""},
    {"bmcIsNode", "libvirt:login1", "https://10.20.1.1", "\"https://10.20.1.1\", r",
     "is also the node address of gpu001", ""},
    // Fabric
    {"pkeyWithMembership", "pkey: 0x10", "pkey: 0x8010", "0x8010, full: [\"gpu[00",
     "membership bit", "write 0x0010"},
    {"pkeyZero", "pkey: 0x10", "pkey: 0", "0, full: [\"gpu[001-002", "out of range",
     "from 1 to 32767"},
    {"pkeyTwice", "pkey: 0x10", "pkey: 0x7fff", "0x7fff, ipoib: true, l",
     "have the same PKey 0x7fff", ""},
    {"memberTwice", "full: [\"gpu[001-002]\"]", "full: [\"gpu[001-002]\"], limited: [gpu002]",
     "gpu002]}", "gpu002 occurs twice, as full and limited", ""},
    {"badMemberList", "full: [\"gpu[001-002]\"]", "full: [\"gpu[002-001]\"]", "\"gpu[002-001]\"]}",
     "is no hostlist", "runs backwards"},
    {"badLink", "rails: 2", "link: HDR4x", "HDR4x", "\"HDR4x\" is not an InfiniBand width",
     "4xHDR"},
    {"topologyOfRails", "rails: 2", "topology_file: racks.csv", "topology_file",
     "only the shape explicit", "shape: explicit"},
    {"leavesOfRails", "rails: 2", "leaves_per_su: 2", "leaves_per_su: 2", "only the shape fat-tree",
     "one leaf a rail"},
    {"unevenPlanes", "rails: 2", "spines_per_su: 4\n    cores: 6", "6", "cannot be shared out",
     "multiple of spines_per_su (4)"},
    {"noCableFile", "rails: 2", "cables_file: not-there.csv", "not-there.csv", "cannot read",
     "inventory's folder"},
    {"roceOnePriority", "rails: 2", "roce: {cnp_priority: 3}", "3}", "both have priority 3",
     "another priority"},
    {"explicitWithoutCables", "rails: 2", "shape: explicit", "shape: explicit", "needs cables",
     "add cables"},
    // Profiles
    {"deviceName", "image: noble", "disk: /dev/sda, image: noble", "/dev/sda, image: noble",
     "\"/dev/sda\" is not a stable disk identity", "serial:"},
    {"ownKernelArgument", "image: noble", "kernel_args: [muster.enrolment=x], image: noble",
     "muster.enrolment=x], image", "is not one kernel argument", "muster's own"},
    {"driverTwice", "drivers: [rdma]", "drivers: [rdma, rdma]", "rdma], firmware: base,",
     "\"rdma\" is listed twice", ""},
    // Nodes
    {"emptyRange", "gpu[001-002]\", profile", "gpu[]\", profile", "\"gpu[]\", profile",
     "is no hostlist", "column 5"},
    {"backwardRange", "gpu[001-002]\", profile", "gpu[002-001]\", profile",
     "\"gpu[002-001]\", profile", "is no hostlist", "write 001-002"},
    {"upperName", "names: login1", "names: Login1", "Login1, profile: gpu-n",
     "\"Login1\" is not a host name", "lower case"},
    {"nameTwice", "names: login1", "names: gpu002", "gpu002, profile: gpu-n",
     "the node gpu002 is declared twice", "racks.csv:3:1"},
    {"noNames", "names: login1, ", "", "{profile: gpu-node, ma", "neither names nor from", ""},
    {"manyInline", "names: login1", "names: \"login[1-3]\"",
     "\"login[1-3]\", profile:", "3 names, but nothing says their addresses", "from: FILE.csv"},
    {"noMac", "mac: \"52:54:00:20:01:01\", ", "", "{names: login1, profil",
     "the key \"mac\" is missing", "FILE.csv"},
    {"macOfAGroup", "52:54:00:20:01:01", "ff:ff:ff:ff:ff:ff", "\"ff:ff:ff", "group address",
     "ip link"},
    {"macTwice", "52:54:00:20:01:01", "52-54-00-20-00-02", "\"52-54-00-20-00-02\", a",
     "the MAC 52:54:00:20:00:02 of login1 is also that of gpu002", "racks.csv:3:14"},
    {"addressTwice", "address: 10.20.2.1", "address: 10.20.1.2", "10.20.1.2, bmc: \"libvi",
     "the address 10.20.1.2 of login1 is also that of gpu002", "racks.csv:3:32"},
    {"bmcTwice", "libvirt:login1", "https://10.20.250.2:443/", "\"https://10.20.250.2:4",
     "the BMC https://10.20.250.2 of login1 is also that of gpu002", "racks.csv:3:42"},
    {"serialTwice", "rack: r2", "serial: SN1", "SN1, unit: 3}",
     "the serial SN1 of login1 is also that of gpu001", "racks.csv:2:62"},
    {"badMac", "52:54:00:20:01:01", "52:54:00:20:01", "\"52:54:00:20:01\", addr",
     "is not an Ethernet address", "aa:bb:cc:dd:ee:ff"},
    {"plainHttp", "libvirt:login1", "http://10.20.250.9", "\"http://10.20.250.9\", ",
     "is not a BMC address", "in clear"},
    {"bareBmc", "libvirt:login1", "10.20.250.9", "\"10.20.250.9\", rack: r", "is not a BMC address",
     "write https://10.20.250.9"},
    {"namesWithoutRow", "gpu[001-002]\", profile", "gpu[001-004]\", profile",
     "\"gpu[001-004]\", profil", "2 of 4 nodes have no row in", "add the rows"},
    {"missingCsv", "from: racks.csv", "from: rakcs.csv", "rakcs.csv}", "cannot read",
     "inventory's folder"},
    {"inlineAndFrom", "from: racks.csv", "from: racks.csv, unit: 4", "unit: 4}",
     "\"unit\" belongs into racks.csv", ""},
};

const Mistake kPlaceMistakes[] = {
    {"unknownNode", "rails: 2", "rails: 2\n    places: [gpu001, gpu003, gpu002, login1]", "gpu003,",
     "\"gpu003\" is no node", "write \"-\" in its place"},
    {"nodeLeftOut", "rails: 2", "rails: 2\n    places: [gpu001, \"-\"]", "[gpu001",
     "places of the fabric ib leave out gpu002,login1", "where it is cabled"},
    {"twice", "rails: 2", "rails: 2\n    places: [\"gpu[001-002]\", login1, gpu001]", "gpu001]",
     "gpu001 has two places", "cluster.yaml:18:14"},
    {"tooMany", "rails: 2", "rails: 2\n    places: [gpu001, 30 free, gpu002, login1]", "[gpu001",
     "33 places are listed, the shape has 32 (1 SU of 32)", "raise sus"},
    {"noneFree", "rails: 2", "rails: 2\n    places: [gpu001, 0 free, gpu002, login1]", "0 free",
     "how many places are free", "write 3 free"},
    {"badHostlist", "rails: 2", "rails: 2\n    places: [\"gpu[1-\"]", "\"gpu[1-\"",
     "is no hostlist", ""},
    {"none", "rails: 2", "rails: 2\n    places: []", "[]", "at least 1 item",
     "a hostlist, - for an empty place"},
    {"explicitShape", "rails: 2",
     "shape: explicit\n    cables: [{from: gpu001, to: leaf1}]\n    places: [gpu001, gpu002, "
     "login1]",
     "[gpu001", "the shape explicit has no places", "remove places"},
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.new_text; }

INSTANTIATE_TEST_SUITE_P(Inventory, Mistakes, ::testing::ValuesIn(kMistakes),
                         [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(Places, Mistakes, ::testing::ValuesIn(kPlaceMistakes),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(BadInput, whoIsNotOnTheFabricHasNoPlace) {
  auto said = complaints("fabric:\n  ib:\n    rails: 2",
                         "fabric:\n  ib:\n    rails: 2\n    places: [gpu001, gpu002, login1]");
  EXPECT_THAT(said, ElementsAre());
  auto yaml =
      with("rails: 2", "rails: 2\n    places: [gpu001, gpu002, login1]", with(" fabric: ib,", ""));
  EXPECT_THAT(lines(loadYaml(yaml)),
              Contains(AllOf(HasSubstr("18:14: error: gpu001 is not on the fabric ib"),
                             HasSubstr("its profile must name"))));
}

TEST_F(BadInput, allMistakesComeTogetherInOrder) {
  std::string yaml = with("image: noble", "image: nobel");
  yaml = with("rails: 2", "rials: 2", yaml);
  yaml = with("10.30.0.0/16", "10.20.0.0/24", yaml);
  yaml = with("secrets/bmc", "secrets/none", yaml);
  yaml = with("52:54:00:20:01:01", "52:54:00:20:00:01", yaml);
  yaml = with("[gpu001, controller]", "[gpu001, nobody]", yaml);
  auto said = lines(loadYaml(yaml));
  EXPECT_THAT(said,
              ElementsAre(StartsWith("cluster.yaml:6:19"), StartsWith("cluster.yaml:8:43"),
                          StartsWith("cluster.yaml:17:5"), StartsWith("cluster.yaml:18:31"),
                          StartsWith("cluster.yaml:27:40"), StartsWith("cluster.yaml:30:45")));
}

TEST_F(BadInput, whoIsNotOnTheFabricIsNeitherManagerNorMember) {
  EXPECT_THAT(
      complaints(" fabric: ib,", ""),
      ElementsAre(HasSubstr("18:23: error: the subnet manager gpu001 is not on the fabric ib"),
                  HasSubstr("21:34: error: partition batch: gpu001 is not on the fabric ib")));
}

TEST_F(BadInput, csvMistakesNameTheCell) {
  write("racks.csv",
        "name,rack,unit,mac,address,bmc,serial\n"
        "gpu001,r1,ten,52:54:00:20:00:01,10.20.1.1,https://10.20.250.1,\n"
        "gpu002,r1,12,52:54:00:20:00,10.20.1.300,https://10.20.250.2,\n"
        "gpu003,r1\n"
        "gpu004,r1,14,,10.20.1.4,https://10.20.250.4,\n"
        "gpu001,r1,16,52:54:00:20:00:05,10.20.1.5,https://10.20.250.5,\n"
        ",r1,16,52:54:00:20:00:06,10.20.1.6,https://10.20.250.6,\n"
        "gpu007,r1,16,52:54:00:20:00:07,10.20.1.7,https://10.20.250.7,\n");
  auto said = complaints("gpu[001-002]\", profile", "gpu[001-002,004]\", profile");
  EXPECT_THAT(
      said,
      ElementsAre(AllOf(StartsWith("racks.csv:2:11: error: expected a whole number from 1 to 99"),
                        HasSubstr("\"ten\"")),
                  StartsWith("racks.csv:3:14: error: \"52:54:00:20:00\" is not"),
                  StartsWith("racks.csv:3:29: error: \"10.20.1.300\" is not"),
                  StartsWith("racks.csv:4:8: error: the row has 2 fields, the header has 7"),
                  StartsWith("racks.csv:5:14: error: \"mac\" is empty"),
                  AllOf(StartsWith("racks.csv:6:1: error: the node gpu001 has two rows"),
                        HasSubstr("racks.csv:2:1")),
                  StartsWith("racks.csv:7:1: error: \"name\" is empty"),
                  StartsWith("racks.csv:8:1: error: 1 row that no hostlist names: gpu007")));
}

/// One mistake, one line: not one for each row of the file, of 10,000 nodes.
TEST_F(BadInput, wrongNamesBringNoComplaintsOfTheirFilesRows) {
  for (const auto& [names, said] : std::map<std::string, std::string>{
           {"[gpu001]", "expected a hostlist, found a list (remove the brackets)"},
           {"\"gpu[001\"", "is no hostlist"},
           {"\"knoten-ü\"", "knoten-ü"},
           {"\"" + std::string(5000, 'g') + "\"", "the text has 5000 bytes"}}) {
    SCOPED_TRACE(names.substr(0, 20));
    auto yaml = with("  - {names: \"gpu[001-002]\", profile: gpu-node, from: racks.csv}\n",
                     "  - {names: " + names +
                         ", profile: gpu-node, from: racks.csv}\n"
                         "  - {names: gpu002, profile: other, from: racks.csv}\n");
    yaml = with("profiles:\n", "profiles:\n  other: {image: noble, fabric: ib}\n", yaml);
    EXPECT_THAT(lines(loadYaml(yaml)), ElementsAre(HasSubstr(said)));
  }
}

TEST_F(BadInput, csvHeaderMistakes) {
  write("racks.csv",
        "name,rack,units,mac,mac,bmc\ngpu001,r1,1,52:54:00:20:00:01,,https://10.20.250.1\n");
  EXPECT_THAT(
      lines(loadYaml(kSmall)),
      ElementsAre(AllOf(StartsWith("racks.csv:1:1: error: the column \"address\" is missing")),
                  AllOf(StartsWith("racks.csv:1:11: error: unknown column \"units\""),
                        HasSubstr("did you mean \"unit\"?")),
                  StartsWith("racks.csv:1:21: error: the column \"mac\" occurs twice")));
}

TEST_F(BadInput, aSecretWrittenIntoTheInventoryIsRefusedAndNeverRepeated) {
  for (const char* literal :
       {"hunter2", "{hunter2: x}", "{value: hunter2}", "\"hunter2\"", "[hunter2]"}) {
    auto said = complaints("{file: secrets/bmc}", literal);
    ASSERT_FALSE(said.empty());
    for (const std::string& line : said) EXPECT_THAT(line, Not(HasSubstr("hunter2")));
    EXPECT_THAT(said, Contains(HasSubstr("file")));
  }
  auto said = complaints("libvirt:login1", "https://root:hunter2@10.20.250.9");
  EXPECT_THAT(said,
              ElementsAre(AllOf(HasSubstr("no password in a URL"), Not(HasSubstr("hunter2")))));
}

TEST_F(BadInput, aMissingFirmwareFileWithADigestIsOnlyAWarning) {
  auto loaded = loadYaml(with("{version: 1.4.2}",
                              "{version: 1.4.2, file: no.fw, sha256: "
                              "3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b}"));
  EXPECT_TRUE(loaded.cluster);
  EXPECT_THAT(lines(loaded),
              ElementsAre(StartsWith("cluster.yaml:14:75: warning: no.fw does not exist yet")));
}

TEST_F(BadInput, aSecretThatEverybodyCanReadIsAWarning) {
  ::chmod((folder_ / "secrets/bmc").c_str(), 0644);
  auto loaded = loadYaml(kSmall);
  EXPECT_TRUE(loaded.cluster);
  EXPECT_THAT(lines(loaded), ElementsAre(AllOf(StartsWith("cluster.yaml:8:43: warning: everybody"),
                                               HasSubstr("chmod 600"))));
}

TEST_F(BadInput, anEmptySecretIsAnError) {
  write("secrets/bmc", "\n");
  EXPECT_THAT(lines(loadYaml(kSmall)),
              ElementsAre(HasSubstr("the secret's file secrets/bmc is empty")));
}

TEST_F(BadInput, whoSeesNoSecretsMissesNone) {
  std::string yaml = with("secrets/bmc", "secrets/none");
  yaml = with("{slurm: {partition: gpu}}",
              "{kubernetes: {server: \"https://10.20.0.9:6443\", pin: " + std::string(64, 'a') +
                  ", client_certificate: none.crt, client_key: secrets/none.key}}",
              yaml);
  const auto file = write("cluster.yaml", yaml);
  EXPECT_THAT(lines(load(file)), Contains(HasSubstr("secrets/none does not exist")));
  const auto loaded = loadWithoutSecrets(file);
  EXPECT_TRUE(loaded.cluster) << testing::PrintToString(lines(loaded));
  EXPECT_FALSE(loadWithoutSecrets(write("cluster.yaml", with("rails: 2", "rials: 2"))).cluster);
}

TEST_F(BadInput, unreadableInventory) {
  auto loaded = load(folder_ / "none.yaml");
  EXPECT_FALSE(loaded.cluster);
  EXPECT_THAT(lines(loaded), ElementsAre(AllOf(HasSubstr("cannot read the inventory"),
                                               HasSubstr("write a first one: muster init"))));
  EXPECT_THAT(lines(load(folder_)), ElementsAre(Not(HasSubstr("muster init"))));
}

TEST_F(BadInput, aFileFullOfMistakesIsCutOff) {
  std::string yaml(kSmall);
  yaml += "lab:\n";
  for (int i = 0; i < 3000; ++i) yaml += "  key" + std::to_string(i) + ": 1\n";
  auto said = lines(loadYaml(yaml));
  EXPECT_EQ(said.size(), 1001u);
  EXPECT_THAT(said.back(), HasSubstr("and 2000 more problems"));
}

}  // namespace
}  // namespace muster::inventory
