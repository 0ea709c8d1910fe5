// SPDX-License-Identifier: Apache-2.0
#include "app/runs/bmc_changer.h"

#include "app/controller/controller.h"
#include "bmc/bulk_operation.h"
#include "bmc/ipmi/ipmi_bmc.h"
#include "bmc/ipmi/pdu.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"

namespace muster::app {
namespace {

constexpr std::chrono::hours kBmcCertificateLifetime{24 * 365 * 2};

class ControllersBmcs final : public BmcChanger {
 public:
  ControllersBmcs(Controller& controller, const inventory::Cluster& cluster)
      : controller_(controller), cluster_(cluster) {}

  Async<void> rotatePassword(NodeName node) override {
    return controller_.bmcs().at(node).rotatePassword();
  }

  Async<void> issueCertificate(NodeName name) override {
    const auto& node = *cluster_.findNode(name);
    const auto host = bmc::hostOf(node.bmc.url);
    const auto& signer = cluster_.profileOf(node).bmc_certificate;
    const bmc::CertificateSubject subject{host, {host, name.str() + "-bmc"}};
    auto& controller = controller_;
    auto ours = [&controller, subject](std::string request) -> Async<std::string> {
      co_return controller.ca().signBmc(request, subject.common_name, subject.names,
                                        kBmcCertificateLifetime);
    };
    return bmc::certify(
        controller_.bmcs().at(name), subject,
        signer ? bmc::signBy(bmc::argumentsFor(node, signer->sign), controller_.processes())
               : bmc::CertificateSigner(ours));
  }

 private:
  Controller& controller_;
  const inventory::Cluster& cluster_;
};

}  // namespace

std::unique_ptr<BmcChanger> makeBmcChanger(Controller& controller,
                                           const inventory::Cluster& cluster) {
  return std::make_unique<ControllersBmcs>(controller, cluster);
}

}  // namespace muster::app
