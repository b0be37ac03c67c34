// Command apiserver is etcd or kube-apiserver, unchanged. One binary links the code that they share once.
package main

import (
	"fmt"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubeapiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	program := ""
	if len(os.Args) > 1 {
		program, os.Args = os.Args[1], os.Args[1:]
	}
	switch program {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(kubeapiserver.NewAPIServerCommand()))
	default:
		fmt.Fprintln(os.Stderr, "usage: apiserver etcd|kube-apiserver [flags]")
		os.Exit(2)
	}
}
