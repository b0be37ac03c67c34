// Command virt-api is that of KubeVirt. Its packages take seconds to build the validator of the API before main runs, and need no
// API server for that. So it may be started before its kubeconfig exists, and waits for it here.
package main

import (
	"os"
	"strings"
	"time"

	"kubevirt.io/kubevirt/pkg/service"
	virtapi "kubevirt.io/kubevirt/pkg/virt-api"
)

func main() {
	waitForKubeconfig()
	app := virtapi.NewVirtApi()
	service.Setup(app)
	app.Execute()
}

func waitForKubeconfig() {
	for _, argument := range os.Args[1:] {
		path, found := strings.CutPrefix(argument, "--kubeconfig=")
		for found && !exists(path) {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
