// Gives a Mach-O executable an ad-hoc signature: `sign-darwin FILE IDENTIFIER`. macOS on arm64 starts no executable without one.
package main

import (
	"fmt"
	"os"

	"github.com/anchore/quill/quill"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sign-darwin FILE IDENTIFIER")
		os.Exit(2)
	}
	if err := quill.Sign(quill.SigningConfig{Path: os.Args[1], Identity: os.Args[2]}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
