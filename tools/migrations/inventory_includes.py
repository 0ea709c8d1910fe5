#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every file includes the sections of the inventory that it uses, and headers that only refer to them include fwd.h.

May be run again at any time (after a merge): it adds what is missing, takes cluster.h out of headers that need no more than its
name, and writes -> before what is held. It includes too much rather than too little."""
import re

from source_text import code_spans, read, replace_in_code, tracked, write

MODEL = "inventory/model/"
# section → what a user of it writes; types count in headers only where they are not references or pointers.
TYPES = {
    "node.h": "Node|BmcAddress",
    "profile.h": "Profile|Expectation|BootMode",
    "rails.h": "Rail",
    "images.h": "Image|ImageKind|ImageBuild|ImageImport",
    "package_archive.h": "PackageArchive",
    "drivers.h": "Driver|ModuleBuild",
    "firmware.h": r"Firmware\w+|compareVersions",
    "fabric.h": r"Fabric|Fabric(?:Shape|Cable|Switches|Exclusion)|Partition|AttachedRole|Roce|NvlinkDomain",
    "gates.h": "Gate|GateLevel",
    "pools.h": "Pool|SlurmPool|KubernetesPool|OnTimeout|DrainPolicy|EvictionRules|JobPods|FragilePods",
    "credentials.h": "SecretRef|Credential",
    "networks.h": "Network|Subnet|BootServer|DhcpMode|AddressPlan|subnetOf|isProvisioned|controllersOf|isController|putOnHost|agentUrls|bootServerOf|addressPlan",
    "mounts.h": "MountedSystem|MountKind",
    "storage.h": "RaidLevel|RootKey|RootLayout|StorageSet|StorageVolume|FileSystem|raidNumber|leastDisks",
    "access.h": "ConsoleSpec|ConsoleVia|IpmiSpec|PowerHook|BmcCertificateSpec|TpmSpec|kIpmiPort",
    "hardware.h": "PartRule|PartKind",
    "bmc_trust.h": "BmcTrust|BmcTrustPolicy|bmcTrustOf|bmcCredentialOf|word",
    "racks.h": "Rack",
    "monitor.h": "MonitorPolicy|SymptomRule|HealthAction|Rung|Repair|OnConfigChange|Breaker|kHealthActions",
    "discovery.h": "DiscoveryPolicy|DiscoveryRule|NodeFile|kMatchFields",
    "limits.h": "Limits",
    "lab.h": "LabSpec",
    "certificates.h": "CertificatePolicy",
    "rollout_policy.h": "RolloutPolicy|Canary|Ceiling|Unavailability|RegressionRule|OnInconclusive|OnFailure",
    "cluster.h": "Cluster",
}
MEMBERS = {
    "node.h": r"findNode\(|\bnodes\b|\bnode_?\b(?:\(\))?(?:\.|->)(?:mac|address|bmc|rack|unit|serial|profile|switch_name|switch_port|name|where)\b",
    "profile.h": r"profileOf\(|\bprofiles\b|\bprofile\w*(?:\(\))?(?:\.|->)\w",
    "images.h": r"(?:\.|->|::)images\b|isLive\(",
    "drivers.h": r"(?:\.|->|::)drivers\b",
    "firmware.h": r"(?:cluster_?|cluster\(\)|declared_?|live|alone|change)(?:\.|->)firmware\b|\bbaseline_?(?:\.|->)",
    "fabric.h": r"(?:\.|->|::)fabrics\b|\bfabric_?(?:\(\))?(?:\.|->)\w",
    "gates.h": r"(?:\.|->|::)gates\b|\bgate_?(?:\.|->)\w",
    "pools.h": r"(?:\.|->|::)pools\b|\bpool_?(?:\(\))?(?:\.|->)(?:slurm|kubernetes|drain|name)\b",
    "credentials.h": r"(?:\.|->|::)credentials\b",
    "bmc_trust.h": r"\bbmc\.trust\b|\bbmc_trust\b",
    "hardware.h": r"\bexpect\.parts\b",
    "storage.h": r"profile\w*(?:\(\))?(?:\.|->)(?:storage|root)\b",
    "rails.h": r"profile\w*(?:\(\))?(?:\.|->)(?:second\.)?rails\b",
    "access.h": r"(?:profile\w*(?:\(\))?|second|profileOf\([^()]*\)|\])(?:\.|->)(?:console|ipmi|pdu|bmc_certificate|tpm)\b",
    "monitor.h": r"cluster_?(?:\(\))?(?:\.|->)monitor\b",
    "discovery.h": r"cluster_?(?:\(\))?(?:\.|->)(?:discovery|node_files)\b",
    "lab.h": r"cluster_?(?:\(\))?(?:\.|->)lab\b",
    "certificates.h": r"cluster_?(?:\(\))?(?:\.|->)certificates\b",
    "networks.h": r"(?:\.|->|::)networks\b|provisioning\(\)|\bnetwork_?(?:\(\))?(?:\.|->)\w",
    "mounts.h": r"\bfile_systems\b",
    "racks.h": r"(?:cluster_?|cluster\(\))(?:\.|->)racks\b",
    "limits.h": r"cluster_?(?:\(\))?(?:\.|->)limits\b",
    "cluster.h": r"\bcluster_?\b(?:\(\))?(?:\.|->)\w|profileOf\(|findNode\(|isLive\(|\bdeclared\b(?:\.|->)\w",
}
BASE = {  # what came along with cluster.h
    "base/ids.h": r"\b(?:NodeName|Mac|Ipv4|Cidr)\b",
    "base/result.h": r"\bResult<|\bSourceRef\b",
    "base/diagnostic.h": r"\bDiagnostics?\b",
    "base/log.h": r"\bSecret\b",
}
# members that are held (base/held.h): what looks into one writes -> where it wrote a dot
HELD = [
    (re.compile(r"((?:cluster|declared)_?(?:\(\))?(?:\.|->)(?:lab|monitor|limits|discovery|certificates))\.(?=\w)"), r"\1->"),
    (re.compile(r"(\bbmc\.trust|\bprofile(?:->second)?\.bmc_trust)\.(?=\w)"), r"\1->"),
    (re.compile(r"(= )((?:\w+(?:\.|->))*cluster_?(?:\.|->)(?:lab|monitor|limits|discovery|certificates);)"), r"\1*\2"),
]
# names that only look like a section's
NOT = {
    ("tests/lifecycle/rack.h", "fabric.h"),
    ("provision/images/image_library.h", "profile.h"),
    ("bmc/bmc.h", "credentials.h"),  # held
    ("lifecycle/executor/engine.h", "node.h"),
    ("lab/rack.h", "node.h"),
}
ALL = "sections.h"  # for who has to do with all of them
FORWARD = "fwd.h"


def code_of(text):
    return "".join(text[a:b] for a, b, code in code_spans(text) if code)


def included(text):
    return re.findall(r'^#include "(inventory/model/\w+\.h)"$', text, re.M)


def needed(path, text):
    code = code_of(text)
    inside = path.startswith(("inventory/", "tests/inventory/"))
    uses_inventory = inside or "inventory::" in code or re.search(r"\bcluster_?\b", code)
    if not uses_inventory:
        return set(), False
    scope = "" if inside or re.search(r"using namespace (muster::)?inventory|using inventory::", code) else "inventory::"
    header = path.endswith(".h") and not path.startswith("tests/")
    out, named = set(), False
    for section in TYPES:
        types = scope + r"(?<![\w.])(?:%s)\b" % TYPES[section] if not scope else scope + r"(?:%s)\b" % TYPES[section]
        hit = False
        for match in re.finditer(types, code):
            named = True
            rest = code[match.end():match.end() + 3].lstrip()
            if not (header and (rest.startswith(("&", "*")) or re.search(r"(?:struct|class)\s+$", code[:match.start()]))):
                hit = True
                break
        if hit or (section in MEMBERS and re.search(MEMBERS[section], code)):
            out.add(section)
    return out, named


def insert(path, text, line):
    """The line among the project's includes, in order; never before a source's own header."""
    lines = text.split("\n")
    own = '#include "%s"' % re.sub(r"\.cc$", ".h", path)
    quoted = [i for i, one in enumerate(lines) if re.match(r'#include "\w+/', one) and one != own]
    folder = line.split("/")[0]
    near = [i for i in quoted if lines[i].startswith(folder + "/")]
    if near or quoted:
        run = near
        if not near:  # the last run of project headers
            run = [quoted[-1]]
            while run[0] - 1 in quoted:
                run.insert(0, run[0] - 1)
        lines.insert(next((i for i in run if lines[i] > line), run[-1] + 1), line)
    elif own in lines:
        at = lines.index(own) + 1
        lines[at:at] = ["", line]
    else:
        at = next(i for i, one in enumerate(lines) if one.startswith(("#include", "namespace")))
        lines[at:at] = [line, ""]
    return "\n".join(lines)


def main():
    for path in tracked("*.h", "*.cc"):
        if path.startswith((MODEL, "inventory/parse/change.h", "inventory/schema/declared.h", "agent/", "wire/", "base/")):
            continue
        text = old = read(path)
        for pattern, put in HELD:
            text = replace_in_code(text, lambda code: pattern.sub(put, code))
        have = set(included(text))
        if MODEL + ALL in have:
            continue
        want, named = needed(path, text)
        if path.endswith(".h") and MODEL + "cluster.h" in have:
            text = text.replace('#include "inventory/model/cluster.h"', '#include "inventory/model/fwd.h"')
            have.discard(MODEL + "cluster.h")
            have.add(MODEL + FORWARD)
        if path.endswith(".h") and MODEL + FORWARD in have:
            for name, pattern in BASE.items():
                if re.search(pattern, code_of(text)) and '#include "%s"' % name not in text:
                    text = insert(path, text, '#include "%s"' % name)
        if MODEL + "cluster.h" in have or "cluster.h" in want:
            want.discard("node.h")  # comes with it
        for section in sorted(want):
            if MODEL + section not in have and (path, section) not in NOT:
                text = insert(path, text, '#include "%s%s"' % (MODEL, section))
        if text != old:
            write(path, text)


if __name__ == "__main__":
    main()
