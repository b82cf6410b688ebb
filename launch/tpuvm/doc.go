// Package tpuvm writes, and runs, the gcloud commands that make a slice of Cloud TPU VMs, put weft on its hosts, start and
// stop it there, and delete the slice.
//
// A command line is a [Step]; what to do is a list of them, which a person can read, copy and run by hand just as [Runner]
// runs it. A slice costs money from the moment that it exists until it is deleted, so an error says what is left.
package tpuvm
