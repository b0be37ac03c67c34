// Command pause waits until it is told to end, and reaps the processes that it inherits as the first process of a pod.
//
// It also stands for the programs of KubeVirt's launcher image: with --no-op, which virt-controller passes to init containers,
// it ends at once.
package main

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
)

func main() {
	if slices.Contains(os.Args[1:], "--no-op") {
		return
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for {
			// one signal may stand for several children
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 && err != syscall.EINTR {
				break
			}
		}
	}
}
