# tests/oracle/f32_gguf.py - a GGUF file -> the same model with every tensor as float32, all keys copied.
# On such a file no weight is rounded, so an engine must agree with the float forward to about 1e-4.
# usage: f32_gguf.py IN.gguf OUT.gguf
import sys

import gguf
import numpy as np

DERIVED = {"GGUF.version", "GGUF.tensor_count", "GGUF.kv_count", "general.architecture", "general.file_type"}


def convert(source, target):
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.get_field("general.architecture").contents())
    for field in reader.fields.values():
        if field.name not in DERIVED:
            element = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=element)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    for tensor in reader.tensors:
        writer.add_tensor_info(tensor.name, [int(n) for n in tensor.shape[::-1]], np.dtype(np.float32), int(tensor.n_elements) * 4)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor in reader.tensors:  # one at a time: the whole model need not fit twice
        writer.write_tensor_data(gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(tensor.shape[::-1]))
    writer.close()


if __name__ == "__main__":
    convert(*sys.argv[1:3])
