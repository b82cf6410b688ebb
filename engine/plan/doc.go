// Package plan tells what a compiled training step needs and how fast it can be, without running it: memory on a device
// by class, arithmetic, memory traffic, communication on the links of a slice, and from these a range of times.
//
// Compile compiles ahead of time for a slice that need not be there; Analyze reads what came out. What is exact, counted
// in the optimised program or computed from the shards, and what is estimated, with its assumptions, is said in Report.
package plan
