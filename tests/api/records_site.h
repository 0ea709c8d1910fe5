// SPDX-License-Identifier: Apache-2.0
// A site with what records are about: a fabric, a firmware baseline, who may override certificates.
#pragma once

#include "app/site/site_keys.h"
#include "base/io/crypto.h"
#include "firmware/files.h"
#include "tests/api/site_clients.h"

#include <string>

namespace muster::api {

/// What the site's pages declare beside ApiSite's: a fabric, a baseline, who may override.
class RecordsSite : public SiteClientSite {
 protected:
  RecordsSite() {
    const std::string image = "{\"component\": \"BIOS\", \"version\": \"1.5.0\"}\n";
    site_.write("bios.fw", image);
    std::string site(kSite);
    site.insert(site.find("pools:"),
                "fabric:\n  ib: {shape: rail-optimized, sus: 1, nodes_per_su: 4, rails: 2, "
                "spines_per_su: 2, switch_ports: 16, subnet_managers: [controller]}\n"
                "firmware:\n  base: {components: {BIOS: {version: 1.5.0, file: bios.fw, sha256: " +
                    io::sha256Hex(image) + "}}}\n" + "certificates: {may_override: [" +
                    app::userName() + "]}\n");
    const std::string profile = "image: bookworm, pool: batch";
    site.replace(site.find(profile), profile.size(), profile + ", fabric: ib, firmware: base");
    site_.write("cluster.yaml", site);
    fill();
    const auto store = site_.store();
    EXPECT_TRUE(store->putFacts(
        {fact("gpu001", "image", "bookworm@aaaa"), fact("gpu001", "firmware.BIOS", "1.4.0"),
         fact("gpu002", "firmware.BIOS", "1.4.0"),
         fact("gpu002", firmware::failedFacet("BIOS").str(), "1.5.0 the image did not verify")}));
  }
  static lifecycle::Fact fact(const std::string& node, const std::string& facet,
                              const std::string& value) {
    return {lifecycle::Subject(NodeName(node)),
            FacetName(facet),
            value,
            SystemClock().now(),
            "test",
            ""};
  }
};

}  // namespace muster::api
