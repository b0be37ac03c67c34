package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// crowdedListener fails at first, as that of the kernel does while a node has no file descriptor left.
type crowdedListener struct {
	net.Listener
	attempts int
}

func (l *crowdedListener) Accept() (net.Conn, error) {
	if l.attempts++; l.attempts == 1 {
		return nil, &net.OpError{Op: "accept", Err: syscall.ENFILE}
	}
	return l.Listener.Accept()
}

func TestConnectionIsAcceptedAfterTheNodeHadNoFileDescriptorLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "packets.sock")
	listener, err := listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- newSessions().serve(&crowdedListener{Listener: listener}) }()
	session := connectTo(t, path)
	session.send(golden(t, false)[0])
	session.expect(helloLine)
	listener.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Fatalf("serving ended with %v", err)
	}
}

func TestSocketIsForOwnerAndGroup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "packets.sock")
	for range 2 { // the second time it exists
		if _, err := listen(path); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := os.Stat(path); err != nil || found.Mode().Perm() != 0o660 {
		t.Fatalf("%v %v", found, err)
	}
}
