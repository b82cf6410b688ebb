// Package safetensors reads and writes the safetensors format of Hugging Face
// (https://github.com/huggingface/safetensors, "Format"): 8 bytes little-endian
// header length, a JSON header, then the tensors' bytes, row-major and
// little-endian, without holes.
//
// Reading maps the file: nothing is copied until a caller asks for bytes.
// Every fault of a file is a [*FormatError] that names the file and, where
// there is one, the tensor, and wraps one of the Err values of this package.
package safetensors
