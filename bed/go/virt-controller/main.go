// Command virt-controller is that of KubeVirt. With the argument "manifests" it prints the objects that virt-operator would
// create, because both link the same packages.
package main

import (
	"fmt"
	"os"

	"kubevirt.io/kubevirt/pkg/virt-controller/watch"
)

func main() {
	if len(os.Args) != 2 || os.Args[1] != "manifests" {
		watch.Execute()
		return
	}
	if err := writeManifests(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
