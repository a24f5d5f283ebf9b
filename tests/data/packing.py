"""Small archives for tests, as published corpora are packed."""

import io
import os
import socket
import tarfile
import zipfile


def write_tar(path, members, mode=None):
    """Writes a tar of {name: bytes}; packed as the ending of the path says. A value of None makes a folder."""
    if mode is None:
        mode = "w" if path.name.endswith(".tar") else "w:" + path.name.rsplit(".", 1)[1].replace("tgz", "gz")
    with tarfile.open(path, mode) as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            if data is None:
                info.type = tarfile.DIRTYPE
            else:
                info.size = len(data)
            tar.addfile(info, io.BytesIO(data or b""))
    return str(path)


def write_zip(path, members):
    """Writes a zip of {name: bytes}."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    return str(path)


def write_archive(path, members):
    """Writes a zip or a tar, as the ending says, of {name: bytes or str}."""
    members = {name: text if isinstance(text, bytes) else text.encode() for name, text in members.items()}
    return (write_zip if path.suffix == ".zip" else write_tar)(path, members)


def lines(texts):
    """Returns the bytes of a text file with these lines."""
    return "".join(f"{text}\n" for text in texts).encode()


def escaped(text):
    """Returns a text as XML has it between tags."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def sgm(texts, side="src", docs=2, start="<seg id="):
    """Returns the bytes of a news test file with these texts as segments of some documents, escaped."""
    out = [f'<{side}set setid="newstest2014" srclang="any" trglang="xx">']
    size = -(-len(texts) // docs)
    for number in range(docs):
        out += [f'<doc sysid="{side}" docid="paper/{number}" genre="news" origlang="xx">', "<p>"]
        for i, text in enumerate(texts[number * size : (number + 1) * size], 1):
            quoted = escaped(text).replace('"', "&quot;")
            out.append(f'{start}"{i}">{quoted}</seg>')
        out += ["</p>", "</doc>"]
    return lines([*out, f"</{side}set>"])


def tmx(inputs, targets):
    """Returns the bytes of a translation memory, en and de, as ParaCrawl's are laid out; both sides are escaped."""
    out = ['<?xml version="1.0" encoding="UTF-8"?>', '<tmx version="1.4">', ' <header srclang="en"/>', " <body>"]
    for number, texts in enumerate(zip(inputs, targets, strict=True), 1):
        out.append(f'  <tu tuid="{number}" datatype="Text">')
        for language, text in zip(("en", "de"), texts, strict=True):
            out += [f'   <tuv xml:lang="{language}">', f"    <seg>{escaped(text)}</seg>", "   </tuv>"]
        out.append("  </tu>")
    return lines([*out, " </body>", "</tmx>"])


def shut_out_the_world(monkeypatch, folder):
    """No network for the test, and no prepared tensorflow-datasets set of the machine's own user."""
    monkeypatch.setenv("TFDS_DATA_DIR", str(folder / "tfds"))
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)

    def no_network(*args, **kwargs):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_network)
