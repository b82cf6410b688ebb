// Package plugin finds, installs and verifies PJRT plugins: the shared libraries that package pjrt loads.
//
// [Find] answers from the first of: an explicit path (a flag), the environment variable WEFT_PJRT_PLUGIN, the plugins installed in the
// cache folder, and for TPUs the libtpu that is already on the machine (TPU_LIBRARY_PATH, or Python's site-packages).
//
// [Install] has pip download one wheel of one pinned version, checks its sha256 and puts the library into the cache folder (WEFT_CACHE,
// else $XDG_CACHE_HOME/weft, else ~/.cache/weft), under plugins/:
//
//	cpu-0.11.2.so    the library
//	cpu-0.11.2.json  what it is: package, version, sha256 of wheel and library, size; written last, so that it marks a complete install
//	cpu-0.11.2.lock  held during an install; processes that install at the same time wait and then find it done
//
// A library whose size or sha256 is not what the record says is an error that matches [ErrDamaged]; Install repairs it. To keep a start
// fast, Find hashes a library only when its modification time is not the recorded one; [Verify] always hashes.
package plugin
