// Package tpu holds what is public about TPU chips and slices: peak rates, memory, and which chips are joined by
// inter-chip links (ICI), wrap-around or not, so that the traffic of a program can be laid on the links that a slice has.
//
// It knows no program and no plugin. Rates are nominal, in units of 1 per second: FLOP/s, bytes/s.
package tpu
