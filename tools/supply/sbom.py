"""Write the bill of materials of a deployment in CycloneDX.

Versions and hashes are those of the runtime lock; licences and dependencies are those that the
installed packages declare.  No network is needed, and the same commit gives the same bytes.

    python -m tools.supply.sbom dist/opboost.cdx.json
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from importlib.metadata import Distribution, distribution
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.hash.factories import HashTypeFactory
from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, Property, XsUri
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.supply.lock import RUNTIME, Pin, read


def licences(package: Distribution) -> list[License]:
    """Return a package's licences: its expression, else a single line, else its classifiers."""
    about = package.metadata
    lines = about.get_all("License-Expression") or about.get_all("License") or []
    if not lines or "\n" in lines[0]:
        classifiers = about.get_all("Classifier") or []
        lines = [line.split(" :: ")[-1] for line in classifiers if line.startswith("License ::")]
    return [LicenseFactory().make_from_string(line) for line in lines]


def component(pin: Pin) -> Component:
    """Return a pin as a component, which for other platforms is optional and has no licence."""
    declared = []
    if pin.here:
        package = distribution(pin.name)
        if package.version != pin.version:
            raise ValueError(
                f"{pin.name} {package.version} is installed, but the lock has {pin.version}."
                " Run make clean and try again."
            )
        declared = licences(package)
    place = PackageURL("pypi", name=pin.name, version=pin.version)
    files = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(place.to_string()),
        comment="any one of these files",
        hashes=[HashTypeFactory().from_composite_str(text) for text in pin.hashes],
    )
    return Component(
        type=ComponentType.LIBRARY,
        name=pin.name,
        version=pin.version,
        bom_ref=f"{pin.name}=={pin.version}",
        purl=place,
        scope=ComponentScope.REQUIRED if pin.here else ComponentScope.OPTIONAL,
        licenses=declared,
        external_references=[files],
        properties=[Property(name="opboost:marker", value=pin.marker)] if pin.marker else [],
    )


def needed(package: Distribution, extra: str = "") -> set[str]:
    """Return the names of the packages that a package needs on this platform."""
    wanted = map(Requirement, package.requires or [])
    return {
        canonicalize_name(requirement.name)
        for requirement in wanted
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra})
    }


def bill(made: datetime) -> Bom:
    """Return the bill of materials of opboost with its boosters."""
    pins = read(RUNTIME)
    parts = {pin.name: component(pin) for pin in pins if pin.here}
    product = distribution("opboost")
    root = Component(
        type=ComponentType.APPLICATION,
        name="opboost",
        version=product.version,
        bom_ref=f"opboost=={product.version}",
        purl=PackageURL("pypi", name="opboost", version=product.version),
        licenses=licences(product),
    )
    bom = Bom(
        components=[*parts.values(), *(component(pin) for pin in pins if not pin.here)],
        metadata=BomMetaData(component=root, timestamp=made),
        serial_number=uuid5(NAMESPACE_URL, f"{product.version} {made} {pins}"),
    )
    bom.register_dependency(root, [parts[name] for name in sorted(needed(product, "boost"))])
    for name, part in parts.items():
        bom.register_dependency(
            part, [parts[other] for other in sorted(needed(distribution(name))) if other in parts]
        )
    return bom


def main(path: Path) -> None:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    made = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    path.parent.mkdir(parents=True, exist_ok=True)
    bom = bill(made)
    JsonV1Dot6(bom).output_to_file(str(path), allow_overwrite=True, indent=2)
    print(f"{path}: {len(bom.components)} components")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
