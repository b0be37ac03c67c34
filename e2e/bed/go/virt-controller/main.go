// Command virt-controller is KubeVirt's, and with the argument "manifests" the generator of the objects that virt-operator
// would create: both link the same packages.
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
