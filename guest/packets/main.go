// Command holdfast-packets answers DHCP and router solicitations of guests. It needs the capability NET_RAW and no
// access to the API: all answers come from a table that the process "responder" sends over a Unix socket.
package main

import (
	"flag"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
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

func serve(listener net.Listener) {
	sessions := &sessions{}
	sessions.responder = newResponder(openLink, func(one report) { sessions.send(one) })
	slog.Info("listening", "socket", listener.Addr().String())
	if err := sessions.serve(listener); err != nil {
		slog.Info("no longer listening", "reason", err.Error())
	}
}

func fail(message, detail string) {
	slog.Error(message, "error", detail)
	os.Exit(1)
}
