// Package ray submits weft to a Ray cluster and follows it there, through the cluster's own HTTP interface: nothing of
// Ray or Python is needed on the user's machine.
//
// What runs in the cluster is driver.py, which is part of this package: it reserves whole TPU slices and runs one process
// of weft on each of their hosts.
package ray
