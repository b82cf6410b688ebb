// Package e2e holds weft's commands for Ray to a real Ray cluster on loopback: a head and the nodes of fake TPU slices. It
// has only tests.
package e2e
