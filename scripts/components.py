# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""What the programs consist of besides this repository's sources: the Swift packages whose modules the
linker took, what these carry of others, the Swift runtime, and the Debian packages of the shared
libraries that a program loads. All of it is read from a build, nothing from a list of wishes."""

import dataclasses
import json
import pathlib
import re
import shutil
import subprocess

from command_line import ROOT, fail

PROGRAMS = ("lamplighter", "lamplighter-lab")
APACHE, SWIFT, MIT = "Apache-2.0", "Apache-2.0 WITH Swift-exception", "MIT"
# Of Debian's packages, by the name of the source: the licence of the library as its `copyright` has it,
# in SPDX's words. Programs and manuals of the same source may have others.
DEBIAN_LICENCES = {
    "brotli": MIT,
    "curl": "curl",
    "cyrus-sasl2": "BSD-3-Clause-Attribution",
    "gcc-12": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "gcc-14": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "glibc": "LGPL-2.1-or-later",
    "gmp": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "gnutls28": "LGPL-2.1-or-later",
    "keyutils": "LGPL-2.0-or-later",
    "krb5": MIT,
    "libffi": MIT,
    "libidn2": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libpsl": MIT,
    "librdkafka": "BSD-2-Clause",
    "libssh2": "BSD-3-Clause",
    "libtasn1-6": "LGPL-2.1-or-later",
    "libunistring": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libzstd": "BSD-3-Clause OR GPL-2.0-only",
    "lz4": "BSD-2-Clause",
    "nettle": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "nghttp2": MIT,
    "openldap": "OLDAP-2.8",
    "openssl": APACHE,
    "p11-kit": "BSD-3-Clause",
    "rtmpdump": "LGPL-2.1-or-later",
    "simdjson": APACHE,
    "zlib": "Zlib",
}


@dataclasses.dataclass(frozen=True)
class Component:
    """One third-party part. `needs` and `carrier` are names of other components."""

    kind: str  # swift, embedded, runtime or debian
    name: str
    version: str
    licence: str  # an SPDX expression; empty if unknown
    purl: str
    source: str  # a repository's address, or the name of Debian's source package
    revision: str = ""
    texts: tuple[pathlib.Path, ...] = ()  # its licence and notices
    copyright: str = ""
    carrier: str = ""  # whose sources it is in
    needs: frozenset[str] = frozenset()
    is_direct: bool = True

    @property
    def is_linked_in(self):
        """Whether its code is in the programs' files; else it is loaded when they start."""
        return self.kind != "debian"


@dataclasses.dataclass(frozen=True)
class Embedded:
    """Sources of somebody else in a module of a Swift package."""

    module: str
    name: str
    source: str
    copyright: str
    text: str = ""
    version_file: str = ""


EMBEDDED = (
    Embedded("CNIOLLHTTP", "llhttp", "https://github.com/nodejs/llhttp", "Copyright Fedor Indutny, 2018.",
             "LICENSE", "include/c_nio_llhttp.h"),
    Embedded("CYaml", "libyaml", "https://github.com/yaml/libyaml",
             "Copyright (c) 2017-2020 Ingy döt Net\nCopyright (c) 2006-2016 Kirill Simonov"),
)
ICU_LICENCE = ROOT / "scripts/licences/Unicode-3.0.txt"


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def components(folder, programs=PROGRAMS):
    """The components of programs that were built in a folder such as .build/release, sorted."""
    folder = pathlib.Path(folder)
    built = [folder / program for program in programs if (folder / program).exists()]
    if not built:
        fail(f"{folder} has none of {', '.join(programs)}")
    found = swift_packages(folder, [program.name for program in built])
    found += swift_runtime(built) + debian_packages(built)
    return sorted(found, key=lambda each: (each.kind, each.name.lower()))


# MARK: Swift packages


def linked_modules(folder, program):
    """The modules whose objects the linker was given."""
    names = (folder / f"{program}.product/Objects.LinkFileList").read_text().split("\n")
    return {part.removesuffix(".build") for name in names for part in pathlib.PurePath(name.strip("'")).parts
            if part.endswith(".build") and part != ".build"}


def sources_of(module):
    """The source files of a module, by its folder in a build: a Swift module has a list, one in C the
    dependencies of each object."""
    listed = module / "sources"
    if listed.exists():
        return listed.read_text().split()
    paths = []
    for file in sorted(module.rglob("*.d")):
        paths += file.read_text().replace("\\\n", " ").split()[1:2]
    return paths


def swift_packages(folder, programs, resolved=None, root=pathlib.Path("/")):
    """The packages whose modules were linked. `resolved` is the Package.resolved of the build (default: the
    repository's); `root` is what the build saw as /."""
    pins = {pathlib.PurePath(pin["location"]).name.removesuffix(".git"): pin
            for pin in json.loads((resolved or ROOT / "Package.resolved").read_text())["pins"]}
    modules = {}
    for module in set().union(*(linked_modules(folder, program) for program in programs)):
        path = next(iter(sources_of(folder / f"{module}.build")), None)
        if path is None:
            fail(f"the module {module} has no sources in {folder}")
        checkout, found, inside = path.partition("/checkouts/")
        if found:
            name = inside.split("/")[0]
            modules.setdefault(name, {})[module] = root / checkout.lstrip("/") / "checkouts" / name
    result = []
    for name, its_modules in modules.items():
        checkout = next(iter(its_modules.values()))
        if name not in pins:
            fail(f"Package.resolved has no {name}")
        result.append(swift_package(name, pins[name], checkout))
        result += [embedded(each, name, checkout) for each in EMBEDDED if each.module in its_modules]
    return result


