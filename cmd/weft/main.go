// Command weft fine-tunes language models on TPU slices, or on a laptop's CPU, without Python.
package main

import (
	"os"

	"weft/cmd/weft/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
