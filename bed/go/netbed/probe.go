package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

type probeAnswer struct {
	// Missing names what the machine does not allow; empty if everything works.
	Missing string `json:"missing"`
}

// probe tries everything that the other operations need in separate namespaces, and removes them.
func probe(nothing) (any, error) {
	if err := tryAll(); err != nil {
		return probeAnswer{err.Error()}, nil
	}
	return probeAnswer{}, nil
}

func tryAll() error {
	dir, err := os.MkdirTemp("", "netbed-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := newBed()
	defer func() {
		b.forget("node/probe")
		b.forget("fabric")
	}()
	if _, err := b.addNode(nodeRequest{Name: "probe", Dir: dir}); err != nil {
		return fmt.Errorf("no node: %w", err)
	}
	if _, err := b.join(joinRequest{Node: "probe", Segment: "probe", As: "bridge"}); err != nil {
		return fmt.Errorf("no segment: %w", err)
	}
	s, err := b.find("node/probe")
	if err != nil {
		return err
	}
	return s.run(func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		if err != nil {
			return fmt.Errorf("no packet socket: %w", err)
		}
		return unix.Close(fd)
	})
}
