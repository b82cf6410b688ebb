// Package checkpoint saves and restores training runs so that no crash, full
// disk or damaged file loses a committed one.
//
// A checkpoint is a folder under <storage path>/checkpoints: model/ (a Hugging
// Face folder), state/ (the train state, one safetensors file for each device's
// slices) and manifest.json, written last. The folder is built under a
// temporary name, every file and folder is synced, and one rename commits it;
// docs/checkpoint.md describes the layout.
//
// The contract:
//   - [Manager.Save] either commits the whole checkpoint or leaves what was
//     there before, whatever fails and whenever the process or machine dies.
//   - One run owns a storage path at a time; a second [Open] is refused.
//   - Only what weft wrote is ever deleted, and never the newest committed
//     checkpoint.
//   - State saved by any number of devices is read back in any other slicing,
//     and a region is only ever returned after its checksum was seen to be right.
//
// The package knows nothing of devices or models: tensors are names, shapes and
// functions that fetch bytes.
package checkpoint
