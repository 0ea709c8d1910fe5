# SPDX-License-Identifier: Apache-2.0
"""A rendered fragment of config_db.json beside SONiC's own files: its YANG models, by yanglint
(libyang), and its template of QoS, by jinja2.

    sonic_models.py BUILDIMAGE FRAGMENT ASIC

BUILDIMAGE: a checkout of sonic-buildimage. ASIC: asic_type, such as mellanox. Prints what is wrong, a
line each; exit status 0: nothing.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import jinja2

# Of each table: module and container, its list, the leaves of a key, and, where a row is a list of
# pairs, that list and its two leaves.
TABLES = {
    "PORT": ("sonic-port", "PORT_LIST", ["name"], None),
    "DSCP_TO_TC_MAP": ("sonic-dscp-tc-map", "DSCP_TO_TC_MAP_LIST", ["name"], ("DSCP_TO_TC_MAP", "dscp", "tc")),
    "TC_TO_QUEUE_MAP": ("sonic-tc-queue-map", "TC_TO_QUEUE_MAP_LIST", ["name"], ("TC_TO_QUEUE_MAP", "tc", "qindex")),
    "TC_TO_PRIORITY_GROUP_MAP": (
        "sonic-tc-priority-group-map", "TC_TO_PRIORITY_GROUP_MAP_LIST", ["name"],
        ("TC_TO_PRIORITY_GROUP_MAP", "tc", "pg")),
    "MAP_PFC_PRIORITY_TO_QUEUE": (
        "sonic-pfc-priority-queue-map", "MAP_PFC_PRIORITY_TO_QUEUE_LIST", ["name"],
        ("MAP_PFC_PRIORITY_TO_QUEUE", "pfc_priority", "qindex")),
    "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": (
        "sonic-pfc-priority-priority-group-map", "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP_LIST", ["name"],
        ("PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", "pfc_priority", "pg")),
    "PORT_QOS_MAP": ("sonic-port-qos-map", "PORT_QOS_MAP_LIST", ["ifname"], None),
    "WRED_PROFILE": ("sonic-wred-profile", "WRED_PROFILE_LIST", ["name"], None),
    "SCHEDULER": ("sonic-scheduler", "SCHEDULER_LIST", ["name"], None),
    "QUEUE": ("sonic-queue", "QUEUE_LIST", ["ifname", "qindex"], None),
    "PFC_WD": ("sonic-pfcwd", "PFC_WD_LIST", ["ifname"], None),
    "BUFFER_PG": ("sonic-buffer-pg", "BUFFER_PG_LIST", ["port", "pg_num"], None),
}


LEAF = re.compile(r"(leaf|typedef) (\S+?)\s*\{((?:(?!\b(?:leaf|list|container) ).)*?)\btype (\S+?)[;\s{]", re.DOTALL)


def typed(module, shared):
    """How JSON writes a leaf of this module: 64 bits and words are text there, less is a number."""
    kinds = {name: kind for word, name, _, kind in LEAF.findall(re.sub(r'"[^"]*"', "", shared)) if word == "typedef"}
    forms = {}
    for _, leaf, _, kind in LEAF.findall(re.sub(r'"[^"]*"', "", module)):
        kind = kinds.get(kind.split(":")[-1], kind)
        forms[leaf] = int if re.fullmatch(r"u?int(8|16|32)", kind) else (
            (lambda text: text == "true") if kind == "boolean" else str)
    return lambda leaf, value: forms.get(leaf, str)(value)


def rows(table, content, form):
    _, _, keys, pairs = TABLES[table]
    for key, row in content.items():
        out = dict(zip(keys, key.split("|"), strict=True))
        if pairs:
            inner, left, right = pairs
            out[inner] = [{left: form(left, a), right: form(right, b)} for a, b in row.items()]
        else:
            out |= {leaf: form(leaf, value) for leaf, value in row.items()}
        yield out


def yang_problems(buildimage, fragment):
    """It is loaded over a running configuration, which has the ports' lanes and speeds."""
    there = {port: {"lanes": str(4 * number), "speed": "400000"} for number, port in enumerate(fragment["PORT"])}
    fragment = fragment | {"PORT": {port: there[port] | row for port, row in fragment["PORT"].items()}}
    models = buildimage / "src/sonic-yang-models"
    unknown = sorted(set(fragment) - set(TABLES))
    problems = [f"there is no model for the table {table}" for table in unknown]
    instance = {}
    for table, content in fragment.items():
        if table in TABLES:
            module, listed, _, _ = TABLES[table]
            form = typed((models / "yang-models" / f"{module}.yang").read_text(),
                         (models / "yang-templates/sonic-types.yang.j2").read_text())
            instance[f"{module}:{module}"] = {table: {listed: list(rows(table, content, form))}}
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        for template in (models / "yang-templates").glob("*.j2"):  # as its setup.py renders them
            text = jinja2.Template(template.read_text(), trim_blocks=True).render(yang_model_type="py")
            (folder / template.stem).write_text(text)
        data = folder / "config.json"
        data.write_text(json.dumps(instance))
        named = {TABLES[table][0] for table in fragment if table in TABLES} | {"sonic-device_metadata"}
        modules = sorted(models / "yang-models" / f"{name}.yang" for name in named)
        ran = subprocess.run(
            ["yanglint", "-p", str(folder), "-p", str(models / "yang-models"), "-t", "config", "-f", "json",
             *map(str, modules), str(data)],
            capture_output=True, text=True, timeout=120, check=False)
        if ran.returncode != 0:
            problems += ["yanglint: " + line for line in ran.stderr.splitlines() if line.startswith("libyang err")] or \
                        ["yanglint ended with " + str(ran.returncode) + ": " + ran.stderr[:400]]
    return problems


