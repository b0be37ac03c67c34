// Command virt-launcher starts a guest in a launcher pod: KubeVirt's own code prepares the network and answers DHCP, and QEMU runs
// without libvirt. It stands for these programs:
//
//	virt-launcher                               virt-launcher-monitor, the first process of a launcher pod
//	virt-launcher prepare-network PID REQUEST   virt-handler's part, on the node
//	virt-launcher start-guest                   QEMU for post-copy, in the namespaces of a launcher
//	virt-launcher relay FROM TO                 virt-handler's migration proxy, between addresses as unix:/path and tcp:host:port
//	virt-chroot create-tap …                    which KubeVirt's code calls
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(filepath.Base(os.Args[0]), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(name string, args []string) error {
	switch {
	case name == "virt-chroot":
		return createTap(args)
	case len(args) == 3 && args[0] == "prepare-network":
		asked, err := readRequest(args[2])
		if err != nil {
			return err
		}
		return prepareNetwork(&asked.VMI, args[1])
	case len(args) == 1 && args[0] == "start-guest":
		return startGuest()
	case len(args) == 3 && args[0] == "relay":
		return relay(args[1], args[2])
	default:
		return launch()
	}
}
