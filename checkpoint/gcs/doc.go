// Package gcs is the [checkpoint.FS] of Cloud Storage, over its JSON API.
//
// Names are "bucket/prefix/…". Folders are prefixes of names: one exists when
// something is under it. Every write carries a precondition on the generation of
// what it replaces, so it may be sent again: an upload whose answer was lost is
// known by a token in its metadata. Every write sends the CRC32C of its bytes and
// compares the one that the server answers. Reads are pinned to the generation
// that Open found.
//
// Credentials are Google's Application Default Credentials;
// STORAGE_EMULATOR_HOST names an emulator instead, which needs none.
package gcs
