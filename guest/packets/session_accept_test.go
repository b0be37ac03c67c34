package main

import (
	"bufio"
	"errors"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"
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
	all := &sessions{}
	all.responder = newResponder(func(string) (link, error) { return &testLink{}, nil }, all.send, noRandom, noTimers)
	ended := make(chan error, 1)
	go func() { ended <- all.serve(&crowdedListener{Listener: listener}) }()
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	session := &testSession{t, conn, bufio.NewReader(conn)}
	session.send(golden(t, false)[0])
	session.expect(helloLine)
	listener.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Fatalf("serving ended with %v", err)
	}
}
