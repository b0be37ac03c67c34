//go:build !guests

// Command holdfast-packets answers DHCP and router solicitations of guests. It needs the capability NET_RAW and no
// access to the API: all answers come from a table that the process "responder" sends over a Unix socket. With the argument
// "connectivity", it is a pod of "kubectl holdfast connectivity".
package main

import (
	"flag"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

func main() {
	// One frame is handled at a time. More threads would only wake each other, at a third of the cost of an answer.
	runtime.GOMAXPROCS(1)
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	if len(os.Args) > 1 && os.Args[1] == "connectivity" {
		runConnectivity(os.Args[2:])
		return
	}
	socket := flag.String("socket", "/run/holdfast-packets/packets.sock", "Unix socket that the process \"responder\" connects to")
	flag.Parse()
	if flag.NArg() > 0 {
		fail("unexpected argument", flag.Arg(0))
	}
	listener, err := listen(*socket)
	if err != nil {
		fail("cannot listen", err.Error())
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	go serve(listener)
	<-ended
	listener.Close() // removes the socket
}

const tickEvery = 250 * time.Millisecond

func serve(listener net.Listener) {
	sessions := &sessions{}
	after := func(wait time.Duration, run func(now time.Time)) { time.AfterFunc(wait, func() { run(time.Now()) }) }
	responder := newResponder(nil, sessions.send, rand.IntN, after)
	responder.open = func(name string) (link, error) { return receiveFrom(name, responder) }
	sessions.responder = responder
	go func() {
		for now := range time.Tick(tickEvery) {
			responder.tick(now)
		}
	}()
	slog.Info("listening", "socket", listener.Addr().String())
	if err := sessions.serve(listener); err != nil {
		slog.Info("no longer listening", "reason", err.Error())
	}
}

// receiveFrom opens an interface and handles its frames. The program ends with the interface, and is started again.
func receiveFrom(name string, responder *responder) (link, error) {
	opened, err := openLink(name)
	if err != nil {
		return nil, err
	}
	go func() {
		err := opened.receive(func(frame []byte, sums checksums) { responder.receive(time.Now(), frame, sums) })
		fail("cannot receive from interface "+name, err.Error())
	}()
	return opened, nil
}

func fail(message, detail string) {
	slog.Error(message, "error", detail)
	os.Exit(1)
}
