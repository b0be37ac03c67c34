// Command controllers is kube-scheduler, unchanged, or those controllers of kube-controller-manager that the bed needs.
// kube-controller-manager itself would compile another 300 packages: volume plugins, cAdvisor, certificate signers.
package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/component-base/cli"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	program := ""
	if len(os.Args) > 1 {
		program, os.Args = os.Args[1], os.Args[1:]
	}
	switch program {
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case "kube-controller-manager":
		if err := runControllers(context.Background(), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		fmt.Fprintln(os.Stderr, "usage: controllers kube-scheduler [flags] | kube-controller-manager --kubeconfig=FILE")
		os.Exit(2)
	}
}
