// Package safetensors reads and writes the safetensors format of Hugging Face
// (https://github.com/huggingface/safetensors, "Format"): 8 bytes little-endian
// header length, a JSON header, then the tensors' bytes, row-major and
// little-endian, without holes.
//
// Reading maps a local file: nothing is copied until a caller asks for bytes.
// A file elsewhere ([OpenReader], [OpenFolder]) is read by ranges: only the bytes
// of a region, or whole blocks where a region is scattered over them.
// Every fault of a file is a [*FormatError] that names the file and, where
// there is one, the tensor, and wraps one of the Err values of this package.
package safetensors