def stock(buildimage, ports, asic):
    """What SONiC's own template makes for a switch with these ports."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(buildimage / "files/build_templates"), trim_blocks=True)
    environment.filters["sort_by_port_index"] = lambda value: None  # sorts in place there
    environment.globals["template_exists"] = lambda name: False
    text = (buildimage / "files/build_templates/qos_config.j2").read_text()
    # Jinja2 of SONiC takes this line; that of today wants the sign of equality.
    text = text.replace("{%- set SYSTEM_PORT_ACTIVE [] %}", "{%- set SYSTEM_PORT_ACTIVE = [] %}")
    made = environment.from_string(text).render(
        PORT={port: {} for port in ports}, DEVICE_METADATA={"localhost": {}}, asic_type=asic)
    return json.loads(made)


def template_problems(buildimage, fragment, asic):
    ports = sorted(fragment["PORT_QOS_MAP"])
    own = stock(buildimage, ports, asic)
    problems = []
    maps = [table for table in own if table.endswith("_MAP") or table.startswith("MAP_")]
    for table in maps:
        if table not in fragment:
            problems.append(f"SONiC's template has {table} for {asic}, the fragment has not")
    for table in fragment:
        if (table.endswith("_MAP") or table.startswith("MAP_")) and table not in own:
            problems.append(f"the fragment has {table}, SONiC's template has none for {asic}")
    for port in ports:
        wanted, rendered = set(own["PORT_QOS_MAP"][port]), set(fragment["PORT_QOS_MAP"][port])
        if wanted != rendered:
            problems.append(f"{port}: PORT_QOS_MAP differs from SONiC's by {sorted(wanted ^ rendered)}")
    for table in ("TC_TO_QUEUE_MAP", "MAP_PFC_PRIORITY_TO_QUEUE"):  # one to one in both
        if list(own[table].values()) != list(fragment[table].values()):
            problems.append(f"{table} is not SONiC's")
    shown = {type(value) for table in fragment.values() for row in table.values() for value in row.values()}
    if shown != {str}:
        problems.append("a value is no text: config_db knows nothing else")
    return problems


def main():
    buildimage, fragment, asic = pathlib.Path(sys.argv[1]), json.loads(pathlib.Path(sys.argv[2]).read_text()), sys.argv[3]
    problems = yang_problems(buildimage, fragment) + template_problems(buildimage, fragment, asic)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
