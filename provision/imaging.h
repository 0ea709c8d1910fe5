// SPDX-License-Identifier: Apache-2.0
// How a node comes to its image and runs it: a system written to its disks, or a live one started
// in its memory. Each call looks where the node is and does the next thing.
#pragma once

#include "provision/built_images.h"
#include "provision/node_reader.h"
#include "provision/provision.h"
#include "provision/restart.h"

#include <optional>
#include <string>

namespace muster::provision {

class Imaging {
 public:
  Imaging(const ProvisionDeps& deps, const BuiltImages& images, const NodeReader& reader,
          Restarts& restarts)
      : deps_(deps), images_(images), reader_(reader), restarts_(restarts) {}

  /// The facet `image`: the image of the node's profile is on its disks (or in its memory) and
  /// runs.
  Async<lifecycle::Outcome> install(const inventory::Node& node, lifecycle::ActContext& context);
  /// The facet `os`: what is installed runs; of a live image: it is started.
  Async<lifecycle::Outcome> run(const inventory::Node& node, lifecycle::ActContext& context);

 private:
  Async<lifecycle::Outcome> startLive(const inventory::Node& node, const PackedImage& image,
                                      lifecycle::ActContext& context);
  Async<lifecycle::Outcome> bootInstalled(const inventory::Node& node, const PackedImage& image);
  Async<std::optional<lifecycle::Blocked>> dataInTheWay(const inventory::Node& node,
                                                        const gateway::AgentState& state,
                                                        bool allowed);
  std::string params(const inventory::Node& node, const PackedImage& image, bool wipe_allowed,
                     bool data_allowed) const;

  const ProvisionDeps& deps_;
  const BuiltImages& images_;
  const NodeReader& reader_;
  Restarts& restarts_;
};

}  // namespace muster::provision
