#!/usr/bin/env python3
"""Writes seeds/TARGET/: small inputs of every kind that the readers take, none of them from a data set."""
import json
import math
import pathlib
import struct
import zlib
import gzip
import io
import zipfile

root = pathlib.Path(__file__).parent / "seeds"


def put(target, name, data):
    (root / target).mkdir(parents=True, exist_ok=True)
    (root / target / name).write_bytes(data if isinstance(data, bytes) else data.encode())


def safetensors(tensors, metadata=None):
    header, body = {}, b""
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    if metadata is not None:
        header["__metadata__"] = metadata
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + body


def with_checksum(tensors, metadata):
    data = safetensors(tensors, {**metadata, "reel.checksum": "crc32", "reel.crc32": "00000000"})
    return data.replace(b'"reel.crc32":"00000000', b'"reel.crc32":"%08x' % zlib.crc32(data))


f32 = ("W", "F32", [2, 3], struct.pack("<6f", *range(6)))
f64 = ("optimizer.W.0", "F64", [2], struct.pack("<2d", 0.5, 1))
every = [f32, f64, ("c", "C64", [1], struct.pack("<2f", 1, 2)), ("z", "F64", [1, 2], struct.pack("<2d", 3, 4)),
         ("i", "I32", [], struct.pack("<i", -1)), ("b", "BOOL", [3], b"\0\1\1"), ("none", "F32", [0, 5], b"")]
put("safetensors", "empty", safetensors([]))
put("safetensors", "every", safetensors(every, {"note": "x", "reel.dtype.z": "c128"}))
put("safetensors", "checked", with_checksum(every, {"reel.dtype.z": "c128"}))
numbers = {"step": "10", "seed": "7", "seconds": "1.5", "updates": "10", "schedule": "0.5 0.25 1 3 0.5 0.25",
           "running_steps": "3", "running_loss": "0.25", "running_grad_norm": "2.5", "threads": "2"}
carry = ("carry.0", "F32", [1], struct.pack("<f", 0.5))
put("checkpoint", "old", safetensors([f32, f64], numbers))
put("checkpoint", "carried", safetensors([f32, f64, carry], numbers))
put("checkpoint", "checked", with_checksum([f32, f64, carry], numbers))
put("checkpoint", "best", safetensors([f32], {"step": "4", "valid_loss": "0.25"}))

put("options", "config", 'steps = 100\nlr = 1e-3\ncell = "gru"\nquiet = true\nout = "runs/a"\n[srnn]\nwidth = 8\n')
put("options", "kinds", 'a = [1, 2.5, "x"]\nb = { c = 1979-05-27 }\n"d e".f = """x\ny"""\n[[g]]\nh = 0x1F\n# end\n')
put("presets", "grid", '''paper = "P (Q 2000)"
[table1]
title = "T"
where = "Table 1"
task = "copying"
options = "--steps 3 --delay 3"
metric = "valid_loss"
unit = "%"
figure = "bars"
note = "n"
cases.a = "--hidden 8"
cases.b = "--hidden 16"
models.gru = "--cell gru"
models.lstm = "--cell lstm"
tweaks.a-gru = "--lr 1"
only.lstm = ["a"]
reported.a = { gru = 0.5, lstm = "1" }
unverified.b = 2
parameters.gru = 100
epoch_updates.all = 50
notes.all = "x"
''')
put("presets", "one", 'paper = "P"\n[t]\ntitle = "T"\nwhere = "W"\ntask = "adding"\nmetric = "m"\nmodels.a = ""\nsimulated.a = 1.5\n')

header = "step,examples,seconds,train_loss,valid_loss,accuracy,grad_norm\n"
put("metrics", "rows", header + "10,200,0.1,0.3333333333333333,1e-20,0.5,12\n20,400,1000,2,0.25,,inf\n")
put("metrics", "cut", header + "10,200,0.1,0.33,1,0.5,12\n20,40")

pictures = struct.pack(">4I", 0x803, 2, 3, 2) + bytes(range(12))
labels = struct.pack(">2I", 0x801, 5) + bytes(range(5))
for name, data in (("pictures", pictures), ("labels", labels)):
    put("idx", name, data)
    put("idx", name + ".gz", gzip.compress(data, mtime=0))


def element(kind, data):
    return struct.pack("<II", kind, len(data)) + data + b"\0" * (-len(data) % 8)


def matrix(name, kind, shape, inside):
    head = element(6, struct.pack("<II", kind, 0)) + element(5, struct.pack("<2i", *shape)) + element(1, name.encode())
    return element(14, head + inside)


def rolls(pack, number_kind, stored):
    out = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
    for name in ("traindata", "validdata", "testdata"):
        keys = [float(i % 5 == 0) for i in range(2 * 88)]
        numbers = struct.pack("<176d", *keys) if stored == 9 else bytes(int(k) for k in keys)
        cell = matrix(name, 1, (1, 1), matrix("", number_kind, (2, 88), element(stored, numbers)))
        if pack:
            squeezed = zlib.compress(cell)
            cell = struct.pack("<II", 15, len(squeezed)) + squeezed
        out += cell
    return out