def swift_package(name, pin, checkout):
    texts = tuple(sorted(path for path in checkout.iterdir()
                         if re.fullmatch(r"(LICENSE|NOTICE)(\.txt|\.md)?", path.name)))
    licence = licence_of("".join(path.read_text() for path in texts if path.name.startswith("LICENSE")))
    if not licence:
        fail(f"the licence of {name} is not known")
    location = pin["location"].removesuffix(".git")
    state = pin["state"]
    return Component("swift", name, state["version"], licence,
                     f"pkg:swift/{location.removeprefix('https://')}@{state['version']}", location,
                     state["revision"], texts)


def licence_of(text):
    """The SPDX expression of a licence's text."""
    if "Apache License" in text:
        return SWIFT if "Runtime Library Exception" in text else APACHE
    return MIT if "Permission is hereby granted, free of charge" in text else ""


def embedded(part, carrier, checkout):
    folder = next(checkout.glob(f"Sources/{part.module}"))
    version = ""
    if part.version_file:
        text = (folder / part.version_file).read_text()
        version = ".".join(re.findall(r"#define \w+_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))
    purl = f"pkg:github/{part.source.removeprefix('https://github.com/')}{'@' if version else ''}{version}"
    texts = (folder / part.text,) if part.text else ()
    return Component("embedded", part.name, version, MIT, purl, part.source, texts=texts,
                     copyright=part.copyright, carrier=carrier, is_direct=False)


# MARK: The Swift runtime


def swift_runtime(built):
    """The standard library, Foundation and Dispatch, and ICU in them."""
    found = re.search(r"Swift version (\S+)", output("swift", "--version"))
    toolchain = pathlib.Path(shutil.which("swift")).resolve().parent.parent
    text = toolchain / "share/swift/LICENSE.txt"
    version = found[1]
    runtime = Component(
        "runtime", "swift-runtime", version, SWIFT, f"pkg:github/swiftlang/swift@swift-{version}-RELEASE",
        "https://github.com/swiftlang/swift", texts=(text,) if text.exists() else ())
    holder = next((path for path in [*built, *libraries(built)] if icu_version(path)), None)
    if holder is None:
        return [runtime]
    icu = Component(
        "embedded", "ICU", icu_version(holder), "Unicode-3.0", "pkg:github/swiftlang/swift-foundation-icu",
        "https://github.com/swiftlang/swift-foundation-icu", texts=(ICU_LICENCE,),
        copyright="Copyright © 2016-2024 Unicode, Inc.", carrier=runtime.name, is_direct=False)
    return [runtime, icu]


def icu_version(path):
    if path.name not in (*PROGRAMS, "lib_FoundationICU.so"):
        return ""
    found = re.search(rb"icudt(\d+)l", path.read_bytes())
    return found[1].decode() if found else ""


# MARK: Debian packages


def libraries(built):
    """The shared libraries that programs load, directly or not."""
    lines = "".join(output("ldd", program) for program in built).splitlines()
    found = {re.search(r"(/\S+) \(0x", line) for line in lines}
    return sorted({pathlib.Path(match[1]) for match in found if match})


def needed(path):
    """The names of the libraries that a file is linked with."""
    return set(re.findall(r"\(NEEDED\)\s+Shared library: \[(.+?)\]", output("readelf", "--dynamic", path)))


def package_of(library):
    """The Debian package that a library is of; none if it is the toolchain's."""
    real = library.resolve()
    # /lib is a link to /usr/lib, and packages name either.
    for path in {str(each).removeprefix("/usr") for each in (real, library)}:
        for name in (path, f"/usr{path}"):
            done = subprocess.run(
                ["dpkg-query", "--search", name], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return done.stdout.split(":")[0]
    return None


def debian_packages(built):
    packages, names = {}, {}
    for library in libraries(built):
        package = package_of(library)
        if package:
            packages.setdefault(package, []).append(library)
            names[library.name] = package
    direct = set().union(*(needed(program) for program in built))
    # What the toolchain's shared libraries need is needed by the Swift runtime.
    system = dict(line.rstrip().replace('"', "").split("=", 1)
                  for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return [debian_package(name, paths, names, direct, system) for name, paths in packages.items()]


def debian_package(name, paths, names, direct, system):
    # A package that is installed for several architectures is shown once for each.
    name_here = f"{name}:{output('dpkg', '--print-architecture').strip()}"
    form = "${Version} ${source:Package} ${Architecture}"
    version, source, architecture = output("dpkg-query", "--show", "--showformat", form, name_here).split()
    encoded = version.replace("+", "%2B").replace(":", "%3A")
    purl = (f"pkg:deb/{system['ID']}/{name}@{encoded}?arch={architecture}"
            f"&distro={system['ID']}-{system.get('VERSION_ID', '')}")
    needs = {names[each] for path in paths for each in needed(path) if each in names} - {name}
    copyright_file = pathlib.Path("/usr/share/doc", name, "copyright")
    return Component("debian", name, version, DEBIAN_LICENCES.get(source, ""), purl, source,
                     texts=(copyright_file,) if copyright_file.exists() else (), needs=frozenset(needs),
                     is_direct=any(path.name in direct for path in paths))
