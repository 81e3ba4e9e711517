# Stands in for the build backend of a source package while pip asks for its metadata: nothing is built, and nothing else is fetched.
import email
import os


def get_requires_for_build_wheel(settings=None):
    return []


def prepare_metadata_for_build_wheel(folder, settings=None):
    with open("PKG-INFO", encoding="utf-8") as file:
        known = email.message_from_file(file)
    name, version = known["Name"], known["Version"]
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    os.mkdir(os.path.join(folder, info))
    with open(os.path.join(folder, info, "METADATA"), "w", encoding="utf-8") as file:
        file.write(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return info
