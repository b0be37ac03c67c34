package main

import (
	"io"
	"net"
	"os"
	"strings"
	"time"
)

const relayTimeout = 30 * time.Second

// relay accepts one connection and passes it on, in both directions, until both ends are closed.
func relay(from, to string) error {
	network, address := split(from)
	listener, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	timeout := time.AfterFunc(relayTimeout, func() { _ = listener.Close() })
	if network == "unix" { // QEMU is another user
		if err := os.Chmod(address, 0o777); err != nil {
			return err
		}
	}
	accepted, err := listener.Accept()
	if err != nil {
		return err
	}
	timeout.Stop()
	_ = listener.Close()
	dialled, err := dial(to)
	if err != nil {
		return err
	}
	done := make(chan error)
	pass := func(target, source net.Conn) {
		_, err := io.Copy(target, source)
		_ = target.(interface{ CloseWrite() error }).CloseWrite()
		done <- err
	}
	go pass(dialled, accepted)
	go pass(accepted, dialled)
	if err := <-done; err != nil {
		return err
	}
	return <-done
}

// dial tries again, because the other relay may not listen yet.
func dial(to string) (net.Conn, error) {
	for deadline := time.Now().Add(relayTimeout); ; time.Sleep(50 * time.Millisecond) {
		connection, err := net.Dial(split(to))
		if err == nil || time.Now().After(deadline) {
			return connection, err
		}
	}
}

// split takes addresses like tcp:10.0.0.1:80 and unix:/run/socket.
func split(address string) (network, rest string) {
	network, rest, _ = strings.Cut(address, ":")
	return network, rest
}
