// Package collectives checks that the devices of a slice compute and communicate together, and measures how fast: what
// the published guide of Ray on GKE checks with ray_core_collectives.py. A tensor-parallel feed-forward block over all
// devices is compared with the same block on the host, a sum over the devices with the sum that it must be, and
// all-gather, reduce-scatter and all-reduce are timed by size.
//
// A rank is a device. Ranks count the devices of host after host, as the guide does; a mesh counts them by where they
// stand in the slice.
package collectives