put("mat", "plain", rolls(False, 6, 9))
put("mat", "bytes", rolls(False, 9, 2))
put("mat", "small", rolls(False, 6, 2))
put("mat", "packed", rolls(True, 6, 9))


def wav(code, bits, data, rate=8000, more=b""):
    block = max(1, bits // 8)
    chunk = struct.pack("<HHIIHH", code, 1, rate, rate * block, block, bits)
    inside = b"WAVE" + b"fmt " + struct.pack("<I", len(chunk)) + chunk + more
    inside += b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(inside)) + inside


tone = [math.sin(i / 5) * 0.5 for i in range(60)]
put("audio", "16bit.wav", wav(1, 16, struct.pack("<60h", *(int(32767 * v) for v in tone))))
put("audio", "fast.wav", wav(1, 16, struct.pack("<60h", *(int(32767 * v) for v in tone)), rate=16000))
put("audio", "8bit.wav", wav(1, 8, bytes(int(128 + 100 * v) for v in tone)))
put("audio", "float.wav", wav(3, 32, struct.pack("<60f", *tone)))
put("audio", "double.wav", wav(3, 64, struct.pack("<60d", *tone)))
put("audio", "ulaw.wav", wav(7, 8, bytes(range(60))))
put("audio", "list.wav", wav(1, 8, bytes(60), more=b"LIST" + struct.pack("<I", 16) + b"INFOISFT" + struct.pack("<I", 4) + b"abc\0"))
sphere = ("NIST_1A\n   1024\nsample_count -i 60\nsample_n_bytes -i 2\nchannel_count -i 1\nsample_byte_format -s2 01\n"
          "sample_rate -i 8000\nsample_coding -s3 pcm\nend_head\n").encode().ljust(1024)
put("audio", "pcm.sph", sphere + struct.pack("<60h", *(int(32767 * v) for v in tone)))

put("text", "words", " a b <unk>\n c d \n\nmöglich 日本 𝄞\n")
put("text", "fields", "a b _ c d\n_ e\n")
put("babi", "story", "1 Ann went home.\n2 Bob went out.\n3 Where is Ann? \thome\t1\n1 Cat sat.\n2 Who sat?\tcat,dog\t1 2\n")

put("csv", "values", "time,a,\"b, c\",y\n" + "".join(f"{i},{i % 3},{-i / 7:.4f},1e{i % 5}\n" for i in range(30)))
put("csv", "groups", "g;x;label\r\n" + "".join(f"s{i // 4};{i % 5};{'yes' if i % 3 else 'no'}\r\n" for i in range(40)))
put("csv", "missing", '\ufeffx\ty\n1\t\n\t2\n\n"3\n"\t"a ""b"""\n')


def npy(descr, shape, data, version=1, fortran=False):
    head = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(head)) + head + data


def npz(packed, **arrays):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
        for name, data in arrays.items():
            archive.writestr(zipfile.ZipInfo(name + ".npy"), data)
    return file.getvalue()


for kind, code in (("<f4", "f"), ("<f8", "d"), ("<i8", "q"), ("|u1", "B"), ("<u2", "H"), ("|b1", "?")):
    put("npy", kind[1:], npy(kind, (2, 3), struct.pack(f"<6{code}", *range(6))))
put("npy", "half", npy("<f2", (3,), struct.pack("<3e", 0.5, -1e-6, 1e4), version=2))
put("npy", "sequences", npy("|i1", (2, 2, 2), bytes(range(8)), version=3))
put("npy", "fortran", npy("<f4", (2, 2), bytes(16), fortran=True))
x, y = npy("<f4", (2, 3, 1), struct.pack("<6f", *range(6))), npy("|i1", (2,), bytes([0, 1]))
for packed in (False, True):
    put("npz", f"last{packed:d}", npz(packed, x=x, y=y, lengths=npy("<i8", (2,), struct.pack("<2q", 3, 1))))
put("npz", "each", npz(True, x=x, y=npy("|u1", (2, 3), bytes(6))))

spec = {"format": "reel.table", "version": 1, "inputs": [{"name": "a", "mean": 0.5, "deviation": 2.0}],
        "targets": [{"name": "y", "mean": 0.0, "deviation": 1.0}], "predict": "class", "classes": ["n", "y"], "at": "last",
        "group": "g", "time": "", "window": 5, "horizon": 0, "missing": "zero", "data": {"bytes": 10, "crc32": "0"}}
put("table_spec", "classes", json.dumps(spec))
put("table_spec", "values", json.dumps({**spec, "predict": "value", "classes": [], "at": "each", "missing": "previous"}))
